"""The kit for executors on a real Kafka: one without fault passes, and each fault of a wrong one is named."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from evictstream.kit.conformance.command_writer import ANSWER_SECONDS
from evictstream.kit.conformance.executor_play import RETURN_SECONDS, ExecutorPlay
from evictstream.kit.conformance.executor_rules import EXECUTOR_RULES
from evictstream.kit.conformance.findings import judge_rules
from evictstream.kit.conformance.playground import CONFORMANCE_PREFIX, Playground, open_playground
from evictstream.streams.broker.admin_client import admin_client
from evictstream.streams.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.kit]

EXECUTOR = [sys.executable, str(Path(__file__).with_name("wrong_executor.py"))]
SHORT_SECONDS = 6.0  # for those that do not answer: what they would be waited for

NEVER_SAYS_NO = {"heedless", "again", "any-uid", "confused", "liar", "stubborn", "reverse", "careless", "brakeless"}
HEARS_TOO_MUCH = {
    "strict",
    "uncommitted",
    "chatty",
    "any-cluster",
    "forgets",
    "old-token",
    "deaf",
    "silent",
    "once",
    "impatient",
    "unbraked",
}


def play(
    settings: Settings,
    command: Sequence[str],
    *,
    by_hand: bool = False,
    answer_seconds: float = ANSWER_SECONDS,
    return_seconds: float = RETURN_SECONDS,
) -> dict[str, str]:
    """Return the standing of each rule, and check that no topic of the run is left."""
    with open_playground(
        settings, ["results"], [] if by_hand else command, report=lambda _: None, is_stopped=lambda: False
    ) as playground:
        started = threading.Event()
        thread = threading.Thread(target=start_by_hand, args=(playground, command, started))
        if by_hand:
            thread.start()
        found = ExecutorPlay(playground, answer_seconds=answer_seconds, return_seconds=return_seconds).run()
        started.set()
        if by_hand:
            thread.join()
    with admin_client(settings, "describe topics") as client:
        assert [name for name in client.list_topics() if name.startswith(playground.settings.topic_prefix)] == []
    assert playground.settings.topic_prefix.startswith(CONFORMANCE_PREFIX)
    return {one.name: one.standing.value for one in judge_rules(EXECUTOR_RULES, found)}


def start_by_hand(playground: Playground, command: Sequence[str], is_over: threading.Event) -> None:
    """Do what a person does: start it with what was shown, and stop it afterwards."""
    with subprocess.Popen(command, env=os.environ | dict(playground.shown)) as process:
        is_over.wait()
        process.terminate()


def broken(found: dict[str, str]) -> set[str]:
    return {name for name, standing in found.items() if standing == "BROKEN"}


def test_an_executor_without_fault_passes(settings: Settings) -> None:
    assert play(settings, EXECUTOR) == {rule.name: "held" for rule in EXECUTOR_RULES}


def test_an_executor_that_never_says_no_is_found_out(settings: Settings) -> None:
    found = play(settings, [*EXECUTOR, *NEVER_SAYS_NO])
    assert broken(found) == {
        "precondition",
        "truth",
        "other-uid",
        "absent",
        "repeated",
        "cancelled",
        "moved",
        "overtaken",
        "refused-500",
        "refused-403",
        "held",
        "released",
        "not-twice",
        "few-tries",
        "taint-gone",
        "disruption-target",
    }


def test_an_executor_that_hears_too_much_is_found_out(settings: Settings) -> None:
    # Not longer than the work takes that is left behind, and the group to notice the kill.
    found = play(settings, [*EXECUTOR, *HEARS_TOO_MUCH], answer_seconds=SHORT_SECONDS, return_seconds=20.0)
    assert (found["held"], found["released"]) == ("not shown", "not shown")
    assert broken(found) == {
        "answers",
        "newer",
        "committed-only",
        "owed-nothing",
        "own-cluster",
        "refused-500",
        "refused-403",
        "refused-429",
        "cut-before",
        "cut-after",
        "slow",
        "next-attempt",
        "overtaken",
        "nothing-lost",
        "new-token",
        "stops",
    }


def test_an_executor_that_dies_of_a_record_is_found_out(settings: Settings) -> None:
    assert {"stays", "unreadable", "answers"} <= broken(
        play(settings, [*EXECUTOR, "fragile"], answer_seconds=SHORT_SECONDS)
    )


def test_an_executor_started_by_hand_is_not_killed(settings: Settings) -> None:
    found = play(settings, [*EXECUTOR, "mangled"], by_hand=True, answer_seconds=SHORT_SECONDS)
    assert {"evicts", "result-form", "answers"} <= broken(found)
    assert {found[name] for name in ("nothing-lost", "not-twice", "stays", "stops")} == {"not shown"}
