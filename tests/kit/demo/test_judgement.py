"""What the demo grants when its clock is not the brokers', and how it names what is wrong."""

from __future__ import annotations

import dataclasses

import pytest

from evictstream.kit.demo.judgement import plan_of, problems_of, records_of
from evictstream.kit.demo.topics import Log, Seen, encode
from evictstream.kit.oracle import InputRecord
from evictstream.streams.settings import Settings
from tests.kit.demo.samples import Event, at, node, pod, taint, tolerates, us
from tests.kit.oracle.written import seen, told

SETTINGS = Settings(partitions=1)
STAYS = [node(0), pod(1, tolerates(seconds=20)), node(10, taint())]


def heartbeats() -> list[InputRecord]:
    found = []
    for second in range(0, 60, 5):
        value: Event = {"cluster": "lab", "type": "HEARTBEAT", "observedAt": at(second)}
        beat = InputRecord(
            topic="nodes", partition=0, offset=0, append_at_us=us(second), key=b"lab", value=encode(value)
        )
        found += [beat, dataclasses.replace(beat, topic="pods")]
    return found


def problems(*commands: Seen, ahead: float = 0.0, beats: bool = True) -> list[str]:
    """Judge, with append times of brokers whose clock is behind ours by so many seconds."""
    ahead_us = round(ahead * 1_000_000)
    inputs = [*records_of(STAYS), *(heartbeats() if beats else [])]
    log = Log(
        [dataclasses.replace(one, append_at_us=one.append_at_us - ahead_us) for one in inputs],
        [dataclasses.replace(one, append_at_us=one.append_at_us - ahead_us) for one in told(commands)],
    )
    return problems_of(log, plan_of(STAYS, SETTINGS), SETTINGS, end_us=us(59), excused=())


def story(ahead: float) -> list[Seen]:
    """The service's words: append times bound event times, and the worker's clock is ours."""
    opened, deadline = 10 - max(ahead, 0.0), 30 - max(ahead, 0.0)
    return [
        seen(10.01, "Schedule", deadline, windowStart=at(opened)),
        seen(deadline + 0.004, "Evict", deadline, windowStart=at(opened)),
    ]


@pytest.mark.parametrize("ahead", [0.0, 0.2, -0.2, 3.0, -3.0])
def test_a_clock_that_differs_is_no_problem(ahead: float) -> None:
    assert problems(*story(ahead), ahead=ahead) == []


def test_only_heartbeats_tell_how_far_clocks_differ() -> None:
    (problem,) = problems(*story(0.2), ahead=0.2, beats=False)
    assert problem.startswith("shop/p-1 on n-1: early: Evict")


def test_early_is_early_by_its_own_clock() -> None:
    announced, _ = story(0.0)
    (problem,) = problems(announced, seen(29.9, "Evict", issuedAt=at(30)))
    assert problem.startswith("shop/p-1 on n-1: early: Evict")


def test_problems_name_pods_and_say_instants_in_words() -> None:
    (problem,) = problems()
    assert problem == (
        "shop/p-1 on n-1: not announced: the eviction by k (TolerationExpires) with the deadline"
        " 2026-01-01T00:00:30.000000Z had to be announced, and no command followed"
    )


def test_pod_that_nobody_knows_is_named_by_its_uid() -> None:
    found = problems(*story(0.0), seen(26, "Evict", podUid="stranger", evictionId="e9"))
    assert "stranger on n-1: unfounded: commands about a pod that was never there" in found
