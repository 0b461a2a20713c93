"""semantics.md 6.7, row by row: the deadline never moves; `keep` means that the old timer was left as it is."""

from __future__ import annotations

import pytest

from evictstream.models.kubernetes import NO_EXECUTE, NOT_READY, UNREACHABLE, Taint
from tests.kit.upstream.taint_eviction.stage import A, B, Stage, Step, case, node, pod, pod_gone, restart, tol

SICK = Taint(NOT_READY, "", NO_EXECUTE)
SILENT = Taint(UNREACHABLE, "", NO_EXECUTE)
WAITING = [node(0, A), pod(0, tol("a", 100))]  # a timer from 0 to 100

NEVER_MOVES = [
    case(
        "6.7 seconds made longer",
        [node(0, A), pod(0, tol("a", 10)), pod(5, tol("a", 100))],
        "0 set p1 10",
        "5 keep p1 10",
        "10 delete p1",
    ),
    case(
        "6.7 seconds made shorter", [*WAITING, pod(5, tol("a", 20))], "0 set p1 100", "5 keep p1 100", "100 delete p1"
    ),
    case(
        "6.7 seconds made shorter than what has passed",
        [*WAITING, pod(50, tol("a", 20))],
        "0 set p1 100",
        "50 keep p1 100",
        "100 delete p1",
    ),
    case("6.7 seconds set to 0", [*WAITING, pod(5, tol("a", 0))], "0 set p1 100", "5 keep p1 100", "100 delete p1"),
    case("6.7 seconds taken away: forever", [*WAITING, pod(5, tol("a"))], "0 set p1 100", "5 cancel p1"),
    case(
        "6.7 order of the tolerations changed",
        [node(0, A), pod(0, tol("a", 10), tol("", 50)), pod(5, tol("", 50), tol("a", 10))],
        "0 set p1 10",
        "5 keep p1 10",
        "10 delete p1",
    ),
    case(
        "6.7 another taint with a shorter toleration",
        [node(0, A), pod(0, tol("a", 100), tol("b", 5)), node(10, A, B)],
        "0 set p1 100",
        "10 keep p1 100",
        "100 delete p1",
    ),
    case(
        "6.7 another taint with 0 s",
        [node(0, A), pod(0, tol("a", 100), tol("b", 0)), node(10, A, B)],
        "0 set p1 100",
        "10 keep p1 100",
        "100 delete p1",
    ),
    case(
        "6.7 another taint, untolerated, is no exception to 6.6",
        [*WAITING, node(10, A, B)],
        "0 set p1 100",
        "10 cancel p1",
        "10 delete p1",
    ),
    case(
        "6.7 the deciding taint goes, another finite one stays",
        [node(0, A, B), pod(0, tol("a", 10), tol("b", 100)), node(5, B)],
        "0 set p1 10",
        "5 keep p1 10",
        "10 delete p1",
    ),
    case(
        "6.7 the deciding taint is replaced",
        [node(0, A), pod(0, tol("a", 10), tol("b", 100)), node(5, B)],
        "0 set p1 10",
        "5 keep p1 10",
        "10 delete p1",
    ),
    case(
        "6.7 not-ready is swapped for unreachable in one update",
        [node(0, SICK), pod(0, tol(NOT_READY, 300), tol(UNREACHABLE, 300)), node(40, SILENT)],
        "0 set p1 300",
        "40 keep p1 300",
        "300 delete p1",
    ),
    case(
        "6.7 not-ready is swapped for unreachable over both",
        [
            node(0, SICK),
            pod(0, tol(NOT_READY, 300), tol(UNREACHABLE, 300)),
            node(40, SICK, SILENT),
            node(40.005, SILENT),
        ],
        "0 set p1 300",
        "40 keep p1 300",
        "40.005 keep p1 300",
        "300 delete p1",
    ),
    case(
        "6.7 another timeAdded",
        [node(0, Taint("a", "", NO_EXECUTE, 1)), pod(0, tol("a", 100)), node(10, Taint("a", "", NO_EXECUTE, 2))],
        "0 set p1 100",
        "10 keep p1 100",
        "100 delete p1",
    ),
    case(
        "6.7 timeAdded is never read",
        [node(0, Taint("a", "", NO_EXECUTE, -(10**15))), pod(0, tol("a", 100))],
        "0 set p1 100",
        "100 delete p1",
    ),
    case(
        "6.7 taint removed, later added again",
        [*WAITING, node(10), node(30, A)],
        "0 set p1 100",
        "10 cancel p1",
        "30 set p1 130",
        "130 delete p1",
    ),
    case(
        "6.7 deleted and created again, seen as one update",
        [*WAITING, pod(50, tol("a", 100), uid="another")],
        "0 set p1 100",
        "100 delete p1",
    ),
    case(
        "6.7 deleted and created again with another toleration, seen as one update",
        [*WAITING, pod(50, tol("a", 500), uid="another")],
        "0 set p1 100",
        "50 keep p1 100",
        "100 delete p1",
    ),
    case(
        "6.7 deleted and created again, seen as two",
        [*WAITING, pod_gone(50), pod(50, tol("a", 100), uid="another")],
        "0 set p1 100",
        "50 cancel p1",
        "50 set p1 150",
        "150 delete p1",
    ),
    case(
        "6.7 restarted twice",
        [*WAITING, restart(60), restart(130)],
        "0 set p1 100",
        "60 set p1 160",
        "60 keep p1 160",
        "130 set p1 230",
        "130 keep p1 230",
        "230 delete p1",
    ),
]


@pytest.mark.parametrize(("steps", "log"), NEVER_MOVES)
def test_course(steps: list[Step], log: list[str]) -> None:
    assert Stage().play(steps).log == log
