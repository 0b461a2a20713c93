"""Beyond a limit an object is known and left alone: nothing is evicted for what nobody has looked at."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from evictstream.models.eviction import (
    PODS_IN_SLICE,
    Changes,
    EventType,
    InputEffect,
    NodeAggregate,
    NodeEvent,
    Origin,
    PodEvent,
    RowKind,
    RuleParameters,
    apply_pod,
    node_slices,
    row_key,
)
from evictstream.models.eviction.pod_rows import pod_value
from evictstream.models.eviction.row_format import FORMAT
from evictstream.models.eviction.rule_parameters import MOST_EARLIER_NODES
from evictstream.models.kubernetes import NO_EXECUTE, Node, Pod, Taint, Toleration, Tolerations
from evictstream.models.messages.decoding import read_node_record, read_pod_record
from evictstream.models.messages.object_limits import LARGEST_LIST, LONGEST_TEXT, is_too_long
from evictstream.models.messages.unreadable import Unreadable
from tests.harness.whole_steps import apply_node
from tests.models.eviction.scene import CLUSTER, DELETED, NODE, A, B, Scene, tolerate, us

ORIGIN = Origin("topic", 0, 0)
KEY = CLUSTER.encode()


def watched(obj: dict[str, Any]) -> bytes:
    return json.dumps({"cluster": CLUSTER, "type": "MODIFIED", "object": obj}).encode()


def read_pod(entries: int, **more: Any) -> PodEvent:
    """Read a pod with so many tolerations."""
    meta = {"namespace": "x", "name": "p", "uid": "u", "resourceVersion": "7"}
    spec = {"nodeName": NODE, "tolerations": [{"key": f"t{n}", **more} for n in range(entries)]}
    event = read_pod_record(KEY, watched({"kind": "Pod", "metadata": meta, "spec": spec}), 0, ORIGIN)
    assert isinstance(event, PodEvent)
    return event


def read_node(taints: int = 0, conditions: int = 0) -> NodeEvent:
    """Read a node with so many taints and conditions."""
    meta = {"name": NODE, "uid": "u", "resourceVersion": "7"}
    spec = {"taints": [{"key": f"t{n}", "effect": "NoExecute"} for n in range(taints)]}
    status = {"conditions": [{"type": f"c{n}", "status": "True"} for n in range(conditions)]}
    obj = {"kind": "Node", "metadata": meta, "spec": spec, "status": status}
    event = read_node_record(KEY, watched(obj), 0, ORIGIN)
    assert isinstance(event, NodeEvent)
    return event


class TestReading:
    def test_a_pod_with_the_most_allowed_tolerations_is_read(self) -> None:
        event = read_pod(LARGEST_LIST)
        assert not event.is_undecidable
        assert len(event.pod.tolerations) == LARGEST_LIST

    def test_a_pod_with_one_more_is_undecidable_without_them(self) -> None:
        event = read_pod(LARGEST_LIST + 1)
        assert event.is_undecidable
        assert event.pod.tolerations == ()

    def test_braces_in_values_are_no_entries(self) -> None:
        assert not read_pod(LARGEST_LIST // 2, value="{{}").is_undecidable

    @pytest.mark.parametrize(
        ("lists", "is_undecidable"),
        [
            pytest.param({"taints": LARGEST_LIST, "conditions": LARGEST_LIST}, False, id="as many as may be"),
            pytest.param({"taints": LARGEST_LIST + 1}, True, id="taints"),
            pytest.param({"taints": 1, "conditions": 10 * LARGEST_LIST}, False, id="conditions, which decide nothing"),
        ],
    )
    def test_a_node_is_undecidable_by_its_taints_only(self, lists: dict[str, int], *, is_undecidable: bool) -> None:
        event = read_node(**lists)
        assert event.is_undecidable is is_undecidable
        assert len(event.node.taints) == (0 if is_undecidable else lists["taints"])

    def test_ready_is_read_beside_any_number_of_conditions(self) -> None:
        meta = {"name": NODE, "uid": "u", "resourceVersion": "7"}
        conditions = [{"type": f"c{n}", "status": "True"} for n in range(2 * LARGEST_LIST)]
        conditions.insert(LARGEST_LIST, {"type": "Ready", "status": "Unknown"})
        value = watched({"kind": "Node", "metadata": meta, "status": {"conditions": conditions}})
        event = read_node_record(KEY, value, 0, ORIGIN)
        assert isinstance(event, NodeEvent)
        assert (event.node.ready, event.is_undecidable) == ("Unknown", False)

    def test_a_list_that_is_broken_is_left_to_its_reader(self) -> None:
        assert not is_too_long(b"[" + b"{}," * (LARGEST_LIST + 1))
        assert not is_too_long(b"{" * (LARGEST_LIST + 1))

    def test_a_very_long_key_is_refused(self) -> None:
        with pytest.raises(Unreadable, match="1025 bytes"):
            read_pod_record(b"n" * 1_025, watched({}), 0, ORIGIN)


def test_a_pod_beyond_the_limit_has_its_eviction_cancelled() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(1, tolerate("a", 60))
    assert scene.pod(2, undecidable=True).effect is InputEffect.UNDECIDABLE
    scene.run_until(1_000)
    assert scene.actions == ["Schedule 61", "Cancel Undecidable"]
    assert scene.pod(3, undecidable=True).effect is InputEffect.UNDECIDABLE, "each such record is said to be so"
    scene.restart()
    scene.run_until(2_000)
    assert len(scene.commands) == 2


def test_a_pod_within_the_limit_again_is_decided_again() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(1, undecidable=True)
    scene.pod(2, tolerate("a", 60))
    assert scene.actions == ["Schedule 61"]


def test_an_undecidable_pod_that_is_deleted_is_gone() -> None:
    scene = Scene()
    scene.pod(1, undecidable=True)
    scene.pod(2, undecidable=True, event_type=DELETED)
    assert not scene.aggregate.pods


def test_a_pod_that_becomes_undecidable_has_its_issued_eviction_withdrawn() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(1)
    scene.run_until(1)
    scene.pod(2, undecidable=True)
    scene.run_until(1_000)
    assert scene.actions == ["Evict 1", "Cancel Undecidable"]


def test_pods_of_a_node_beyond_the_limit_are_untouched() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(1, tolerate("a", 60))
    assert scene.node(2, undecidable=True).effect is InputEffect.UNDECIDABLE
    scene.restart()
    scene.pod(3, uid="pod-2", name="web-1")
    scene.run_until(1_000)
    assert scene.actions == ["Schedule 61", "Cancel Undecidable"]


def test_a_node_within_the_limit_again_begins_new_windows() -> None:
    scene = Scene()
    scene.node(0, A)
    scene.pod(1, tolerate("a", 60))
    scene.node(2, undecidable=True)
    scene.restart()
    scene.node(10, A)
    assert scene.actions == ["Schedule 61", "Cancel Undecidable", "Schedule 70"]


class Shielded:
    """A node with victims, half of them due at once, and a tenant's pods that are made to cost much."""

    LISTS = tuple(tolerate(f"k{entry}") for entry in range(LARGEST_LIST))
    VICTIMS = 4

    def __init__(self) -> None:
        self.aggregate = NodeAggregate(CLUSTER, NODE)
        self.rules = RuleParameters()
        self.version = 0

    def pods(self, count: int, prefix: str, *tolerations: Toleration, **more: Any) -> None:
        for number in range(count):
            name = f"{prefix}-{number}"
            seen = Pod(prefix, name, name, self._next(), NODE, tolerations, **more)
            event = PodEvent(type=EventType.MODIFIED, pod=seen, at_us=us(0), origin=ORIGIN)
            apply_pod(self.aggregate, event, self.rules)

    def victims(self) -> None:
        self.pods(self.VICTIMS // 2, "now")
        self.pods(self.VICTIMS // 2, "soon", tolerate("", 60))

    def node(self, at: float, *taints: Taint) -> Changes:
        seen = Node(NODE, "node-1", self._next(), taints, "True")
        event = NodeEvent(type=EventType.MODIFIED, node=seen, at_us=us(at), origin=ORIGIN)
        return apply_node(self.aggregate, event, self.rules)

    def due(self) -> int:
        """Count the victims with an open eviction."""
        victims = [pod for pod in self.aggregate.pods.values() if pod.address.startswith(("now/", "soon/"))]
        return sum(pod.eviction is not None for pod in victims)

    def _next(self) -> str:
        self.version += 1
        return str(self.version)


class TestNobodyShieldsANode:
    """No pod decides about another one: only its own list may make it undecidable."""

    @pytest.mark.parametrize(
        "more",
        [
            pytest.param({"phase": "Running"}, id="running"),
            pytest.param({"phase": "Failed"}, id="finished"),
            pytest.param({"is_terminating": True}, id="terminating"),
            pytest.param({"is_mirror": True}, id="mirror"),
        ],
    )
    @pytest.mark.parametrize("is_first", [pytest.param(True, id="before"), pytest.param(False, id="after")])
    def test_long_lists_of_others_shield_no_pod(self, more: dict[str, Any], *, is_first: bool) -> None:
        node = Shielded()
        if not is_first:
            node.victims()
        node.pods(101, "tenant", *Shielded.LISTS, **more)
        if is_first:
            node.victims()
        assert node.node(1, A).effect is InputEffect.CHANGED
        assert node.due() == Shielded.VICTIMS

    def test_pods_times_taints_shield_no_pod(self) -> None:
        node = Shielded()
        node.pods(101, "tenant", tolerate("", 60))
        node.victims()
        taints = [Taint(f"t{number}", "", NO_EXECUTE) for number in range(LARGEST_LIST)]
        assert node.node(1, *taints).effect is InputEffect.CHANGED
        assert node.due() == Shielded.VICTIMS

    def test_pods_that_come_cancel_nothing_of_others(self) -> None:
        node = Shielded()
        node.victims()
        node.node(1, A)
        node.pods(101, "tenant", *Shielded.LISTS)
        changed = node.node(2, A, B)
        assert [command.action for command in changed.commands if command.namespace != "tenant"] == []
        assert node.due() == Shielded.VICTIMS

    def test_a_pod_beyond_its_own_limit_is_alone_left_alone(self) -> None:
        scene = Scene()
        scene.pod(0, undecidable=True, uid="pod-2", name="web-1")
        scene.pod(0)
        scene.node(1, A)
        scene.run_until(1)
        assert [command.pod_uid for command in scene.commands] == ["pod-1"]


def test_a_replacement_beyond_a_limit_is_reported_undecidable_too() -> None:
    scene = Scene()
    for number in range(2 * PODS_IN_SLICE):
        scene.pod(0, tolerate("", 60), uid=f"pod-{number}", name=f"web-{number}")
    scene.node(1, A)
    seen = Node(NODE, "node-2", "9999", (), "True")
    event = NodeEvent(type=EventType.ADDED, node=seen, at_us=us(2), origin=ORIGIN, is_undecidable=True)
    slices = list(node_slices(scene.aggregate, event, scene.rules))
    assert [part.effect for part in slices] == [InputEffect.UNDECIDABLE] * len(slices)
    assert len(slices) > 2


class TestTexts:
    """One taint and one toleration are part of every message about a pod, so the length of each is limited."""

    @pytest.mark.parametrize(
        ("length", "is_undecidable"),
        [pytest.param(LONGEST_TEXT, False, id="as long as may be"), pytest.param(LONGEST_TEXT + 1, True, id="longer")],
    )
    @pytest.mark.parametrize("field", ["key", "value"])
    def test_of_a_node(self, field: str, length: int, *, is_undecidable: bool) -> None:
        text = "t" * (length - len("NoExecute"))
        obj = {"kind": "Node", "metadata": {"name": NODE, "uid": "u", "resourceVersion": "7"}}
        obj["spec"] = {"taints": [{field: text, "effect": "NoExecute"}]}
        event = read_node_record(KEY, watched(obj), 0, ORIGIN)
        assert isinstance(event, NodeEvent)
        assert event.is_undecidable is is_undecidable
        assert bool(event.node.taints) is not is_undecidable

    @pytest.mark.parametrize("field", ["key", "value", "effect", "operator"])
    def test_of_a_pod(self, field: str) -> None:
        event = read_pod(2, **{field: "t" * (LONGEST_TEXT + 1)})
        assert event.is_undecidable
        assert event.pod.tolerations == ()
        assert not read_pod(2, **{field: "t" * (LONGEST_TEXT - 10)}).is_undecidable


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "resourceVersion"])
def test_a_pod_with_long_names_is_refused(field: str) -> None:
    meta = {"namespace": "x", "name": "p", "uid": "u", "resourceVersion": "7", field: "9" * 1_100}
    with pytest.raises(Unreadable, match="Oversized"):
        read_pod_record(KEY, watched({"kind": "Pod", "metadata": meta, "spec": {"nodeName": NODE}}), 0, ORIGIN)


