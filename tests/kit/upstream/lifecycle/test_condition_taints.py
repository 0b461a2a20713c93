from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.kit.upstream.lifecycle import (
    OWNED_KEYS,
    Condition,
    NodeLifecycle,
    TaintsChanged,
    WatchedNode,
    condition_taints,
    taint_difference,
    taints_at_creation,
)
from evictstream.models.kubernetes import Taint
from tests.kit.upstream.lifecycle.scene import FAKE_NOW_US, NOT_READY, SECOND_US, UNREACHABLE, node, ready

PREFIX = "node.kubernetes.io/"


def no_schedule(key: str, value: str = "", time_added_us: int | None = None) -> Taint:
    return Taint(PREFIX + key, value, "NoSchedule", time_added_us)


@pytest.mark.parametrize(
    ("kind", "status", "key"),
    [
        pytest.param("Ready", "True", None, id="7.1 Ready True: none"),
        pytest.param("Ready", "False", "not-ready", id="TestTaintsNodeByCondition: Ready is false"),
        pytest.param("Ready", "Unknown", "unreachable", id="TestTaintsNodeByCondition: Ready is unknown"),
        pytest.param("Ready", "", None, id="nodeConditionToTaintKeyStatusMap: empty status"),
        pytest.param("Ready", "false", None, id="nodeConditionToTaintKeyStatusMap: case counts"),
        pytest.param("ready", "False", None, id="nodeConditionToTaintKeyStatusMap: case of the type counts"),
        pytest.param("MemoryPressure", "True", "memory-pressure", id="7.1 MemoryPressure True"),
        pytest.param("MemoryPressure", "False", None, id="7.1 MemoryPressure False: none"),
        pytest.param("MemoryPressure", "Unknown", None, id="7.1 MemoryPressure Unknown: none"),
        pytest.param("DiskPressure", "True", "disk-pressure", id="7.1 DiskPressure True"),
        pytest.param("DiskPressure", "False", None, id="7.1 DiskPressure False: none"),
        pytest.param("DiskPressure", "Unknown", None, id="7.1 DiskPressure Unknown: none"),
        pytest.param("PIDPressure", "True", "pid-pressure", id="7.1 PIDPressure True"),
        pytest.param("PIDPressure", "False", None, id="7.1 PIDPressure False: none"),
        pytest.param("PIDPressure", "Unknown", None, id="7.1 PIDPressure Unknown: none"),
        pytest.param(
            "NetworkUnavailable",
            "True",
            "network-unavailable",
            id="TestTaintsNodeByCondition: NetworkUnavailable is true",
        ),
        pytest.param("NetworkUnavailable", "False", None, id="7.1 NetworkUnavailable False: none"),
        pytest.param("NetworkUnavailable", "Unknown", None, id="7.1 NetworkUnavailable Unknown: none"),
        pytest.param("OutOfDisk", "True", None, id="7.1 unknown condition type: none"),
        pytest.param("KernelDeadlock", "Unknown", None, id="7.1 condition of node-problem-detector: none"),
    ],
)
def test_condition_to_taint(kind: str, status: str, key: str | None) -> None:
    expected = () if key is None else (no_schedule(key),)
    assert condition_taints([Condition(kind, status)], is_unschedulable=False) == expected


@pytest.mark.parametrize(
    ("conditions", "is_unschedulable", "keys"),
    [
        pytest.param([], False, [], id="7.1 no conditions: no taints, not even not-ready"),
        pytest.param([], True, ["unschedulable"], id="7.1 spec.unschedulable"),
        pytest.param(
            [("Ready", "True"), ("NetworkUnavailable", "True")],
            False,
            ["network-unavailable"],
            id="TestTaintsNodeByCondition: ready, NetworkUnavailable is true",
        ),
        pytest.param(
            [("MemoryPressure", "True"), ("Ready", "False")],
            True,
            ["memory-pressure", "not-ready", "unschedulable"],
            id="doNoScheduleTaintingPass: order of conditions, unschedulable last",
        ),
        pytest.param(
            [("Ready", "False"), ("Ready", "Unknown")],
            False,
            ["not-ready", "unreachable"],
            id="doNoScheduleTaintingPass: a type that is there twice counts twice",
        ),
        pytest.param(
            [("MemoryPressure", "True"), ("MemoryPressure", "True")],
            False,
            ["memory-pressure"],
            id="AddOrUpdateTaint: the same taint once",
        ),
        pytest.param(
            [("MemoryPressure", "Unknown"), ("DiskPressure", "Unknown"), ("Ready", "Unknown")],
            False,
            ["unreachable"],
            id="node-conditions recording: a silent node loses its pressure taints",
        ),
    ],
)
def test_conditions_to_taints(conditions: list[tuple[str, str]], is_unschedulable: bool, keys: list[str]) -> None:  # noqa: FBT001 - a column of the table
    got = condition_taints([Condition(*one) for one in conditions], is_unschedulable=is_unschedulable)
    assert [taint.key for taint in got] == [PREFIX + key for key in keys]


