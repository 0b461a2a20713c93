"""`evictstream conformance`: what it prints, how it ends, and that our own feed passes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from evictstream.kit.conformance.executor_rules import EXECUTOR_RULES
from evictstream.kit.conformance.feed_rules import FEED_RULES
from evictstream.kit.conformance.playground import CONFORMANCE_PREFIX
from evictstream.streams.broker.admin_client import admin_client
from evictstream.streams.settings import Settings
from tests.streams.cli.running import COMMAND, ROOT, environment_of, run, started, wait_until

pytestmark = [pytest.mark.slow]

PATIENCE_SECONDS = 400.0
EXECUTOR = [sys.executable, str(Path(__file__).with_name("wrong_executor.py"))]


def conformance(settings: Settings, *arguments: str) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [*COMMAND, "conformance", *arguments],
        env=environment_of(settings),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert result.stdout, result.stderr
    return result


def seen(rules: Sequence[dict[str, object]]) -> dict[object, object]:
    return {one["name"]: f"{one['standing']}: {one['seen']}" for one in rules if one["standing"] != "held"}


def runs(settings: Settings) -> set[str]:
    """Name the runs that have topics or groups on this Kafka."""
    with admin_client(settings, "describe topics") as client:
        groups = [group["group_id"] for group in client.list_groups()]
        return {
            name[: len(CONFORMANCE_PREFIX) + 8]
            for name in (*client.list_topics(), *groups)
            if name.startswith(CONFORMANCE_PREFIX)
        }


@pytest.mark.kit
def test_our_feed_passes(settings: Settings) -> None:
    ours = [*COMMAND, "feed", "--cluster", "conformance"]
    result = conformance(settings, "feed", "-o", "json", "--", *ours)
    found = json.loads(result.stdout)
    assert seen(found["rules"]) == {}
    assert [one["name"] for one in found["rules"]] == [rule.name for rule in FEED_RULES]
    assert (found["isConformant"], result.returncode) == (True, 0)


@pytest.mark.kit
@pytest.mark.parametrize("mode", ["delete", "evict"])
def test_our_executor_passes(mode: str, settings: Settings) -> None:
    ours = [*COMMAND, "execute", "--cluster", "conformance", "--mode", mode]
    result = conformance(settings, "executor", "-o", "json", "--", *ours)
    found = json.loads(result.stdout)
    assert seen(found["rules"]) == {}
    assert (found["isConformant"], result.returncode) == (True, 0)


@pytest.mark.kit
def test_a_broken_rule_is_a_found_problem(settings: Settings) -> None:
    result = conformance(settings, "executor", "--", *EXECUTOR, "fragile")
    found = json.loads(result.stdout)
    assert [one["name"] for one in found["rules"]] == [rule.name for rule in EXECUTOR_RULES]
    assert seen(found["rules"])["stays"] == "BROKEN: it ended by itself: exit code 1"
    assert (found["isConformant"], result.returncode) == (False, 1)


@pytest.mark.kit
def test_only_recommended_rules_broken_is_done(settings: Settings) -> None:
    result = conformance(settings, "executor", "-o", "text", "--", *EXECUTOR, "careless")
    rows = result.stdout.splitlines()
    assert [row.split("  ")[0] for row in rows if "BROKEN (recommended)" in row] == [
        "The taint is gone, though no Cancel came: not deleted",
        "The condition DisruptionTarget is set before the delete",
    ]
    assert (len(rows), result.returncode) == (len(EXECUTOR_RULES) + 1, 0)


def test_a_program_that_ends_at_once_is_one_line(settings: Settings) -> None:
    result = run(settings, "conformance", "executor", "--", "sh", "-c", "exit 3")
    assert (result.returncode, result.stdout) == (1, b"")
    assert b"does nothing: it exited (exit code 3)" in result.stderr


def test_a_program_that_is_not_there_is_wrong_use(settings: Settings) -> None:
    result = run(settings, "conformance", "feed", "--", "./no-such-program")
    assert result.returncode == 2
    assert b"./no-such-program cannot be started" in result.stderr


def test_sigterm_leaves_nothing_behind(settings: Settings) -> None:
    before = runs(settings)
    with started(settings, "conformance", "executor") as process:
        assert process.stderr is not None
        said = b""
        while b"EVICTSTREAM_TOPIC_PREFIX" not in said:
            said += process.stderr.readline()
        mine = said.split(b"EVICTSTREAM_TOPIC_PREFIX=")[1].decode().strip().removesuffix(".")
        assert b"export KUBECONFIG=" in said
        assert mine in runs(settings) - before
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
        assert process.stdout is not None
        assert process.stdout.read() == b""
    wait_until(lambda: mine not in runs(settings))
