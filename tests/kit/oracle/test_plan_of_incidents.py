"""The oracle on whole recordings, against numbers worked out by hand from what was done to the cluster."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from evictstream.models.instants import instant_us
from tests.harness.incidents import INCIDENTS, events_of
from tests.kit.demo.samples import Event
from tests.kit.oracle.plan import PodPlan
from tests.kit.oracle.written import plan_of


@functools.cache
def recorded(name: str) -> list[Event]:
    return events_of(INCIDENTS / f"{name}-no-evictor")


@functools.cache
def pods(name: str) -> dict[str, PodPlan]:
    """By name; of pods that had the same name one after the other the last."""
    return {one.pod: one for one in plan_of(recorded(name)).values()}


def totals(name: str) -> tuple[int, int, int, int]:
    """Scheduled, moved, cancelled, evicted."""
    courses = [one.course() for one in plan_of(recorded(name)).values()]
    return (
        sum(len(course.scheduled) for course in courses),
        sum(len(course.moved) for course in courses),
        sum(len(course.cancelled) for course in courses),
        sum(course.evicted_us is not None for course in courses),
    )


def first_taint_us(name: str, node: str) -> int:
    return next(
        instant_us(event["observedAt"])
        for event in recorded(name)
        if event["object"]["metadata"]["name"] == node
        and any(taint["effect"] == "NoExecute" for taint in event["object"]["spec"].get("taints", ()))
    )


def test_zone_outage() -> None:
    # Each node has two pods of each of seven kinds: agent, api, batch, cache, db, queue, web. On the six nodes of z-a
    # batch (0 s) and cache (10 s) go, 24 pods, and of the rest that wait for 30 s (api, queue, web) half, 18, because
    # three nodes return. n-001 and n-002 get a taint that only api (20 s) and queue (5 s) tolerate: 10 go at once and
    # 2 queues each; api goes only on n-002, where the taint stays.
    issued = 24 + 18 + 10 + 2 + 10 + 2 + 2
    cancelled = 18 + 2
    scheduled = 6 * (2 + 6) + 2 * 4
    assert totals("zone-outage-part-recovers") == (scheduled, 0, cancelled, issued)


def test_single_node() -> None:
    # 0 s and -1 s: 4 at once. 5 s: 6. 7 s and 9 s: 4. 20 s: 4. 30 s: 2. The node returns after 40 s, which takes back
    # 60 s and the two huge numbers: 6.
    assert totals("single-node-unreachable") == (22, 0, 6, 20)


def test_recovery() -> None:
    # Four kinds of three pods. Only 5 s is shorter than the first outage; all are shorter than the second.
    assert totals("recovery-before-deadline") == (12 + 9, 0, 9, 3 + 9)


@pytest.mark.slow
def test_flapping() -> None:
    # On each of four nodes 20 of 24 pods do not tolerate the taint forever; it stays on for the last 14 s.
    assert totals("flapping-taints")[3] == 80
    assert all(one.course().evicted_us is None for one in pods("flapping-taints").values() if "forever" in one.pod)


@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        ("several.k1-10-k2-5-k3-inf-n-000-0", 5),
        ("several.only-k1-n-000-0", 0),
        ("several.all-inf-n-000-0", None),
        ("several.exists-all-7-k2-3-n-000-0", 7),
        ("several.k2-3-exists-all-7-n-000-0", 3),
        ("several.k2-wrong-value-n-000-0", 0),
        ("mixed.k1-noschedule-only-n-001-0", 0),
        ("mixed.k1-5-n-001-0", 5),
        ("replace.k1-10-k2-none-n-002-0", 3),
        ("replace.k1-10-k2-inf-n-002-0", None),
        ("replace.k1-20-k2-6-n-002-0", 9),
        ("replace.k1-6-k2-20-n-002-0", 23),
        ("value.only-v1-n-003-0", 3),
        ("value.v1-10-v2-10-n-003-0", 13),
        ("addtol.8-then-prepend-inf-n-004-0", None),
        ("addtol.8-then-append-inf-n-004-0", 8),
        ("addtol.8-seconds-to-20-n-004-0", 20),
        ("addtol.20-seconds-to-6-n-004-0", 6),
        ("addtol.8-then-prepend-30-n-004-0", 30),
        ("nodedel.8-n-006-0", None),
        ("nodedel-recreate-clean.8-n-007-0", None),
        ("timeadded-past.8-n-008-0", 8),
        ("timeadded-future.8-n-009-0", 8),
        ("second-taint-shorter.k1-20-k2-4-n-010-0", 7),
        ("second-taint-untolerated.k1-20-n-010-0", 3),
        ("second-taint-longer.k1-8-k2-20-n-010-0", 8),
        ("first-removed.k1-5-k2-20-n-011-0", 20),
        ("first-removed.k1-5-k2-inf-n-011-0", None),
        ("recreate.at-once-other-node-n-005-0", None),
    ],
)
def test_taints_by_hand(case: str, seconds: float | None) -> None:
    """Seconds from the node's first taint; what is done to it later is done about 3 s later."""
    found = pods("manual-taints")[case]
    evicted_us = found.course().evicted_us
    if seconds is None:
        assert evicted_us is None
    else:
        assert evicted_us is not None
        assert (evicted_us - first_taint_us("manual-taints", found.node)) / 1e6 == pytest.approx(seconds, abs=0.2)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda events: [event for event in events for _ in range(2)], id="each event twice", marks=pytest.mark.slow
        ),
        pytest.param(lambda events: [*events, *events[:200]], id="old events again"),
    ],
)
def test_repeated_input_changes_nothing(change: Callable[[list[Event]], list[Event]]) -> None:
    events = recorded("manual-taints")
    assert plan_of(change(list(events))) == plan_of(events)
