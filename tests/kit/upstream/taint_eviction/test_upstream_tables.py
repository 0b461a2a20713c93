"""The cases of Kubernetes' `pkg/controller/tainteviction/taint_eviction_test.go`, named after its tests.

`deletes` is what the upstream case expects; its fake clock-less runs become instants of the stage.
"""

from __future__ import annotations

import pytest

from evictstream.kit.upstream.taint_eviction import (
    EVENT_REASON,
    EVENT_TYPE,
    ControllerOutcome,
    EventEmitted,
    PodDeleted,
    TaintEvictionController,
    stay_us,
)
from evictstream.models.kubernetes import NO_EXECUTE, NO_SCHEDULE, Node, Taint, Toleration
from tests.kit.upstream.taint_eviction.stage import Stage, Step, node, pod, pod_gone, us

ONE = Taint("testTaint1", "test1", NO_EXECUTE, 1_700_000_000_000_000)
TWO = Taint("testTaint2", "test2", NO_EXECUTE, 1_700_000_000_000_000)


def covers(index: int, seconds: int | None = None) -> Toleration:
    """As `addToleration` makes them: no operator, so `Equal`."""
    return Toleration(f"testTaint{index}", "", f"test{index}", NO_EXECUTE, seconds)


def deletes(stage: Stage) -> list[str]:
    return [
        f"{outcome.at_us / 1e6:g} {outcome.address.removeprefix('ns/')}"
        for outcome in stage.outcomes
        if isinstance(outcome, PodDeleted)
    ]


