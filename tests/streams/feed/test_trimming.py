from __future__ import annotations

import json

import msgspec
import pytest

from models.kubernetes.objects import NodeObject, PodObject, read_node, read_pod
from streams.feed.recording import Kind
from streams.feed.trimming import trimmed
from tests.streams.feed.samples import Object, node, pod

TAINT = {"key": "k", "effect": "NoExecute", "timeAdded": "2026-11-21T10:00:00Z", "other": 1}
TOLERATIONS = [{"key": "k", "operator": "Exists", "tolerationSeconds": 10**30}]


def trim(kind: Kind, found: Object) -> Object:
    result: Object = json.loads(bytes(trimmed(kind, msgspec.Raw(json.dumps(found).encode()))))
    return result


def test_a_node_keeps_what_is_in_use() -> None:
    assert trim("Node", node(taints=[TAINT])) == {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "n-1", "uid": "uid-n-1", "resourceVersion": "7", "annotations": {}},
        "spec": {"taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-11-21T10:00:00Z"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def test_a_pod_keeps_what_is_in_use() -> None:
    assert trim("Pod", pod(tolerations=TOLERATIONS)) == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "p-1", "namespace": "shop", "uid": "uid-p-1", "resourceVersion": "9"},
        "spec": {"nodeName": "n-1", "tolerations": TOLERATIONS},
        "status": {"phase": "Running"},
    }


def test_it_is_read_as_the_whole_object_is() -> None:
    whole_node, whole_pod = node(taints=[TAINT]), pod(tolerations=TOLERATIONS)
    whole_pod["metadata"] |= {"deletionTimestamp": "x", "annotations": {"kubernetes.io/config.mirror": "y", "z": "z"}}
    for kind, whole, shape in (("Node", whole_node, NodeObject), ("Pod", whole_pod, PodObject)):
        trimmed_one = json.dumps(trim(kind, whole)).encode()  # type: ignore[arg-type] # both are kinds
        found, expected = (msgspec.json.decode(text, type=shape) for text in (trimmed_one, json.dumps(whole).encode()))
        read = read_node if kind == "Node" else read_pod
        assert read(found) == read(expected)  # type: ignore[operator] # each its own


def test_numbers_and_texts_stay_byte_by_byte() -> None:
    value = b'[{"tolerationSeconds":1e400,"key":"\\u0041"}]'
    found = msgspec.Raw(b'{"kind":"Pod","spec":{"tolerations":' + value + b"}}")
    assert bytes(trimmed("Pod", found)) == b'{"kind":"Pod","spec":{"tolerations":' + value + b"}}"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"kind":"Node","metadata":"odd"}', id="text-for-object"),
        pytest.param(b'{"kind":"Node","spec":{"taints":{"key":1}}}', id="object-for-list"),
        pytest.param(b"7", id="number"),
    ],
)
def test_what_has_another_shape_is_left_to_the_reader(text: bytes) -> None:
    assert bytes(trimmed("Node", msgspec.Raw(text))) == text


def test_nulls_are_left_out() -> None:
    assert trim("Pod", {"kind": "Pod", "spec": {"nodeName": None, "tolerations": None}}) == {"kind": "Pod", "spec": {}}
