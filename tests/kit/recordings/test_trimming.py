from __future__ import annotations

import json

import msgspec
import pytest

from evictstream.kit.recordings.trimming import trimmed
from evictstream.kit.what_if.facts import read_node_facts, read_pod_facts
from evictstream.models.kubernetes.objects import read_node, read_pod
from evictstream.models.kubernetes.shapes import Kind, NodeObject, PodObject
from evictstream.streams.feed.watched_objects import read_object
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
        "metadata": {
            "name": "n-1",
            "uid": "uid-n-1",
            "resourceVersion": "7",
            "annotations": {},
            "labels": {"a": "b"},
        },
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


def encoded(found: Object) -> bytes:
    return json.dumps(found).encode()


def test_a_trimmed_node_is_read_as_the_whole_one() -> None:
    whole = node(taints=[TAINT])
    found, expected = (msgspec.json.decode(encoded(n), type=NodeObject) for n in (trim("Node", whole), whole))
    assert read_node(found) == read_node(expected)


def test_a_trimmed_pod_is_read_as_the_whole_one() -> None:
    whole = pod(tolerations=TOLERATIONS)
    whole["metadata"] |= {"deletionTimestamp": "x", "annotations": {"kubernetes.io/config.mirror": "y", "z": "z"}}
    found, expected = (msgspec.json.decode(encoded(p), type=PodObject) for p in (trim("Pod", whole), whole))
    assert read_pod(found) == read_pod(expected)
    assert read_pod(found).is_mirror


WHOLE_POD = pod(
    nodeSelector={"pool": "gpu"},
    affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
)
WHOLE_POD["metadata"] |= {
    "labels": {"app": "web", "pod-template-hash": "5d7"},
    "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d7", "controller": True}],
}
WHOLE_NODE = node(taints=[TAINT], unschedulable=True)
WHOLE_NODE["metadata"]["labels"] = {"kubernetes.io/hostname": "n-1", "topology.kubernetes.io/zone": "z-a"}


def event(object_: object) -> bytes:
    return json.dumps({"type": "ADDED", "object": object_}).encode()


def test_people_ask_the_same_of_a_trimmed_node() -> None:
    expected = read_node_facts(event(WHOLE_NODE))
    for kept in (trim("Node", WHOLE_NODE), json.loads(read_object("Node", json.dumps(WHOLE_NODE).encode()).json)):
        assert read_node_facts(event(kept)) == expected


def test_people_ask_the_same_of_a_trimmed_pod() -> None:
    expected = read_pod_facts(event(WHOLE_POD))
    for kept in (trim("Pod", WHOLE_POD), json.loads(read_object("Pod", json.dumps(WHOLE_POD).encode()).json)):
        assert read_pod_facts(event(kept)) == expected
        assert "containers" not in kept["spec"]


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
