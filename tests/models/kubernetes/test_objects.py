from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from evictstream.models.kubernetes import (
    FieldTimeError,
    FieldTypeError,
    MissingFieldError,
    Node,
    NodeObject,
    ObjectError,
    Pod,
    PodObject,
    Taint,
    Toleration,
    WrongKindError,
    read_node,
    read_pod,
)
from evictstream.models.kubernetes.times import read_time

NODE: dict[str, Any] = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "n1", "uid": "u1", "resourceVersion": "7"},
}
POD: dict[str, Any] = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"namespace": "ns", "name": "web-0", "uid": "p1", "resourceVersion": "8"},
}


def node_of(**parts: Any) -> Node:
    return read_node(msgspec.json.decode(json.dumps(NODE | parts), type=NodeObject))


def pod_of(**parts: Any) -> Pod:
    return read_pod(msgspec.json.decode(json.dumps(POD | parts), type=PodObject))


def metadata(of: dict[str, Any], **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = of["metadata"]
    return found | fields


def test_smallest_node() -> None:
    assert node_of() == Node("n1", "u1", "7")


def test_node_with_taints_and_conditions() -> None:
    node = node_of(
        spec={
            "providerID": "ignored",
            "taints": [
                {"key": "a", "effect": "NoExecute", "timeAdded": "2026-11-21T02:15:53Z"},
                {"key": "a", "value": "v", "effect": "NoSchedule", "timeAdded": None},
            ],
        },
        status={"conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "Unknown"}]},
    )
    assert node.taints == (
        Taint("a", "", "NoExecute", 1_795_227_353_000_000),
        Taint("a", "v", "NoSchedule", None),
    )
    assert node.ready == "Unknown"


@pytest.mark.parametrize(
    "parts",
    [
        {"spec": None, "status": None},
        {"spec": {"taints": None}, "status": {"conditions": None}},
        {"spec": {}, "status": {"conditions": [{"type": None, "status": None}]}},
    ],
)
def test_null_in_a_node_is_absent(parts: dict[str, Any]) -> None:
    assert node_of(**parts) == Node("n1", "u1", "7")


@pytest.mark.parametrize("at", ["0000-01-01T00:00:00Z", "2026-11-21T3:04:05Z", "2026-11-21T02:15:53+24:00"])
def test_odd_times_that_kubernetes_reads_are_read(at: str) -> None:
    node = node_of(spec={"taints": [{"key": "a", "effect": "NoExecute", "timeAdded": at}]})
    assert [taint.time_added_us for taint in node.taints] == [read_time(at)] != [None]


@pytest.mark.parametrize("at", ["yesterday", "2026-11-21T02:15:53", ""])
def test_a_time_that_kubernetes_does_not_read_is_named(at: str) -> None:
    with pytest.raises(FieldTimeError) as caught:
        node_of(spec={"taints": [{"key": "a"}, {"key": "b", "timeAdded": at}]})
    assert caught.value.field == "spec.taints[1].timeAdded"


def test_odd_taints_are_read_as_they_are() -> None:
    """semantics.md 12.3"""
    node = node_of(spec={"taints": [{"key": "not a key!", "value": "-1", "effect": "Whatever"}, {}]})
    assert node.taints == (Taint("not a key!", "-1", "Whatever"), Taint(""))


def test_smallest_pod() -> None:
    assert pod_of() == Pod("ns", "web-0", "p1", "8")


def test_pod_with_everything_in_use() -> None:
    pod = pod_of(
        metadata=metadata(
            POD,
            deletionTimestamp="2026-11-21T02:15:53Z",
            annotations={"other": "x", "kubernetes.io/config.mirror": "hash"},
        ),
        spec={"nodeName": "n1", "tolerations": [{"operator": "Exists"}], "containers": [{"name": "c"}]},
        status={"phase": "Failed", "hostIP": "10.0.0.1"},
    )
    assert pod == Pod(
        "ns", "web-0", "p1", "8", "n1", (Toleration("", "Exists"),), "Failed", is_terminating=True, is_mirror=True
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"spec": None, "status": None},
        {"spec": {"nodeName": None, "tolerations": None}, "status": {"phase": None}},
        {"metadata": metadata(POD, deletionTimestamp=None, annotations=None)},
        {"metadata": metadata(POD, annotations={"other": "x"})},
    ],
)
def test_null_in_a_pod_is_absent(parts: dict[str, Any]) -> None:
    assert pod_of(**parts) == Pod("ns", "web-0", "p1", "8")


def test_null_annotation_is_present() -> None:
    """Kubernetes reads null as an empty text, and only the presence of the mirror annotation counts."""
    assert pod_of(metadata=metadata(POD, annotations={"kubernetes.io/config.mirror": None})).is_mirror


@pytest.mark.parametrize("field", ["name", "uid", "resourceVersion"])
@pytest.mark.parametrize("value", [None, ""])
def test_missing_field_is_named(field: str, value: str | None) -> None:
    with pytest.raises(MissingFieldError) as node_error:
        node_of(metadata=metadata(NODE, **{field: value}))
    with pytest.raises(MissingFieldError) as pod_error:
        pod_of(metadata=metadata(POD, **{field: value}))
    assert node_error.value.field == pod_error.value.field == f"metadata.{field}"


def test_pod_needs_a_namespace() -> None:
    with pytest.raises(MissingFieldError, match=r"metadata\.namespace"):
        pod_of(metadata=metadata(POD, namespace=None))


def test_metadata_is_needed() -> None:
    with pytest.raises(MissingFieldError, match="metadata"):
        node_of(metadata=None)


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({"kind": None}, MissingFieldError),
        ({"kind": "PodList"}, WrongKindError),
        ({"apiVersion": "metrics.k8s.io/v1beta1"}, WrongKindError),
    ],
)
def test_only_v1_of_the_right_kind(parts: dict[str, Any], error: type[ObjectError]) -> None:
    with pytest.raises(error):
        node_of(**parts)
    with pytest.raises(error):
        pod_of(**parts)


def test_trimmed_object_may_leave_out_the_api_version() -> None:
    assert pod_of(apiVersion=None) == pod_of()


@pytest.mark.parametrize(
    ("tolerations", "field"),
    [
        ("text", "spec.tolerations"),
        ([{"key": 1}], "spec.tolerations[0].key"),
        ([{"tolerationSeconds": "5"}], "spec.tolerations[0].tolerationSeconds"),
    ],
)
def test_wrong_type_in_tolerations_is_named(tolerations: object, field: str) -> None:
    with pytest.raises(FieldTypeError) as caught:
        pod_of(spec={"nodeName": "n1", "tolerations": tolerations})
    assert caught.value.field == field


@pytest.mark.parametrize(
    "parts",
    [
        {"metadata": "text"},
        {"metadata": metadata(NODE, name=1)},
        {"spec": []},
        {"spec": {"taints": {}}},
        {"spec": {"taints": [{"key": 1}]}},
        {"spec": {"taints": [{"key": "a", "timeAdded": 5}]}},
        {"status": {"conditions": [{"type": "Ready", "status": True}]}},
    ],
)
def test_wrong_types_are_errors(parts: dict[str, Any]) -> None:
    with pytest.raises((msgspec.ValidationError, FieldTypeError)):
        node_of(**parts)
