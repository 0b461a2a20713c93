"""The plan against tables made by hand from the specification; ids name its sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.kit.demo.samples import NOT_READY, START_US, UNREACHABLE, Event, node, pod, taint, tolerates
from tests.kit.oracle.plan import PodPlan
from tests.kit.oracle.written import plan_of

UR, NR = taint(UNREACHABLE), taint(NOT_READY)


@dataclass(frozen=True)
class Case:
    """Events, and what they have to lead to for the first pod; seconds."""

    events: list[Event]
    scheduled: tuple[float, ...] = ()
    moved: tuple[float, ...] = ()
    cancelled: tuple[str, ...] = ()
    evicted: float | None = None


def both(ur: int | None, nr: int | None) -> Event:
    """A pod from the start that tolerates both health taints."""
    return pod(0, tolerates(UNREACHABLE, ur), tolerates(NOT_READY, nr), kind="ADDED")


def alive(seconds: float, uid: str = "node-2", **more: Any) -> Event:
    """Another node of the cluster, which is ready."""
    return node(seconds, name="n-2", uid=uid, **more)


def excluded(seconds: float) -> Event:
    """The same, labelled so that it does not count for its zone."""
    event = alive(seconds)
    event["object"]["metadata"]["labels"] = {"node.kubernetes.io/exclude-disruption": ""}
    return event


CASES = {
    "12.4 window opens when taint comes second": Case(
        [node(0), pod(1, tolerates(seconds=5)), node(2, taint())], scheduled=(7,), evicted=7
    ),
    "12.4 window opens when pod comes second": Case(
        [node(0, taint()), pod(2, tolerates(seconds=5))], scheduled=(7,), evicted=7
    ),
    "12.4 window opens when pod becomes bound": Case(
        [node(0, taint()), pod(1, tolerates(seconds=5), node_name=None), pod(3, tolerates(seconds=5))],
        scheduled=(8,),
        evicted=8,
    ),
    "12.4 node known after pod": Case([pod(0, tolerates(seconds=5)), node(2, taint())], scheduled=(7,), evicted=7),
    "12.4 taint that comes back opens a new window": Case(
        [node(0, taint()), pod(1, tolerates(seconds=9)), node(5), node(6, taint())],
        scheduled=(10, 15),
        cancelled=("TaintRemoved",),
        evicted=15,
    ),
    "12.4 other effect closes the window": Case(
        [node(0, taint()), pod(1, tolerates(seconds=9)), node(5, taint(effect="NoSchedule"))],
        scheduled=(10,),
        cancelled=("TaintRemoved",),
    ),
    "12.4 a value that counts begins a window": Case(
        [
            node(0, taint(value="a")),
            pod(1, tolerates(operator="Equal", value="a"), tolerates(seconds=9, operator="Equal", value="b")),
            node(5, taint(value="b")),
        ],
        scheduled=(14,),
        evicted=14,
    ),
    "12.4 a value that one before it looks at begins a window": Case(
        [
            node(0, taint(value="a")),
            pod(1, tolerates(seconds=2, operator="Equal", value="c"), tolerates(seconds=9)),
            node(5, taint(value="b")),
        ],
        scheduled=(10,),
        moved=(14,),
        evicted=14,
    ),
    "12.5 no bound of an outage for another value": Case(
        [
            node(0, taint(NOT_READY, value="a")),
            pod(
                0, tolerates(NOT_READY, 9, operator="Equal", value="b"), tolerates(NOT_READY), tolerates(UNREACHABLE, 9)
            ),
            node(20, taint(NOT_READY, value="b")),
        ],
        scheduled=(29,),
        evicted=29,
    ),
    "12.4 another value under Exists keeps the window": Case(
        [node(0, taint(value="a")), pod(1, tolerates(seconds=9)), node(5, taint(value="b"))],
        scheduled=(10,),
        evicted=10,
    ),
    "12.4 later timeAdded is a missed removal": Case(
        [
            node(0, taint(timeAdded="2026-01-01T00:00:00Z")),
            pod(1, tolerates(seconds=9)),
            node(5, taint(timeAdded="2026-01-01T00:00:04Z")),
        ],
        scheduled=(10,),
        moved=(14,),
        evicted=14,
    ),
    "12.4 earlier timeAdded keeps the window": Case(
        [
            node(0, taint(timeAdded="2026-01-01T00:00:04Z")),
            pod(1, tolerates(seconds=9)),
            node(5, taint(timeAdded="2026-01-01T00:00:00Z")),
        ],
        scheduled=(10,),
        evicted=10,
    ),
    "12.4 timeAdded that appears and vanishes keeps the window": Case(
        [
            node(0, taint()),
            pod(1, tolerates(seconds=9)),
            node(5, taint(timeAdded="2026-01-01T00:00:04Z")),
            node(6, taint()),
        ],
        scheduled=(10,),
        evicted=10,
    ),
    "12.4 swap of health taints is one outage": Case(
        [node(0, NR), both(30, 30), node(20, UR)], scheduled=(30,), evicted=30
    ),
    "12.4 gap of 5 s while not ready is one outage": Case(
        [node(0, UR), both(30, 30), node(10, ready="Unknown"), node(15, UR)],
        scheduled=(30, 30),
        cancelled=("TaintRemoved",),
        evicted=30,
    ),
    "12.4 gap of more than 5 s is a fresh start": Case(
        [node(0, UR), both(30, 30), node(10, ready="Unknown"), node(15.001, UR)],
        scheduled=(30, 45.001),
        cancelled=("TaintRemoved",),
        evicted=45.001,
    ),
    "12.4 gap of any length goes on while another node stays ready": Case(
        [alive(0), node(1, UR), both(30, 30), node(10, ready="Unknown"), alive(15), node(20, UR)],
        scheduled=(31, 31),
        cancelled=("TaintRemoved",),
        evicted=31,
    ),
    **{
        f"12.4 long gap is a fresh start: the other node {what}": Case(
            [
                alive(0),
                node(1, UR),
                both(30, 30),
                node(10, ready="Unknown"),
                between,
                alive(13, uid),
                node(20, UR),
            ],
            scheduled=(31, 50),
            cancelled=("TaintRemoved",),
            evicted=50,
        )
        for what, between, uid in (
            ("was not ready", alive(12, ready="False"), "node-2"),
            ("was listed", alive(12, kind="ADDED"), "node-2"),
            ("was gone", alive(12, kind="DELETED"), "node-3"),
            ("is another one", alive(12, "node-3"), "node-3"),
            ("does not count", excluded(12), "node-2"),
            ("was told again, not ready", alive(12, ready="Unknown", version=100), "node-2"),
        )
    },
    "12.4 long gap is a fresh start: the other node is ready since then": Case(
        [node(1, UR), both(30, 30), alive(2), node(10, ready="Unknown"), node(20, UR)],
        scheduled=(31, 50),
        cancelled=("TaintRemoved",),
        evicted=50,
    ),
    "12.4 long gap is a fresh start: the node was listed": Case(
        [alive(0), node(1, UR), both(30, 30), node(10, ready="Unknown"), node(20, UR, kind="ADDED")],
        scheduled=(31, 50),
        cancelled=("TaintRemoved",),
        evicted=50,
    ),
    "12.4 gap while ready is a fresh start": Case(
        [node(0, UR), both(30, 30), node(10, ready="True"), node(11, UR)],
        scheduled=(30, 41),
        cancelled=("TaintRemoved",),
        evicted=41,
    ),
    "12.4 gap in which Ready is not reported is a fresh start": Case(
        [node(0, UR), both(30, 30), node(10, ready=None), node(11, UR)],
        scheduled=(30, 41),
        cancelled=("TaintRemoved",),
        evicted=41,
    ),
    "12.5.4 no taint is given less than its own seconds in a young outage": Case(
        [node(0, NR), both(60, 30), node(20, UR)], scheduled=(30,), moved=(60,), evicted=60
    ),
    "12.5.4 other health taint not tolerated counts as 0": Case(
        [node(0, UR), pod(0, tolerates(UNREACHABLE, 30))], scheduled=(30,), evicted=30
    ),
    "12.5.4 other health taint tolerated forever is no bound": Case(
        [node(0, NR), both(30, None), node(20, UR)], scheduled=(50,), evicted=50
    ),
    "12.5.4 bound counts from the first sight of the pod": Case(
        [node(0, NR), pod(20, tolerates(UNREACHABLE, 30), tolerates(NOT_READY, 30)), node(40, UR)],
        scheduled=(50,),
        evicted=50,
    ),
    "12.5.3 untolerated is due at once": Case([node(0), pod(1), node(2, taint())], evicted=2),
    "12.5.3 one untolerated taint is enough": Case(
        [node(0, taint()), pod(1, tolerates(seconds=60)), node(5, taint(), taint("j"))], scheduled=(61,), evicted=5
    ),
    "12.5 tolerated forever": Case([node(0, taint()), pod(1, tolerates())]),
    "12.5 negative seconds are 0": Case([node(0, taint()), pod(1, tolerates(seconds=-7))], evicted=1),
    "12.5.4 past the year 9999 is no deadline": Case([node(0, taint()), pod(1, tolerates(seconds=10**12))]),
    "12.5.1 mirror pod": Case([node(0, taint()), pod(1, annotations={"kubernetes.io/config.mirror": "x"})]),
    "12.5.1 finished pod": Case([node(0, taint()), pod(1, phase="Succeeded")]),
    "12.5.1 failed pod": Case([node(0, taint()), pod(1, phase="Failed")]),
    "12.5.1 terminating pod": Case([node(0, taint()), pod(1, deletionTimestamp="2026-01-01T00:00:01Z")]),
    "12.5.1 unbound pod": Case([node(0, taint()), pod(1, node_name=None)]),
    "12.5.1 unknown node": Case([pod(1)]),
    "12.5 NoSchedule evicts nobody": Case([node(0, taint(effect="NoSchedule")), pod(1)]),
    "12.7 seconds 100 changed to 30 at 10": Case(
        [node(0, taint()), pod(0, tolerates(seconds=100)), pod(10, tolerates(seconds=30))],
        scheduled=(100,),
        moved=(30,),
        evicted=30,
    ),
    "12.7 changed to 30 at 50": Case(
        [node(0, taint()), pod(0, tolerates(seconds=100)), pod(50, tolerates(seconds=30))], scheduled=(100,), evicted=50
    ),
    "12.7 changed to 0 at 10": Case(
        [node(0, taint()), pod(0, tolerates(seconds=100)), pod(10, tolerates(seconds=0))], scheduled=(100,), evicted=10
    ),
    "12.7 seconds 1 changed to 100 at 0.5": Case(
        [node(0, taint()), pod(0, tolerates(seconds=1)), pod(0.5, tolerates(seconds=100))],
        scheduled=(1,),
        moved=(100,),
        evicted=100,
    ),
    "12.7 second taint at 10 with 5": Case(
        [node(0, taint()), pod(0, tolerates(seconds=100), tolerates("j", 5)), node(10, taint(), taint("j"))],
        scheduled=(100,),
        moved=(15,),
        evicted=15,
    ),
    "12.7 first taint removed at 20, second since 10 stays": Case(
        [
            node(0, taint()),
            pod(0, tolerates(seconds=60), tolerates("j", 100)),
            node(10, taint(), taint("j")),
            node(20, taint("j")),
        ],
        scheduled=(60,),
        moved=(110,),
        evicted=110,
    ),
    "12.7 toleration forever added before": Case(
        [node(0, taint()), pod(0, tolerates(seconds=9)), pod(5, tolerates(), tolerates(seconds=9))],
        scheduled=(9,),
        cancelled=("Tolerated",),
    ),
    "12.7 node deleted": Case(
        [node(0, taint()), pod(0, tolerates(seconds=9)), node(5, taint(), kind="DELETED")],
        scheduled=(9,),
        cancelled=("NodeGone",),
    ),
    "12.7 node registered again": Case(
        [node(0, taint()), pod(0, tolerates(seconds=9)), node(5, taint(), uid="node-2")],
        scheduled=(9, 14),
        cancelled=("NodeGone",),
        evicted=14,
    ),
    "12.7 pod deleted": Case(
        [node(0, taint()), pod(0, tolerates(seconds=9)), pod(5, kind="DELETED")],
        scheduled=(9,),
        cancelled=("PodGone",),
    ),
    "12.7 pod finishes": Case(
        [node(0, taint()), pod(0, tolerates(seconds=9)), pod(5, tolerates(seconds=9), phase="Failed")],
        scheduled=(9,),
        cancelled=("PodFinished",),
    ),
    "12.7 pod terminates and is gone in the same instant": Case(
        [
            node(0, taint()),
            pod(0, tolerates(seconds=9)),
            pod(5, tolerates(seconds=9), deletionTimestamp="2026-01-01T00:00:05Z", version=5100),
            pod(5, kind="DELETED", version=5101),
        ],
        scheduled=(9,),
        cancelled=("PodTerminating",),
    ),
    "12.3 pod replaced under its name": Case(
        [node(0, taint()), pod(0, tolerates(seconds=9)), pod(5, tolerates(seconds=9), uid="pod-2")],
        scheduled=(9,),
        cancelled=("PodReplaced",),
    ),
    "12.3 older version is dropped": Case(
        [node(0, version=9), pod(0), node(1, taint(), version=8)],
    ),
    "12.3 repeated input changes nothing": Case(
        [node(0, taint()), pod(0, tolerates(seconds=9)), pod(4, tolerates(seconds=9), version=100), node(5, taint())],
        scheduled=(9,),
        evicted=9,
    ),
    "12.3 an older version of a deleted UID does not come back": Case(
        [node(0), pod(0), pod(1, kind="DELETED"), node(2, taint()), pod(3, version=1_050)],
    ),
}


def planned(events: list[Event]) -> dict[str, PodPlan]:
    return plan_of(events)


def in_seconds(pod_plan: PodPlan | None) -> Case:
    if pod_plan is None:  # it was never bound
        return Case(events=[])
    course = pod_plan.course()

    def seconds(instant_us: int) -> float:
        return (instant_us - START_US) / 1_000_000

    return Case(
        events=[],
        scheduled=tuple(map(seconds, course.scheduled)),
        moved=tuple(map(seconds, course.moved)),
        cancelled=tuple("/".join(sorted(why)) for why in course.cancelled),
        evicted=None if course.evicted_us is None else seconds(course.evicted_us),
    )


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_happens_to_a_pod(case: Case) -> None:
    found = in_seconds(planned(case.events).get("pod-1"))
    # Of a pod that is tolerated forever both words are named; which one holds depends on the command's taint.
    cancelled = tuple(why.replace("TaintRemoved/Tolerated", "Tolerated") for why in found.cancelled)
    assert (found.scheduled, found.moved, cancelled, found.evicted) == (
        case.scheduled,
        case.moved,
        case.cancelled,
        case.evicted,
    )


def test_the_next_pod_of_a_name_gets_its_own_window() -> None:
    events = [node(0, taint()), pod(0, tolerates(seconds=9)), pod(5, tolerates(seconds=9), uid="pod-2")]
    assert in_seconds(planned(events)["pod-2"]).scheduled == (14,)


def test_clusters_are_kept_apart() -> None:
    events = [node(0, taint()), pod(1)]
    events.append(pod(1, uid="pod-2") | {"cluster": "other"})
    assert planned(events)["pod-1"].course().evicted_us is not None
    assert planned(events)["pod-2"].course().evicted_us is None
