"""semantics.md 6.4 to 6.6, 6.12 and 6.13, row by row: `keep` means that the old timer was left as it is."""

from __future__ import annotations

import pytest

from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from tests.kit.upstream.taint_eviction.stage import (
    A,
    B,
    Stage,
    Step,
    case,
    node,
    node_gone,
    pod,
    pod_gone,
    restart,
    tol,
)

A_V1 = Taint("a", "v1", NO_EXECUTE)
A_V2 = Taint("a", "v2", NO_EXECUTE)
A_SCHEDULE = Taint("a", "", NO_SCHEDULE)


WAITING = [node(0, A), pod(0, tol("a", 100))]  # a timer from 0 to 100

STEP_BY_STEP = [
    case("6.12 node added without NoExecute taints", [pod(0), node(1)]),
    case("6.12 node added with NoExecute taints, pod bound already", [pod(0), node(1, A)], "1 delete p1"),
    case(
        "6.12 node added with NoExecute taints, every pod handled",
        [pod(0), pod(0, tol("a", 5), name="p2"), pod(0, tol("a"), name="p3"), node(1, A)],
        "1 set p2 6",
        "1 delete p1",
        "6 delete p2",
    ),
    case(
        "6.12 node updated, NoExecute taints unchanged",
        [*WAITING, node(5, A), pod_gone(9)],
        "0 set p1 100",
        "9 cancel p1",
    ),
    case(
        "6.12 node updated, only its other taints changed",
        [*WAITING, node(5, A, A_SCHEDULE), node(6, A)],
        "0 set p1 100",
        "100 delete p1",
    ),
    case("6.12 NoExecute taint added, untolerated", [node(0), pod(0), node(7, A)], "7 delete p1"),
    case(
        "6.12 NoExecute taint added, tolerated for a while",
        [node(0), pod(0, tol("a", 30)), node(7, A)],
        "7 set p1 37",
        "37 delete p1",
    ),
    case(
        "6.12 NoExecute taint added, they get a timer unless they have one",
        [node(0, A), pod(0, tol("", 30)), node(7, A, B)],
        "0 set p1 30",
        "7 keep p1 30",
        "30 delete p1",
    ),
    case("6.12 NoExecute taint added, tolerated forever", [node(0), pod(0, tol("a")), node(7, A)]),
    case(
        "6.12 one of several removed, the rest tolerated forever",
        [node(0, A, B), pod(0, tol("a", 30), tol("b")), node(7, B)],
        "0 set p1 30",
        "7 cancel p1",
    ),
    case(
        "6.12 one of several removed, the rest tolerated for a while",
        [node(0, A, B), pod(0, tol("a", 30), tol("b", 60)), node(7, B)],
        "0 set p1 30",
        "7 keep p1 30",
        "30 delete p1",
    ),
    case(
        "6.12 last NoExecute taint removed, all timers of the node cancelled",
        [node(0, A), pod(0, tol("a", 30)), pod(1, tol("a", 40), name="p2"), node(7)],
        "0 set p1 30",
        "1 set p2 41",
        "7 cancel p1",
        "7 cancel p2",
    ),
    case(
        "6.12 last NoExecute taint removed, other nodes are not concerned",
        [node(0, A), node(0, A, name="n2"), pod(0, tol("a", 30)), pod(0, tol("a", 30), name="p2", on="n2"), node(7)],
        "0 set p1 30",
        "0 set p2 30",
        "7 cancel p1",
        "30 delete p2",
    ),
    case(
        "6.12 value of a taint changed, untolerated now",
        [node(0, A_V1), pod(0, tol("a", 30, "v1")), node(7, A_V2)],
        "0 set p1 30",
        "7 cancel p1",
        "7 delete p1",
    ),
    case(
        "6.12 value of a taint changed, still tolerated",
        [node(0, A_V1), pod(0, tol("a", 30)), node(7, A_V2)],
        "0 set p1 30",
        "7 keep p1 30",
        "30 delete p1",
    ),
    case(
        "6.12 value of a taint changed, tolerated forever now",
        [node(0, A_V1), pod(0, tol("a", 30, "v1"), tol("a", None, "v2")), node(7, A_V2)],
        "0 set p1 30",
        "7 cancel p1",
    ),
    case("6.12 effect changed from NoExecute", [*WAITING, node(7, A_SCHEDULE)], "0 set p1 100", "7 cancel p1"),
    case(
        "6.12 effect changed to NoExecute",
        [node(0, A_SCHEDULE), pod(0, tol("a", 30)), node(7, A)],
        "7 set p1 37",
        "37 delete p1",
    ),
    case("6.12 node deleted, timers stay", [*WAITING, node_gone(7)], "0 set p1 100", "100 delete p1"),
    case("6.12 node deleted, then a pod arrives: no entry", [node(0, A), node_gone(7), pod(8)]),
    case("6.12 pod added, unbound", [node(0, A), pod(1, on="")]),
    case(
        "6.12 pod added, bound to a tainted node", [node(0, A), pod(50, tol("a", 30))], "50 set p1 80", "80 delete p1"
    ),
    case("6.12 pod becomes bound", [node(0, A), pod(1, on=""), pod(50)], "50 delete p1"),
    case(
        "6.12 pod becomes bound, window starts now however old the taint is",
        [node(0, A), pod(1, tol("a", 30), on=""), pod(500, tol("a", 30))],
        "500 set p1 530",
        "530 delete p1",
    ),
    case("6.12 pod added, node not known yet", [pod(0, tol("a", 5), on="n9")]),
    case(
        "6.12 pod added, node not known yet, handled when it arrives",
        [pod(0, tol("a", 5)), node(60, A)],
        "60 set p1 65",
        "65 delete p1",
    ),
    case(
        "6.12 tolerations edited, node tainted: the new one covers",
        [*WAITING, pod(7, tol("a"), tol("a", 100))],
        "0 set p1 100",
        "7 cancel p1",
    ),
    case("6.12 tolerations edited, node not tainted", [node(0), pod(0), pod(7, tol("a", 5))]),
    case(
        "6.12 labels, status, phase, conditions change",
        [*WAITING, pod(7, tol("a", 100), phase="Failed")],
        "0 set p1 100",
        "100 delete p1",
    ),
    case(
        "6.12 pod starts to terminate, its timer still fires",
        [*WAITING, pod(7, tol("a", 100), terminating=True)],
        "0 set p1 100",
        "100 delete p1",
    ),
    case("6.12 pod deleted", [*WAITING, pod_gone(7)], "0 set p1 100", "7 cancel p1"),
    case(
        "6.12 restart, windows start now",
        [*WAITING, restart(40)],
        "0 set p1 100",
        "40 set p1 140",
        "40 keep p1 140",
        "140 delete p1",
    ),
    case(
        "6.12 restart, what is untolerated goes at once",
        [node(0, A), pod(0), restart(40)],
        "0 delete p1",
        "40 delete p1",  # by the key of its node
        "40 delete p1",  # and by its own, which finds the first one running and removes its key (6.6.1, 6.8)
    ),
]

