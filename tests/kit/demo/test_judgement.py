"""What the demo grants when its clock is not the brokers', and what it says of a wrong command."""

from __future__ import annotations

import dataclasses

import pytest

from evictstream.kit.demo.judgement import problems_of
from evictstream.kit.oracle import InputRecord
from evictstream.streams.settings import Settings
from tests.kit.demo.samples import at, node, pod, taint, tolerates, us
from tests.kit.oracle.written import Seen, encode, records_of, seen, told

STAYS = [node(0), pod(1, tolerates(seconds=20)), node(10, taint())]


def heartbeats() -> list[InputRecord]:
    return [
        InputRecord(
            topic=topic,
            partition=0,
            offset=second,
            append_at_us=us(second),
            key=b"lab",
            value=encode({"cluster": "lab", "type": "HEARTBEAT", "observedAt": at(second)}),
        )
        for second in range(0, 60, 5)
        for topic in ("nodes", "pods")
    ]


def problems(*commands: Seen, ahead: float = 0.0) -> list[str]:
    """Judge, with append times of brokers whose clock is behind ours by so many seconds."""
    ahead_us = round(ahead * 1_000_000)
    inputs = [
        dataclasses.replace(one, append_at_us=one.append_at_us - ahead_us)
        for one in [*records_of(STAYS), *heartbeats()]
    ]
    messages = [dataclasses.replace(one, append_at_us=one.append_at_us - ahead_us) for one in told(commands)]
    return problems_of(inputs, messages, Settings(partitions=1), end_us=us(59), excused=())


@pytest.mark.parametrize("ahead", [0.0, 0.2, -0.2, 3.0, -3.0])
def test_a_clock_that_differs_is_no_problem(ahead: float) -> None:
    """The service's words: append times bound event times, and the worker's clock is ours."""
    opened, deadline = 10 - max(ahead, 0.0), 30 - max(ahead, 0.0)
    told_by_the_service = [
        seen(10.01, "Schedule", deadline, windowStart=at(opened)),
        seen(deadline + 0.004, "Evict", deadline, windowStart=at(opened)),
    ]
    assert problems(*told_by_the_service, ahead=ahead) == []


@pytest.mark.parametrize(
    ("commands", "begin"),
    [
        pytest.param([seen(10, "Schedule"), seen(29.9, "Evict", issuedAt=at(30))], "early: ", id="early"),
        pytest.param([seen(10, "Schedule"), seen(36, "Evict")], "late: ", id="late"),
        pytest.param([], "not announced: ", id="missing"),
    ],
)
def test_a_wrong_command_is_a_problem(commands: list[Seen], begin: str) -> None:
    (problem,) = problems(*commands)
    assert problem.startswith(f"{begin}lab/n-1 ")
