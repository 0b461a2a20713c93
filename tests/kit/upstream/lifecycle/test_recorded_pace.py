"""Slow rounds beside recordings: with the pace of the recorded controller, writes come in the recorded rhythm.

In `zone-dead` ten nodes with ten pods each fall silent at once, at 20 requests per second. Pods are not in the trimmed
recording: the instants of their writes are those of the whole one.
"""

from __future__ import annotations

import pytest

from evictstream.kit.upstream.lifecycle import (
    ClusterChange,
    ConditionsWritten,
    PodsMarkedNotReady,
    RequestPace,
    ZoneTurned,
    plausible_paces,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE
from tests.kit.upstream.lifecycle.recorded import Recorded, instant_us, read_recorded, recorded_turns
from tests.kit.upstream.lifecycle.test_incidents import INCIDENTS, SECOND_US, Replay, apart_us
from tests.kit.upstream.taint_range import taint_range

INCIDENT = next(one for one in INCIDENTS if one.name == "zone-dead")
FIRST_POD_US = instant_us("2026-11-21T10:15:43.055Z")
LAST_POD_US = instant_us("2026-11-21T10:15:49.137Z")


@pytest.fixture(scope="module")
def played() -> tuple[Recorded, Replay]:
    recorded = read_recorded(INCIDENT.name)
    # In the order of NoSchedule taints, as the round went: that of NoExecute taints is the order of a later round.
    replay = Replay(INCIDENT, recorded, finds_silence=True, pace=RequestPace(), pods_on_each=10, ordered_by=NO_SCHEDULE)
    replay.run(recorded)
    return recorded, replay


def test_all_pods_are_marked_over_the_recorded_six_seconds(played: tuple[Recorded, Replay]) -> None:
    marks = [change.at_us for change in played[1].changes if isinstance(change, PodsMarkedNotReady)]
    assert len(marks) == 100
    assert abs(marks[0] - FIRST_POD_US) < SECOND_US // 10
    assert abs(marks[-1] - LAST_POD_US) < SECOND_US // 10


def test_ninth_and_tenth_node_wait_for_a_free_worker(played: tuple[Recorded, Replay]) -> None:
    written = [change for change in played[1].changes if isinstance(change, ConditionsWritten)]
    late = [change for change in written if change.at_us > FIRST_POD_US]
    assert [change.node for change in late] == ["n-027", "n-015"]
    recorded_us = instant_us("2026-11-21T10:15:47.387Z")
    assert all(abs(change.at_us - recorded_us) < SECOND_US // 5 for change in late)


def test_the_zone_turns_when_the_last_pod_is_marked(played: tuple[Recorded, Replay]) -> None:
    turned = [change for change in played[1].changes if isinstance(change, ZoneTurned)]
    marks = [change.at_us for change in played[1].changes if isinstance(change, PodsMarkedNotReady)]
    assert [change.at_us for change in turned if change.after == "FullDisruption"] == [marks[-1]]


def test_taints_come_and_go_within_a_second_of_the_recorded(played: tuple[Recorded, Replay]) -> None:
    """Also the two NoSchedule taints for which rounds that take no time are four seconds early.

    Nodes take turns in the queue in the order of the last round, so NoExecute taints are compared without their names.
    """
    expected, got = recorded_turns(played[0].sights), played[1].turns()
    assert expected.keys() == got.keys()
    queued = [turn for turn in expected if turn.sign == "+" and turn.taint.endswith(NO_EXECUTE)]
    others = expected.keys() - queued
    assert max(apart_us(expected[turn], got[turn]) for turn in others) < SECOND_US
    assert (
        apart_us(*(sorted(at_us for turn in queued for at_us in turns[turn]) for turns in (expected, got))) < SECOND_US
    )


def test_first_no_execute_taint_waits_among_all_other_requests(played: tuple[Recorded, Replay]) -> None:
    """1.1 s from the pass to its second request; without the client's limiter it takes milliseconds."""
    first_us, recorded_us = (
        min(times[0] for turn, times in turns.items() if turn.sign == "+" and turn.taint.endswith(NO_EXECUTE))
        for turns in (played[1].turns(), recorded_turns(played[0].sights))
    )
    assert first_us - FIRST_POD_US > SECOND_US
    assert abs(first_us - recorded_us) < SECOND_US // 5


@pytest.mark.parametrize(
    ("name", "known", "pods_on_each"),
    [
        pytest.param("zone-dead", RequestPace(), 10, id="zone-dead: ten nodes, one each 10 s", marks=pytest.mark.slow),
        pytest.param(
            "zone-outage-part-recovers",
            RequestPace(requests_per_second=200, burst=400),
            14,
            id="zone-outage-part-recovers: six nodes at once",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_range_contains_the_recorded_taints(name: str, known: RequestPace, pods_on_each: int) -> None:
    incident = next(one for one in INCIDENTS if one.name == name)
    recorded = read_recorded(name)

    def play(pace: RequestPace) -> list[ClusterChange]:
        replay = Replay(incident, recorded, finds_silence=True, pace=pace, pods_on_each=pods_on_each)
        replay.run(recorded)
        return replay.changes

    fewest, most = taint_range(play, (), recorded.sights[-1].at_us, plausible_paces(known)).taints
    turns = recorded_turns(recorded.sights)
    tainted = {turn.node for turn in turns if turn.sign == "+" and turn.taint.endswith(NO_EXECUTE)}
    assert fewest <= len(tainted) <= most