EDGE_CASES = [
    case("6.13 pod without tolerations, node without NoExecute taints", [node(0, A_SCHEDULE), pod(0)]),
    case("6.13 toleration with another effect", [node(0, A), pod(0, tol("a", effect=NO_SCHEDULE))], "0 delete p1"),
    case(
        "6.13 toleration with effect PreferNoSchedule",
        [node(0, A), pod(0, tol("a", effect=PREFER_NO_SCHEDULE))],
        "0 delete p1",
    ),
    case("6.13 toleration without effect helps forever", [node(0, A), pod(0, tol("a", effect=""))]),
    case(
        "6.13 Exists, NoExecute, n seconds: every NoExecute taint",
        [node(0, A, B), pod(0, tol("", 12))],
        "0 set p1 12",
        "12 delete p1",
    ),
    case("6.13 negative seconds as 0", [node(0, A), pod(0, tol("a", -5))], "0 delete p1"),
    case("6.13 zero seconds", [node(0, A), pod(0, tol("a", 0))], "0 delete p1"),
    case(
        "6.13 two taints, 1 s and 100 s",
        [node(0, A, B), pod(0, tol("a", 1), tol("b", 100))],
        "0 set p1 1",
        "1 delete p1",
    ),
    case(
        "6.13 two taints, forever and 60 s",
        [node(0, A, B), pod(0, tol("a"), tol("b", 60))],
        "0 set p1 60",
        "60 delete p1",
    ),
    case(
        "6.13 two taints, forever and 60 s, the second goes",
        [node(0, A, B), pod(0, tol("a"), tol("b", 60)), node(20, A)],
        "0 set p1 60",
        "20 cancel p1",
    ),
    case("6.13 two taints, one untolerated", [node(0, A, B), pod(0, tol("a", 60))], "0 delete p1"),
    case(
        "6.13 pod arrives 50 s after the taint, tolerates 30 s",
        [node(0, A), pod(50, tol("a", 30))],
        "50 set p1 80",
        "80 delete p1",
    ),
    case(
        "6.13 same name in two namespaces",
        [node(0, A), pod(0, tol("a", 5)), pod(0, tol("a", 9), namespace="other"), pod_gone(3)],
        "0 set p1 5",
        "0 set other/p1 9",
        "3 cancel p1",
        "9 delete other/p1",
    ),
    case(
        "6.13 node removed and added again, taints of the new object count",
        [node(0, A), node_gone(5), node(9, B), pod(10, tol("a"))],
        "10 delete p1",
    ),
    case(
        "6.13 node removed and added again clean, the old timer is cancelled by the new object",
        [*WAITING, node_gone(5), node(9)],
        "0 set p1 100",
        "9 cancel p1",
    ),
    case(
        "6.13 node removed and added again tainted, the old timer still runs",
        [*WAITING, node_gone(5), node(9, A)],
        "0 set p1 100",
        "9 keep p1 100",
        "100 delete p1",
    ),
    case("6.13 node tainted and pod bound at the same time, node first", [node(0), node(3, A), pod(3)], "3 delete p1"),
    case("6.13 node tainted and pod bound at the same time, pod first", [node(0), pod(3), node(3, A)], "3 delete p1"),
]

