"""What a feed reads of the API server's JSON, and what it keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evictstream.models.kubernetes.shapes import Kind
from evictstream.streams.feed.watched_objects import (
    BROKEN,
    only_what_decides,
    read_bookmark_version,
    read_line,
    read_object,
    read_page,
)

POD: dict[str, Any] = {
    "metadata": {
        "name": "web-0",
        "namespace": "shop",
        "uid": "p-1",
        "resourceVersion": "17",
        "labels": {"app": "web", "pod-template-hash": "5d7f9", "scheduling.x-k8s.io/pod-group": "g"},
        "annotations": {"kubernetes.io/config.mirror": "x", "secret": "hunter2"},
        "managedFields": [{"manager": "kubelet"}],
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r-1", "controller": True},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c-1"},
        ],
        "deletionTimestamp": "2026-11-21T02:15:53Z",
    },
    "spec": {
        "nodeName": "n-1",
        "containers": [{"name": "web", "env": [{"name": "PASSWORD", "value": "hunter2"}]}],
        "tolerations": [{"key": "a\u00e9", "operator": "Exists", "tolerationSeconds": 300}],
        "priority": 1000,
        "schedulingGroup": {"podGroupName": "train-1"},
        "nodeSelector": {"pool": "gpu"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
            },
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []},
        },
    },
    "status": {"phase": "Running", "podIP": "10.0.0.1"},
}
NODE: dict[str, Any] = {
    "metadata": {
        "name": "n-1",
        "uid": "n-uid",
        "resourceVersion": "18",
        "labels": {"topology.kubernetes.io/zone": "z-1", "kubernetes.io/hostname": "n-1"},
    },
    "spec": {
        "podCIDR": "10.0.0.0/24",
        "unschedulable": True,
        "taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2026-11-21T02:15:53Z"}],
    },
    "status": {
        "conditions": [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": "True", "reason": "x"},
        ]
    },
}


def kept(kind: Kind, found: dict[str, Any]) -> Any:
    return json.loads(read_object(kind, json.dumps(found).encode()).json)


def test_of_a_pod_what_decides_is_kept() -> None:
    found = read_object("Pod", json.dumps(POD).encode())
    assert (found.node, found.uid, found.version) == ("n-1", "p-1", "17")
    assert json.loads(found.json) == {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "web-0",
            "namespace": "shop",
            "uid": "p-1",
            "resourceVersion": "17",
            "deletionTimestamp": "2026-11-21T02:15:53Z",
            "annotations": {"kubernetes.io/config.mirror": "x"},
            "labels": {"pod-template-hash": "5d7f9", "scheduling.x-k8s.io/pod-group": "g"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "r-1", "controller": True}],
        },
        "spec": {
            "nodeName": "n-1",
            "tolerations": POD["spec"]["tolerations"],
            "priority": 1000,
            "schedulingGroup": {"podGroupName": "train-1"},
            "nodeSelector": {"pool": "gpu"},
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": []}]}
                }
            },
        },
        "status": {"phase": "Running"},
    }
    assert b"hunter2" not in found.json


def test_who_deletes_a_pod_is_kept_and_no_other_condition() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    others = [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]
    found = POD | {"status": {"phase": "Running", "conditions": [*others, target | {"message": "by hunter2"}]}}
    assert kept("Pod", found)["status"] == {"phase": "Running", "conditions": [target]}
    assert kept("Pod", POD | {"status": {"phase": "Running", "conditions": others}})["status"] == {"phase": "Running"}
    trimmed = read_object("Pod", json.dumps(found).encode()).json
    assert json.loads(only_what_decides("Pod", trimmed))["status"] == {"phase": "Running"}


def test_of_a_node_what_decides_is_kept() -> None:
    found = read_object("Node", json.dumps(NODE).encode())
    assert (found.node, found.uid, found.version) == ("n-1", "n-uid", "18")
    assert json.loads(found.json) == {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": "n-1",
            "uid": "n-uid",
            "resourceVersion": "18",
            "labels": {"topology.kubernetes.io/zone": "z-1", "kubernetes.io/hostname": "n-1"},
        },
        "spec": {"taints": NODE["spec"]["taints"], "unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


@pytest.mark.parametrize("seconds", ["300", "9223372036854775807", "-1", "1e3", "null", "3.0"])
def test_numbers_are_passed_on_as_they_came(seconds: str) -> None:
    text = json.dumps(POD).replace('"tolerationSeconds": 300', f'"tolerationSeconds":{seconds}')
    assert f'"tolerationSeconds":{seconds}'.encode() in read_object("Pod", text.encode()).json


def test_a_pod_that_is_not_bound_has_no_node() -> None:
    for spec in ({}, {"nodeName": ""}, {"nodeName": None}, None):
        assert read_object("Pod", json.dumps(POD | {"spec": spec}).encode()).node == ""


def test_absent_parts_stay_absent() -> None:
    bare = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}}
    assert kept("Node", bare) == {"kind": "Node", "apiVersion": "v1", **bare}


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b'{"metadata":{}}', b'{"metadata":{"name":"n","uid":"u"}}', b'{"metadata":null}', b"\xff"],
)
def test_what_is_no_object_is_refused(text: bytes) -> None:
    for kind in ("Node", "Pod"):
        with pytest.raises(BROKEN):
            read_object(kind, text)


def test_a_line_is_taken_apart() -> None:
    found = read_line(
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"99","creationTimestamp":null}}}'
    )
    assert found.type == "BOOKMARK"
    assert read_bookmark_version(found.object) == "99"


@pytest.mark.parametrize(
    "text", [b'{"type":"ADDED","object":{"metadata":', b"garbage", b'{"type":"ADDED"}', b'{"object":{}}']
)
def test_half_a_line_is_refused(text: bytes) -> None:
    with pytest.raises(BROKEN):
        read_line(text)


def test_a_page_is_taken_apart() -> None:
    page = read_page(json.dumps({"metadata": {"resourceVersion": "5", "continue": "c"}, "items": [POD, POD]}).encode())
    assert (page.metadata.resource_version, page.metadata.continue_, len(page.items)) == ("5", "c", 2)


@pytest.mark.parametrize("text", ["[]", "no JSON", "x" * 65_536, "\u00fc" * 32_768])
def test_annotation_of_tolerations_is_passed_on(text: str) -> None:
    pod = POD | {
        "metadata": POD["metadata"] | {"annotations": {"evictstream.io/tolerations": text, "secret": "hunter2"}}
    }
    trimmed = read_object("Pod", json.dumps(pod).encode())
    assert json.loads(trimmed.json)["metadata"]["annotations"] == {"evictstream.io/tolerations": text}
    assert b"evictstream.io/tolerations" in only_what_decides("Pod", trimmed.json)


@pytest.mark.parametrize("value", ["x" * 65_537, "\u00fc" * 32_769, ["x"] * 65_537], ids=["long", "wide", "no-text"])
def test_too_large_an_annotation_is_passed_on_as_unreadable(value: object) -> None:
    pod = POD | {"metadata": POD["metadata"] | {"annotations": {"evictstream.io/tolerations": value}}}
    trimmed = json.loads(read_object("Pod", json.dumps(pod).encode()).json)
    assert trimmed["metadata"]["annotations"] == {"evictstream.io/tolerations": ""}
