"""Each departure that the agreement test leaves out: the two models do differ there, by the rule in its id.

`upstream` and `ours` are the instants, in seconds, at which the pod is deleted; None is never.
"""

from __future__ import annotations

import pytest

from evictstream.kit.upstream.taint_eviction import (
    NodeGone,
    NodeSeen,
    PodDeleted,
    PodSeen,
    TaintEvictionController,
    run_controller,
)
from evictstream.models.kubernetes import NO_EXECUTE, NOT_READY, UNREACHABLE, Node, Pod, Taint, Toleration
from tests.models.eviction.scene import ADDED, DELETED, MODIFIED, NODE, Scene, tolerate, us

A = Taint("a", "", NO_EXECUTE)
B = Taint("b", "", NO_EXECUTE)
SICK = Taint(NOT_READY, "", NO_EXECUTE)
SILENT = Taint(UNREACHABLE, "", NO_EXECUTE)
BOTH_300 = (tolerate(NOT_READY, 300), tolerate(UNREACHABLE, 300))


class Two:
    """The same story for both."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.changes: list[NodeSeen | NodeGone | PodSeen] = []
        self.version = 100

    def node(self, at: float, *taints: Taint, ready: str = "True", uid: str = "node-1") -> Two:
        self.version += 1
        self.scene.run_until(at)
        self.scene.node(at, *taints, ready=ready, uid=uid, version=str(self.version))
        self.changes.append(NodeSeen(us(at), Node(NODE, uid, str(self.version), taints, ready)))
        return self

    def node_gone(self, at: float) -> Two:
        self.version += 1
        self.scene.run_until(at)
        self.scene.node(at, version=str(self.version), event_type=DELETED)
        self.changes.append(NodeGone(us(at), NODE))
        return self

    def pod(
        self,
        at: float,
        *tolerations: Toleration,
        uid: str = "pod-1",
        phase: str = "Running",
        terminating: bool = False,
        mirror: bool = False,
    ) -> Two:
        self.version += 1
        self.scene.run_until(at)
        version = str(self.version)
        event_type = ADDED if not self.changes else MODIFIED
        self.scene.pod(
            at,
            *tolerations,
            uid=uid,
            version=version,
            phase=phase,
            terminating=terminating,
            mirror=mirror,
            event_type=event_type,
        )
        pod = Pod("payments", "web-0", uid, version, NODE, tolerations, phase, terminating, mirror)
        self.changes.append(PodSeen(us(at), pod))
        return self

    def upstream(self) -> float | None:
        outcomes = run_controller(TaintEvictionController(), self.changes, us(10_000))
        return next(((one.at_us - us(0)) / 1e6 for one in outcomes if isinstance(one, PodDeleted)), None)

    def ours(self) -> float | None:
        self.scene.run_until(10_000)
        return next((float(line.split()[1]) for line in self.scene.actions if line.startswith("Evict")), None)


@pytest.mark.parametrize(
    ("two", "upstream", "ours"),
    [
        pytest.param(
            Two().node(0, A).pod(0, tolerate("a", 100), tolerate("b", 5)).node(10, A, B),
            100,
            15,
            id="row 6: a second, shorter taint",
        ),
        pytest.param(
            Two().node(0, A, B).pod(0, tolerate("a", 30), tolerate("b", 60)).node(10, B),
            30,
            60,
            id="row 4: the deciding taint goes",
        ),
        pytest.param(Two().node(0, A).pod(0, tolerate("a", 100)).node_gone(10), 100, None, id="row 9: node deleted"),
        pytest.param(
            Two().node(0, A).pod(0, tolerate("a", 100)).node(10, A, uid="node-2"),
            100,
            110,
            id="12.7: node registered again, seen as one update",
        ),
        pytest.param(
            Two().node(0, A).pod(0, tolerate("a", 100)).pod(10, tolerate("a", 30)), 100, 30, id="row 5: edited, shorter"
        ),
        pytest.param(
            Two().node(0, A).pod(0, tolerate("a", 30)).pod(10, tolerate("a", 100)), 30, 100, id="row 5: edited, longer"
        ),
        pytest.param(
            Two().node(0, A).pod(0, tolerate("a")).pod(10, tolerate("a", 30)),
            40,
            30,
            id="row 5: edited, forever until now",
        ),
        pytest.param(
            Two().node(0, A).pod(0, tolerate("a", 100)).pod(10, tolerate("a", 100), uid="pod-2"),
            100,
            110,
            id="row 8: replaced under its name, seen as one update",
        ),
        pytest.param(
            Two()
            .node(0, Taint("a", "", NO_EXECUTE, 1))
            .pod(0, tolerate("a", 100))
            .node(10, Taint("a", "", NO_EXECUTE, 2)),
            100,
            110,
            id="12.4: a later timeAdded",
        ),
        pytest.param(
            Two()
            .node(0, Taint("a", "x", NO_EXECUTE))
            .pod(0, Toleration("a", "Equal", "x", NO_EXECUTE, 30), Toleration("a", "Equal", "y", NO_EXECUTE, 100))
            .node(10, Taint("a", "y", NO_EXECUTE)),
            30,
            110,
            id="row 37: another value, longer",
        ),
        pytest.param(
            Two()
            .node(0, Taint("a", "x", NO_EXECUTE))
            .pod(0, Toleration("a", "Equal", "x", NO_EXECUTE, 100), tolerate("a", 5))
            .node(10, Taint("a", "y", NO_EXECUTE)),
            100,
            15,
            id="row 37: another value, shorter",
        ),
        pytest.param(
            Two()
            .node(0, Taint("a", "x", NO_EXECUTE))
            .pod(0, Toleration("b", "Equal", "z", NO_EXECUTE), Toleration("", "Equal", "z"), tolerate("a", 30))
            .node(10, Taint("a", "y", NO_EXECUTE)),
            30,
            40,
            id="row 37: another value, the same toleration",
        ),
        pytest.param(
            Two()
            .node(0, SICK, ready="False")
            .pod(0, tolerate(NOT_READY, 20), tolerate(UNREACHABLE, 300))
            .node(10, SILENT, ready="Unknown"),
            20,
            300,
            id="12.4: health taints are swapped, the other one longer",
        ),
        pytest.param(
            Two().node(0, SILENT, ready="Unknown").pod(0, *BOTH_300).node(10, ready="Unknown").node(10.1, SILENT),
            310.1,
            300,
            id="row 31: a health taint comes back within the gap of an outage",
        ),
        pytest.param(
            Two().node(0, A).pod(0, tolerate("a", 18_446_744_074)), 0.290449, None, id="row 33: overflow, at once"
        ),
        pytest.param(Two().node(0, A).pod(0, phase="Succeeded"), 0, None, id="row 12: a finished pod"),
        pytest.param(Two().node(0, A).pod(0, mirror=True), 0, None, id="row 13: a mirror pod"),
        pytest.param(Two().node(0, A).pod(0, terminating=True), 0, None, id="row 14: a terminating pod"),
        pytest.param(
            Two().node(0, A).pod(0, tolerate("a", 30)).pod(10, tolerate("a", 30), terminating=True),
            30,
            None,
            id="row 14: a pod that starts to terminate",
        ),
    ],
)
def test_where_they_part(two: Two, upstream: float | None, ours: float | None) -> None:
    assert upstream != ours
    assert two.upstream() == upstream
    assert two.ours() == ours