@pytest.mark.parametrize(
    ("present", "wanted", "added", "removed"),
    [
        pytest.param([], ["not-ready"], ["not-ready"], [], id="TaintSetDiff: to add"),
        pytest.param([no_schedule("not-ready")], [], [], ["not-ready"], id="TaintSetDiff: to remove"),
        pytest.param([no_schedule("not-ready")], ["not-ready"], [], [], id="TaintSetDiff: nothing"),
        pytest.param(
            [no_schedule("not-ready")],
            ["unreachable"],
            ["unreachable"],
            ["not-ready"],
            id="doNoScheduleTaintingPass: False becomes Unknown",
        ),
        pytest.param(
            [no_schedule("not-ready", "v", 7)], ["not-ready"], [], [], id="MatchTaint: value and time do not count"
        ),
        pytest.param(
            [no_schedule("memory-pressure")], [], [], ["memory-pressure"], id="7.1 put by somebody else: removed"
        ),
        pytest.param(
            [Taint(UNREACHABLE, "", "NoExecute")], [], [], [], id="7.1 touches only NoSchedule: NoExecute stays"
        ),
        pytest.param(
            [Taint(NOT_READY, "", "NoExecute")],
            ["not-ready"],
            ["not-ready"],
            [],
            id="MatchTaint: the same key with another effect is another taint",
        ),
        pytest.param(
            [Taint(NOT_READY, "", "PreferNoSchedule")], [], [], [], id="7.1 touches only NoSchedule: Prefer stays"
        ),
        pytest.param(
            [Taint("dedicated", "gpu", "NoSchedule")], [], [], [], id="7.1 touches only its keys: others stay"
        ),
        pytest.param(
            [no_schedule("out-of-service")], [], [], [], id="taintKeyToNodeConditionMap: out-of-service is a person's"
        ),
        pytest.param(
            [Taint("node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule")],
            [],
            [],
            [],
            id="1.1 uninitialized is the cloud provider's",
        ),
    ],
)
def test_difference(present: list[Taint], wanted: list[str], added: list[str], removed: list[str]) -> None:
    got = taint_difference(present, tuple(no_schedule(key) for key in wanted))
    assert [taint.key for taint in got.added] == [PREFIX + key for key in added]
    assert [taint.key for taint in got.removed] == [PREFIX + key for key in removed]


@pytest.mark.parametrize(
    ("taints", "expected"),
    [
        pytest.param((), (no_schedule("not-ready"),), id="nodetaint/admission.go: first taint, without a time"),
        pytest.param((no_schedule("not-ready"),), (no_schedule("not-ready"),), id="nodetaint/admission.go: once"),
        pytest.param(
            (no_schedule("not-ready", "v", 1),), (no_schedule("not-ready", "v", 1),), id="MatchTaint: stays as it is"
        ),
        pytest.param(
            (Taint("a", "", "NoSchedule"),),
            (Taint("a", "", "NoSchedule"), no_schedule("not-ready")),
            id="nodetaint/admission.go: behind those of the kubelet",
        ),
        pytest.param(
            (Taint(NOT_READY, "", "NoExecute"),),
            (Taint(NOT_READY, "", "NoExecute"), no_schedule("not-ready")),
            id="nodetaint/admission.go: NoExecute is another taint",
        ),
    ],
)
def test_first_taint_of_a_new_node(taints: tuple[Taint, ...], expected: tuple[Taint, ...]) -> None:
    assert taints_at_creation(taints) == expected


def test_every_node_change_runs_a_pass_in_whole_seconds() -> None:
    lifecycle = NodeLifecycle()
    changes = lifecycle.put_node(node("node0", ready("False")), FAKE_NOW_US + 1_500_000)
    stamped = no_schedule("not-ready", "", FAKE_NOW_US + SECOND_US)
    assert changes == (TaintsChanged(FAKE_NOW_US + 1_500_000, "node0", added=(stamped,)),)
    assert lifecycle.nodes["node0"].taints == (stamped,)


def test_a_swap_adds_first_and_removes_in_a_second_write() -> None:
    lifecycle = NodeLifecycle()
    foreign = Taint("dedicated", "gpu", "NoSchedule")
    old = no_schedule("not-ready")
    changes = lifecycle.put_node(node("node0", ready("Unknown"), taints=(old, foreign)), FAKE_NOW_US)
    new = no_schedule("unreachable", "", FAKE_NOW_US)
    assert changes == (
        TaintsChanged(FAKE_NOW_US, "node0", added=(new,)),
        TaintsChanged(FAKE_NOW_US, "node0", removed=(old,)),
    )
    assert lifecycle.nodes["node0"].taints == (foreign, new)


CONDITIONS = st.lists(
    st.builds(
        Condition,
        st.sampled_from(["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Other"]),
        st.sampled_from(["True", "False", "Unknown", ""]),
    ),
    max_size=8,
)
TAINTS = st.lists(
    st.builds(
        Taint,
        st.sampled_from([*sorted(OWNED_KEYS), "dedicated"]),
        st.sampled_from(["", "v"]),
        st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
    ),
    max_size=6,
    unique_by=lambda taint: (taint.key, taint.effect),
)


@given(CONDITIONS, TAINTS, st.booleans())
def test_a_node_agrees_with_its_conditions_after_one_pass(
    conditions: list[Condition],
    taints: list[Taint],
    is_unschedulable: bool,  # noqa: FBT001 - drawn
) -> None:
    lifecycle = NodeLifecycle()
    found = WatchedNode("node0", "", {}, 0, is_unschedulable, tuple(conditions), tuple(taints))
    lifecycle.put_node(found, FAKE_NOW_US)
    after = lifecycle.nodes["node0"]
    owned = {taint.key for taint in after.taints if taint.effect == "NoSchedule" and taint.key in OWNED_KEYS}
    wanted = {taint.key for taint in condition_taints(conditions, is_unschedulable=is_unschedulable)}
    assert owned == wanted

    def others(all_taints: tuple[Taint, ...]) -> list[Taint]:
        return [one for one in all_taints if not (one.effect == "NoSchedule" and one.key in OWNED_KEYS)]

    assert others(after.taints) == others(found.taints)
    assert lifecycle.put_node(after, FAKE_NOW_US + SECOND_US) == ()
