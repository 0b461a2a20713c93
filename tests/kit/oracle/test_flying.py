"""The oracle on limits of what is in flight, and on holds in outages of zones: told right, and broken."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from evictstream.kit.oracle import KeyedRecord, MessageRecord
from evictstream.kit.oracle.commands import SeenCommand
from evictstream.kit.oracle.flying import check_flying
from evictstream.kit.oracle.reading import Statement
from evictstream.kit.oracle.records import InputRecord
from evictstream.kit.oracle.standing_brakes import brake_spells
from tests.kit.oracle.telling import TAINT, Story, at, tolerating
from tests.kit.oracle.test_brakes import done, rules

ZONE = {"zone": {"unhealthyPercent": 100, "atLeast": 1}}


def evict(number: int, seconds: float, action: str = "Evict", *, node: str = "n", attempt: int = 1) -> SeenCommand:
    record = MessageRecord(
        topic="commands", partition=0, offset=number, append_at_us=at(seconds), key=b"c", headers={}, value=b""
    )
    return SeenCommand(
        record=record,
        at_us=at(seconds),
        action=action,
        eviction_id=f"e{number}",
        revision=1,
        attempt=attempt,
        cluster="c",
        node=node,
        pod=f"ns/p{number}",
        pod_uid=f"u{number}",
        verdict="Untolerated",
        taint="t",
        window_us=0,
        deadline_us=at(5),
        issued_at_us=at(seconds),
    )


def pod(number: int, seconds: float, *, is_deleted: bool = False, phase: str = "Running") -> Statement:
    meta = {"namespace": "ns", "name": f"p{number}", "uid": f"u{number}"}
    record = InputRecord(topic="pods", partition=0, offset=0, append_at_us=at(seconds), key=b"c", value=b"")
    content = {"metadata": meta, "status": {"phase": phase}}
    return Statement(
        record=record,
        cluster="c",
        node="n",
        at_us=at(seconds),
        kind="Pod",
        is_deleted=is_deleted,
        content=content,
    )


def told(number: int, seconds: float, outcome: str, *, attempt: int = 1) -> Statement:
    content = {"evictionId": f"e{number}", "attempt": attempt, "outcome": outcome}
    return dataclasses.replace(pod(number, seconds), kind="Result", content=content)


def wrong(commands: list[SeenCommand], *said: Statement, **limit: Any) -> set[str]:
    clause = {"count": 1, "of": "pods", "per": "cluster", "countsSeconds": 60} | limit
    value = json.dumps({"kind": "Brake", "inFlight": clause}).encode()
    spells = brake_spells([KeyedRecord(append_at_us=at(0), key=b"p", value=value)])
    return {found.rule for found in check_flying(commands, said, spells, early_us=5_000)}


MANY = {"too many in flight"}
OBSERVED = [evict(0, 9), evict(1, 10)]
TRIED = [*OBSERVED, evict(0, 18, attempt=2)]
SILENT = [evict(0, 9), evict(1, 17.5), evict(0, 18, attempt=2)]


@pytest.mark.parametrize(
    ("commands", "said", "limit", "rules_broken"),
    [
        pytest.param([evict(0, 9), evict(1, 10)], [], {}, MANY, id="two"),
        pytest.param([evict(0, 9), evict(1, 10)], [], {"count": 2}, set(), id="two may be"),
        pytest.param([evict(0, 9), evict(1, 10)], [], {"of": "nodes"}, set(), id="on one node"),
        pytest.param([evict(0, 9), evict(1, 10, node="m")], [], {"of": "nodes"}, MANY, id="on two nodes"),
        pytest.param([evict(0, 9), evict(0, 10, attempt=2)], [], {}, set(), id="tried again"),
        pytest.param([evict(0, 9), evict(0, 10, "Cancel"), evict(1, 11)], [], {}, set(), id="cancelled"),
        pytest.param([evict(0, 9), evict(1, 10)], [pod(0, 9.5, is_deleted=True)], {}, set(), id="gone"),
        pytest.param([evict(0, 9), evict(1, 10)], [pod(0, 9.5, phase="Failed")], {}, set(), id="finished"),
        pytest.param([evict(0, 9), evict(1, 10)], [pod(0, 9.5)], {}, MANY, id="still there"),
        pytest.param([evict(0, 9), evict(1, 10)], [pod(0, 10.5, is_deleted=True)], {}, MANY, id="gone too late"),
        pytest.param(OBSERVED, [told(0, 9.5, "Observed")], {}, set(), id="observed"),
        pytest.param(TRIED, [told(0, 9.5, "Observed"), told(0, 17, "Refused")], {}, MANY, id="then tried"),
        pytest.param(SILENT, [told(0, 17, "Observed")], {}, set(), id="observed as it was tried"),
        pytest.param([evict(0, 9), evict(1, 80)], [], {}, set(), id="stuck"),
        pytest.param([evict(0, 1), evict(1, 2)], [], {}, set(), id="the limit was not known"),
    ],
)
def test_what_is_in_flight_is_counted(
    commands: list[SeenCommand], said: list[Statement], limit: dict[str, Any], rules_broken: set[str]
) -> None:
    assert wrong(commands, *said, **limit) == rules_broken


def outage(condition: dict[str, Any], *, ready: str = "Unknown") -> Story:
    story = Story().pod(5, tolerating(5)).node(6).node(10, TAINT, ready=ready).say("Schedule", 10.1)
    return story.brake(5, taints=["maintenance"], **{"while": condition})


@pytest.mark.parametrize("condition", [ZONE, {"zones": "allFull"}], ids=["zone", "all"])
def test_nothing_goes_in_an_outage(condition: dict[str, Any]) -> None:
    assert rules(outage(condition)) == set(), "it may wait"
    assert rules(done(outage(condition), 15.01)) == {"issued in an outage"}
    assert rules(done(outage(condition, ready="True"), 15.01)) == set()


def test_an_outage_that_may_be_over_holds_nothing() -> None:
    assert rules(done(outage(ZONE).node(14, TAINT), 15.01)) == set()
