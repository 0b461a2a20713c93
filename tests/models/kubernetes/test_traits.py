"""What policies know of nodes and pods is read from any JSON, and keeps no object from being read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.eviction import NodeEvent, Origin, PodEvent
from evictstream.models.kubernetes.shapes import Kind
from evictstream.models.kubernetes.traits import (
    LONGEST_LABELS_BYTES,
    LONGEST_TRAIT,
    NO_TRAITS,
    NodeLabels,
    PodTraits,
    shared_node_labels,
    shared_pod_traits,
    zone_of,
)
from evictstream.models.messages.decoding import read_node_record, read_pod_record

ZONE = "topology.kubernetes.io/zone"
GROUP = "scheduling.x-k8s.io/pod-group"
LONG = "x" * (LONGEST_TRAIT + 1)
NUL = "\\u0000"


def owner(kind: Any = "ReplicaSet", name: Any = "web-5d7f9", *, controller: Any = True) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "r-1", "controller": controller}


def event_of(kind: Kind, metadata: dict[str, Any], spec: dict[str, Any]) -> NodeEvent | PodEvent:
    known = {"name": "a", "namespace": "d", "uid": "u", "resourceVersion": "1"}
    found = {"kind": kind, "apiVersion": "v1", "metadata": known | metadata, "spec": spec}
    value = json.dumps({"cluster": "lab", "type": "ADDED", "object": found}).encode()
    event = (read_pod_record if kind == "Pod" else read_node_record)(b"lab", value, 10**15, Origin("t", 0, 0))
    assert isinstance(event, NodeEvent | PodEvent)
    assert not event.is_undecidable
    return event


def traits(metadata: dict[str, Any], spec: dict[str, Any] | None = None) -> PodTraits:
    event = event_of("Pod", metadata, {"nodeName": "n"} | (spec or {}))
    assert isinstance(event, PodEvent)
    return event.pod.traits


def labels(found: Any) -> NodeLabels:
    event = event_of("Node", {"labels": found}, {})
    assert isinstance(event, NodeEvent)
    return shared_node_labels(event.node.labels, None)


OWNERS = [
    pytest.param([owner()], ("ReplicaSet", "web-5d7f9"), id="a ReplicaSet stays one"),
    pytest.param([owner("Node", "n"), owner("Job", "j")], ("Node", "n"), id="the first controller"),
    pytest.param([owner(controller=False), owner("Job", "j")], ("Job", "j"), id="not the first owner"),
    pytest.param([owner(controller=None)], ("", ""), id="no controller"),
    pytest.param([{"kind": "Job", "name": "j"}], ("", ""), id="an owner that says nothing of it"),
    pytest.param([owner("", "j")], ("", ""), id="no kind"),
    pytest.param([owner("Job", None)], ("", ""), id="no name"),
    pytest.param([owner("Job", LONG[1:])], ("Job", LONG[1:]), id="the longest name"),
    pytest.param([owner("Job", LONG)], ("", ""), id="a name that is too long"),
    pytest.param([owner(LONG, "j")], ("", ""), id="a kind that is too long"),
    pytest.param([owner("Job", 7)], ("", ""), id="a name that is no text"),
    pytest.param([owner(controller="true")], ("", ""), id="controller is a text"),
    pytest.param([], ("", ""), id="none"),
    pytest.param(None, ("", ""), id="null"),
    pytest.param({"kind": "Job"}, ("", ""), id="no list"),
    pytest.param([owner("Job", "j" + NUL)], ("Job", "j" + NUL), id="any characters"),
]


@pytest.mark.parametrize(("references", "expected"), OWNERS)
def test_the_owner_is_the_controller(references: Any, expected: tuple[str, str]) -> None:
    found = traits({"ownerReferences": references})
    assert (found.owner_kind, found.owner_name) == expected
    assert found.owner == ("/".join(expected) if expected[0] else "")


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        pytest.param(1000, 1000, id="a number"),
        pytest.param(-5, -5, id="below zero"),
        pytest.param(2**31 - 1, 2**31 - 1, id="the highest"),
        pytest.param(-(2**31), -(2**31), id="the lowest"),
        pytest.param(2**31, 0, id="too high"),
        pytest.param(10**400, 0, id="far too high"),
        pytest.param("1000", 0, id="a text"),
        pytest.param(1.5, 0, id="a fraction"),
        pytest.param([], 0, id="a list"),
        pytest.param(None, 0, id="null"),
    ],
)
def test_a_priority_that_cannot_be_read_is_zero(priority: Any, expected: int) -> None:
    assert traits({}, {"priority": priority}).priority == expected
    assert traits({}).priority == 0


@pytest.mark.parametrize(
    ("label", "group", "expected"),
    [
        pytest.param(None, {"podGroupName": "train-1"}, "train-1", id="of Kubernetes"),
        pytest.param("train-2", None, "train-2", id="of the scheduler plugin"),
        pytest.param("train-2", {"podGroupName": "train-1"}, "train-1", id="Kubernetes' own counts"),
        pytest.param("train-2", {"podGroupName": ""}, "train-2", id="an empty one does not"),
        pytest.param("train-2", {"podGroupName": LONG}, "train-2", id="nor one that is too long"),
        pytest.param("train-2", {"podGroupName": 1}, "train-2", id="nor one that is no text"),
        pytest.param("train-2", "train-1", "train-2", id="nor one of another shape"),
        pytest.param(LONG, None, "", id="a label that is too long"),
        pytest.param(7, {}, "", id="a label that is no text"),
    ],
)
def test_a_group_is_named_by_spec_or_label(label: Any, group: Any, expected: str) -> None:
    found = traits({"labels": {"app": "x", GROUP: label}}, {"schedulingGroup": group})
    assert found.group == expected


@pytest.mark.parametrize(
    ("found", "expected", "zone"),
    [
        pytest.param({ZONE: "z-a", "b": "1", "a": ""}, (("a", ""), ("b", "1"), (ZONE, "z-a")), "z-a", id="all, by key"),
        pytest.param({"a": None}, (("a", ""),), "", id="null is empty, as in Kubernetes"),
        pytest.param({ZONE: "z-a", "a": 1}, ((ZONE, "z-a"),), "z-a", id="only the zone if one is no text"),
        pytest.param({ZONE: ["z"], "a": "1"}, (), "", id="a zone that is no text"),
        pytest.param({ZONE: "z-a", "a": "x" * LONGEST_LABELS_BYTES}, ((ZONE, "z-a"),), "z-a", id="too many"),
        pytest.param({ZONE: LONG, "a": "x" * LONGEST_LABELS_BYTES}, ((ZONE, ""),), "", id="too many, and a long zone"),
        pytest.param([], (), "", id="no labels at all"),
        pytest.param(None, (), "", id="null"),
    ],
)
def test_labels_of_a_node(found: Any, expected: NodeLabels, zone: str) -> None:
    read = labels(found)
    assert read == expected
    assert zone_of(read) == zone
    assert zone_of(None) is None


def test_equal_traits_and_labels_are_one_object() -> None:
    one, two = (traits({"uid": uid, "ownerReferences": [owner()]}, {"priority": 7}) for uid in "ab")
    assert one is two
    other = traits({"ownerReferences": [owner(name="other")]})
    assert other.owner_kind is one.owner_kind
    assert traits({}) is NO_TRAITS
    assert shared_pod_traits(one.fields) is one
    first, second = labels({ZONE: "z-a", "a": "1"}), labels({ZONE: "z-a", "a": "2"})
    assert first[1] is second[1]
    assert shared_node_labels(dict(first), first) is first
    assert shared_node_labels(dict(second), first) == second
    assert shared_node_labels({**dict(first), "b": ""}, first) != first


def test_long_traits_are_kept_and_not_shared() -> None:
    fields = ("Job", "j" * LONGEST_TRAIT, 0, "")
    assert shared_pod_traits(fields) == shared_pod_traits(fields)
    assert shared_pod_traits(fields) is not shared_pod_traits(fields)


def test_traits_compare_without_their_text() -> None:
    one, other = PodTraits("Job", "j", 1, "g", 5), PodTraits("Job", "j", 1, "g", 6)
    assert one == other
    assert not one != other  # noqa: SIM202 - structs have their own
    assert one != PodTraits("Job", "j", 2, "g", 5)
    assert one != one.fields


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON, JSON, JSON)
def test_no_trait_keeps_an_object_from_being_read(a: Any, b: Any, c: Any, d: Any) -> None:
    found = traits({"labels": a, "ownerReferences": b}, {"priority": c, "schedulingGroup": d})
    assert len(found.owner_name) <= LONGEST_TRAIT
    labels(a)