@pytest.mark.parametrize(
    ("steps", "until", "expected"),
    [
        pytest.param([pod(0, on="", name="pod1")], 50, [], id="TestCreatePod/not scheduled - ignore"),
        pytest.param([pod(0, name="pod1")], 50, [], id="TestCreatePod/scheduled on untainted Node"),
        pytest.param([node(0, ONE), pod(0, name="pod1")], 50, ["0 pod1"], id="TestCreatePod/schedule on tainted Node"),
        pytest.param(
            [node(0, ONE), pod(0, covers(1, 100), name="pod1")],
            50,
            [],
            id="TestCreatePod/schedule on tainted Node with finite toleration",
        ),
        pytest.param(
            [node(0, ONE), pod(0, covers(1), name="pod1")],
            50,
            [],
            id="TestCreatePod/schedule on tainted Node with infinite toleration",
        ),
        pytest.param(
            [node(0, ONE), pod(0, covers(2), name="pod1")],
            50,
            ["0 pod1"],
            id="TestCreatePod/schedule on tainted Node with infinite invalid toleration",
        ),
        pytest.param([node(0, ONE), pod_gone(0, name="pod1")], 50, [], id="TestDeletePod"),
        pytest.param(
            [node(0, ONE), pod(0, on="", name="pod1"), pod(1, name="pod1")],
            50,
            ["1 pod1"],
            id="TestUpdatePod/scheduling onto tainted Node",
        ),
        pytest.param(
            [node(0, ONE), pod(0, covers(1), on="", name="pod1"), pod(1, covers(1), name="pod1")],
            50,
            [],
            id="TestUpdatePod/scheduling onto tainted Node with toleration",
        ),
        pytest.param(
            [node(0, ONE), pod(0, covers(1, 100), name="pod1"), pod(1, name="pod1")],
            50,
            ["1 pod1"],
            id="TestUpdatePod/removing toleration",
        ),
        pytest.param(
            [node(0, ONE), pod(0, covers(1, 1), name="pod1"), pod(0.5, covers(1, 100), name="pod1")],
            5,
            ["1 pod1"],
            id="TestUpdatePod/lengthening toleration shouldn't work",
        ),
        pytest.param(
            [node(0, ONE), pod(0, covers(1, 1), name="pod1"), pod(0, covers(1, 100), name="pod1")],
            5,
            ["1 pod1"],
            id="TestUpdatePod/lengthening toleration at once shouldn't work either",
        ),
        pytest.param(
            [pod(0, name="pod1"), node(1)], 50, [], id="TestCreateNode/Creating Node matching already assigned Pod"
        ),
        pytest.param(
            [pod(0, name="pod1"), node(1, ONE)],
            50,
            ["1 pod1"],
            id="TestCreateNode/Creating tainted Node matching already assigned Pod",
        ),
        pytest.param(
            [pod(0, covers(1), name="pod1"), node(1, ONE)],
            50,
            [],
            id="TestCreateNode/Creating tainted Node matching already assigned tolerating Pod",
        ),
        pytest.param(
            [pod(0, name="pod1"), node(0), node(1, ONE)],
            50,
            ["1 pod1"],
            id="TestUpdateNode/Added taint, expect node patched and deleted",
        ),
        pytest.param(
            [pod(0, covers(1, 100), name="pod1"), node(0), node(1, ONE)],
            50,
            [],
            id="TestUpdateNode/Added tolerated taint",
        ),
        pytest.param(
            [pod(0, covers(1, 100), name="pod1"), node(0), node(1, ONE, TWO)],
            50,
            ["1 pod1"],
            id="TestUpdateNode/Only one added taint tolerated",
        ),
        pytest.param(
            [pod(0, covers(1, 1), name="pod1"), node(0, ONE), node(0.5)], 50, [], id="TestUpdateNode/Taint removed"
        ),
        pytest.param(
            [pod(0, covers(1, 1), covers(2, 100), name="pod1"), node(0), node(1, ONE, TWO)],
            50,
            ["2 pod1"],
            id="TestUpdateNode/Pod with multiple tolerations are evicted when first one runs out",
        ),
        pytest.param(
            [pod(0, name="pod1"), pod(0, covers(1, 1), name="pod2"), pod(0, covers(1), name="pod3"), node(0, ONE)],
            50,
            ["0 pod1", "1 pod2"],
            id="TestUpdateNodeWithMultiplePods/Pods with different toleration times are evicted appropriately",
        ),
        pytest.param(
            [pod(0, name="pod1"), pod(0, covers(1, 1), name="pod2"), pod(0, covers(1), name="pod3"), node(0, ONE, TWO)],
            50,
            ["0 pod1", "0 pod2", "0 pod3"],
            id="TestUpdateNodeWithMultiplePods/Evict all pods not matching all taints instantly",
        ),
        pytest.param(
            [pod(0, name="pod1"), pod(0, on="", name="pod2"), node(1, ONE), pod(2, name="pod2")],
            50,
            ["1 pod1", "2 pod2"],
            id="TestEventualConsistency/existing pod2 scheduled onto tainted Node",
        ),
        pytest.param(
            [
                pod(0, name="pod1"),
                pod(0, covers(1, 100), on="", name="pod2"),
                node(1, ONE),
                pod(2, covers(1, 100), name="pod2"),
            ],
            150,
            ["1 pod1", "102 pod2"],
            id="TestEventualConsistency/existing pod2 with taint toleration scheduled onto tainted Node",
        ),
        pytest.param(
            [pod(0, name="pod1"), node(1, ONE), pod(2, name="pod2")],
            50,
            ["1 pod1", "2 pod2"],
            id="TestEventualConsistency/new pod2 created on tainted Node",
        ),
        pytest.param(
            [pod(0, name="pod1"), node(1, ONE), pod(2, covers(1, 100), name="pod2")],
            150,
            ["1 pod1", "102 pod2"],
            id="TestEventualConsistency/new pod2 with toleration created on tainted Node",
        ),
    ],
)
def test_which_pods_are_deleted(steps: list[Step], until: float, expected: list[str]) -> None:
    assert deletes(Stage().play(steps, until)) == expected


def test_delete_node_forgets_its_taints() -> None:
    """TestDeleteNode"""
    controller = TaintEvictionController()
    controller.see_node(Node("node1", "u", "1", (ONE,)))
    controller.work(0)
    assert controller.tainted_nodes == {"node1": (ONE,)}
    controller.lose_node("node1")
    controller.work(1)
    assert controller.tainted_nodes == {}


def test_only_no_execute_taints_count() -> None:
    """TestFilterNoExecuteTaints"""
    controller = TaintEvictionController()
    controller.see_node(Node("node1", "u", "1", (Taint("one", "one", NO_EXECUTE), Taint("two", "two", NO_SCHEDULE))))
    controller.work(0)
    assert controller.tainted_nodes == {"node1": (Taint("one", "one", NO_EXECUTE),)}