HANDLING = [
    case(
        "6.5.2 created again on another, clean node, seen as one update: nothing is cancelled",
        [*WAITING, node(0, name="n2"), pod(50, tol("a", 100), on="n2", uid="another")],
        "0 set p1 100",
        "100 delete p1",
    ),
    case(
        "6.5.4 pod handled after its node was deleted: nothing is cancelled",
        [*WAITING, node_gone(10), pod(20, tol("a"))],
        "0 set p1 100",
        "100 delete p1",
    ),
    case("6.5.1 pod deleted on a clean node: nothing to cancel", [node(0), pod(0), pod_gone(5)]),
    case("6.5.1 pod deleted that was never bound", [node(0, A), pod(0, on=""), pod_gone(5)]),
    case("6.4.1 deleted node that was never seen", [node_gone(0), pod(1)]),
    case(
        "6.4.4 taints gone, a pod that arrived without timer is passed over",
        [node(0, A), pod(0, tol("a")), node(5)],
    ),
    case(
        "6.4.5 all pods share one now",
        [pod(0, tol("a", 5)), pod(1, tol("a", 5), name="p2"), node(10, A)],
        "10 set p1 15",
        "10 set p2 15",
        "15 delete p1",
        "15 delete p2",
    ),
    case(
        "6.6.1 tolerated for a while, then not at all: cancelled and evicted now",
        [*WAITING, pod(10)],
        "0 set p1 100",
        "10 cancel p1",
        "10 delete p1",
    ),
    case(
        "6.6.1 evicted, and looked at again while still there: deleted again",
        [node(0, A), pod(0), node(5, A, B)],
        "0 delete p1",
        "5 delete p1",
    ),
    case(
        "3.4 the first matching toleration is in use, not the longest",
        [node(0, A), pod(0, tol("", 5), tol("a"))],
        "0 set p1 5",
        "5 delete p1",
    ),
    case("3.4 a toleration for a taint that is not there does not count", [node(0, A), pod(0, tol("b", 5), tol("a"))]),
]


@pytest.mark.parametrize(("steps", "log"), [*STEP_BY_STEP, *EDGE_CASES, *HANDLING])
def test_course(steps: list[Step], log: list[str]) -> None:
    assert Stage().play(steps).log == log