@pytest.mark.parametrize("field", ["uid", "resourceVersion"])
def test_a_node_with_long_names_is_refused(field: str) -> None:
    meta = {"name": NODE, "uid": "u", "resourceVersion": "7", field: "9" * 1_100}
    with pytest.raises(Unreadable, match="Oversized"):
        read_node_record(KEY, watched({"kind": "Node", "metadata": meta}), 0, ORIGIN)


class TestRowsBeyondALimit:
    """Rows that a program with larger limits has written."""

    @pytest.mark.parametrize(
        "tolerations",
        [
            pytest.param(tuple(Toleration(f"t{n}") for n in range(LARGEST_LIST + 1)), id="too many"),
            pytest.param((Toleration("t" * (LONGEST_TEXT + 1)),), id="too long"),
        ],
    )
    def test_a_pod_row_with_too_much_loads_as_undecidable(self, tolerations: Tolerations) -> None:
        scene = Scene()
        scene.pod(0)
        pod = scene.aggregate.pods["pod-1"]
        pod.tolerations = tolerations
        scene.table[row_key(RowKind.POD, scene.aggregate.key, "pod-1")] = pod_value(pod)
        scene.restart()
        assert scene.aggregate.pods["pod-1"].tolerations == ()
        scene.node(1, A)
        assert scene.actions == []

    def test_a_node_row_with_too_many_taints_loads_as_undecidable(self) -> None:
        scene = Scene()
        scene.pod(0)
        taint = ["t", "", us(0), us(0), None]
        row = [FORMAT, "node-1", 1, [taint] * (LARGEST_LIST + 1), None, None, [], False]
        scene.table[row_key(RowKind.NODE, scene.aggregate.key)] = msgspec.msgpack.encode(row)
        scene.restart()
        node = scene.aggregate.node
        assert node is not None
        assert (node.is_undecidable, node.taints) == (True, ())

    def test_what_was_open_is_cancelled_at_the_take_over(self) -> None:
        scene = Scene()
        scene.node(0, A)
        scene.pod(1, tolerate("a", 60))
        pod = scene.aggregate.pods["pod-1"]
        pod.tolerations = tuple(Toleration(f"t{n}") for n in range(LARGEST_LIST + 1))
        scene.table[row_key(RowKind.POD, scene.aggregate.key, "pod-1")] = pod_value(pod)
        scene.restart()
        scene.decide_all(2)
        assert scene.actions == ["Schedule 61", "Cancel Undecidable"]


def test_only_the_latest_earlier_nodes_of_a_name_are_kept() -> None:
    scene = Scene()
    count = MOST_EARLIER_NODES + 3
    for number in range(count):
        scene.node(number, uid=f"node-{number}", event_type=DELETED)
    assert set(scene.aggregate.earlier_nodes) == {f"node-{number}" for number in range(3, count)}