def test_update_node_with_multiple_taints() -> None:
    """TestUpdateNodeWithMultipleTaints: none, the one forever, both, the one forever again; nothing is deleted."""
    stage = Stage()
    for_ever = Toleration("testTaint1", "Exists", "", NO_EXECUTE)
    minute = Toleration("testTaint2", "Exists", "", NO_EXECUTE, 60)
    pod(0, for_ever, minute, name="pod1")(stage)
    queued = []
    for at, taints in enumerate([(), (ONE,), (ONE, TWO), (ONE,)]):
        stage.outcomes += node(at, *taints)(stage)
        queued.append("ns/pod1" in stage.controller.deadlines())
    assert queued == [False, False, True, False]
    assert deletes(stage.play([])) == []


@pytest.mark.parametrize(
    ("seconds", "expected_us"),
    [
        pytest.param([], 0, id="TestGetMinTolerationTime/none"),
        pytest.param([None], None, id="TestGetMinTolerationTime/forever"),
        pytest.param([1, 2], 1_000_000, id="TestGetMinTolerationTime/1 and 2"),
        pytest.param([1, None], 1_000_000, id="TestGetMinTolerationTime/1 and forever"),
        pytest.param([None, 1], 1_000_000, id="TestGetMinTolerationTime/forever and 1"),
        pytest.param([None, None], None, id="4 all without seconds"),
        pytest.param([300, 0, 20], 0, id="4 any with 0"),
        pytest.param([300, -1], 0, id="4 any below 0"),
        pytest.param([-(2**63)], 0, id="4 the lowest number"),
        pytest.param([9_223_372_036], 9_223_372_036_000_000, id="row 33 the longest that fits"),
        pytest.param([9_223_372_037], None, id="row 33 9223372037 s was never seen to evict"),
        pytest.param([18_446_744_073], None, id="row 33 the last of those that come out negative"),
        # 18446744074 * 10^9 - 2^64 = 290,448,384 nanoseconds
        pytest.param([18_446_744_074], 290_449, id="row 33 18446744074 s was seen to evict after 0.3 s"),
        pytest.param([18_446_744_074, 20], 20_000_000, id="row 33 the smallest is found before it is multiplied"),
        pytest.param([2**63 - 1], None, id="the largest number stands for none"),
        pytest.param([2**55], 0, id="2^55 * 10^9 is a multiple of 2^64"),
        pytest.param([10**25], None, id="beyond 64 bit, which the API cannot hold"),
    ],
)
def test_time_to_stay(seconds: list[int | None], expected_us: int | None) -> None:
    assert stay_us([Toleration("k", "Exists", "", NO_EXECUTE, number) for number in seconds]) == expected_us


def test_event_of_a_deletion() -> None:
    """TestPodDeletionEvent/emitPodDeletionEvent"""
    stage = Stage()
    outcomes: list[ControllerOutcome] = node(0, ONE)(stage) + pod(0, name="test", namespace="test")(stage)
    assert outcomes[0] == EventEmitted(0, "test/test", "Marking for deletion Pod test/test")
    assert (EVENT_TYPE, EVENT_REASON) == ("Normal", "TaintManagerEviction")


def test_event_of_a_cancel() -> None:
    """TestPodDeletionEvent/emitCancelPodDeletionEvent"""
    stage = Stage()
    steps = [node(0, ONE), pod(0, covers(1, 9), name="test", namespace="test"), node(1)]
    stage.play(steps, until=20)
    assert [one for one in stage.outcomes if isinstance(one, EventEmitted)] == [
        EventEmitted(us(1), "test/test", "Cancelling deletion of Pod test/test")
    ]


def test_old_objects_come_from_the_cache() -> None:
    """`PodUpdated(old, new)`: an update that changes neither tolerations nor node is not looked at."""
    stage = Stage()
    stage.play([node(0, ONE), pod(0, covers(1, 30), name="pod1")], until=1)
    before = list(stage.outcomes)
    stage.play([pod(2, covers(1, 30), name="pod1", phase="Failed", terminating=True)], until=3)
    assert stage.outcomes == before
