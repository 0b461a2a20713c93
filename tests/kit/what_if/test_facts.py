"""What is read of nodes and pods beside their rules, and what counts as not known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evictstream.kit.rules.scheduling.node_affinity import ANYWHERE, NodePlacement
from evictstream.kit.what_if.facts import NodeFacts, PodFacts, ReadFacts, read_node_facts, read_pod_facts
from evictstream.models.kubernetes import Taint
from evictstream.models.messages.unreadable import Unreadable

REPLICA_SET = {"kind": "ReplicaSet", "name": "cart-5d7", "controller": True}


def event(object_: dict[str, Any] | None, **fields: object) -> bytes:
    return json.dumps({"cluster": "c", "type": "ADDED", "object": object_} | fields).encode()


def pod(*, owners: object = None, labels: object = None, **spec: object) -> PodFacts:
    metadata = {"uid": "u", "resourceVersion": "7", "ownerReferences": owners, "labels": labels}
    found = read_pod_facts(event({"metadata": metadata, "spec": spec})).facts
    assert isinstance(found, PodFacts)
    return found


def node(labels: dict[str, str] | None, spec: object = None, status: object = None) -> NodeFacts:
    found = read_node_facts(event({"metadata": {"uid": "u", "labels": labels}, "spec": spec, "status": status})).facts
    assert isinstance(found, NodeFacts)
    return found


@pytest.mark.parametrize(
    ("found", "workload"),
    [
        pytest.param(
            pod(owners=[REPLICA_SET], labels={"pod-template-hash": "5d7"}), "Deployment/cart", id="of a Deployment"
        ),
        pytest.param(pod(owners=[REPLICA_SET], labels={"app": "x"}), "ReplicaSet/cart-5d7", id="of a ReplicaSet"),
        pytest.param(
            pod(owners=[REPLICA_SET], labels={"pod-template-hash": "7"}), "ReplicaSet/cart-5d7", id="of another hash"
        ),
        pytest.param(pod(owners=[{"kind": "DaemonSet", "name": "d", "controller": True}]), "DaemonSet/d", id="other"),
        pytest.param(pod(owners=[{"kind": "ConfigMap", "name": "c"}]), "", id="an owner that controls nothing"),
        pytest.param(pod(containers=[]), "", id="whole, without an owner"),
        pytest.param(pod(), None, id="trimmed"),
    ],
)
def test_the_workload(found: PodFacts, workload: str | None) -> None:
    assert found.workload == workload


@pytest.mark.parametrize(
    ("found", "placement"),
    [
        pytest.param(pod(containers=[{"name": "x"}]), ANYWHERE, id="whole"),
        pytest.param(pod(labels={}), ANYWHERE, id="trimmed with labels"),
        pytest.param(pod(nodeSelector={"a": "b"}), NodePlacement((("a", "b"),)), id="trimmed with a selector"),
        pytest.param(
            pod(
                affinity={
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}},
                    "podAffinity": {"x": 1},
                }
            ),
            NodePlacement((), ()),
            id="with affinity",
        ),
        pytest.param(pod(affinity={}), ANYWHERE, id="trimmed with affinity of another kind"),
        pytest.param(pod(owners=[REPLICA_SET]), None, id="trimmed"),
    ],
)
def test_what_a_pod_asks_of_its_node(found: PodFacts, placement: NodePlacement | None) -> None:
    assert found.placement == placement


@pytest.mark.parametrize(
    ("found", "zone", "has_all"),
    [
        pytest.param(node({"topology.kubernetes.io/zone": "z"}), "z", False, id="trimmed"),
        pytest.param(node({"failure-domain.beta.kubernetes.io/zone": "old"}), "old", False, id="old label"),
        pytest.param(node({"kubernetes.io/hostname": "n"}), None, True, id="with the label of every kubelet"),
        pytest.param(node(None, status={"nodeInfo": {}}), None, True, id="whole, without labels"),
        pytest.param(node(None), None, False, id="nothing"),
    ],
)
def test_labels_of_a_node(found: NodeFacts, zone: str | None, has_all: bool) -> None:  # noqa: FBT001 - a table
    assert (found.zone, found.has_all_labels) == (zone, has_all)


def test_taints_of_all_effects_and_the_cordon() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "x", "effect": "NoExecute"}]
    found = node(None, spec={"taints": taints, "unschedulable": True})
    assert (found.taints, found.unschedulable) == ((Taint("a", "", "NoSchedule"), Taint("b", "x", "NoExecute")), True)


def test_a_deletion_has_no_facts() -> None:
    found = {"metadata": {"uid": "u", "resourceVersion": "7"}}
    for read in (read_node_facts, read_pod_facts):
        deleted = read(event(found, type="DELETED", epoch=1))
        assert (deleted.uid, deleted.version, deleted.facts) == ("u", 7 + (1 << 64), None)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(event(None, type="HEARTBEAT"), id="heartbeat"),
        pytest.param(event(None, type="LISTED", listing={}), id="listing"),
        pytest.param(event({}), id="no metadata"),
    ],
)
def test_what_changes_no_object_says_nothing(value: bytes) -> None:
    assert read_node_facts(value) == read_pod_facts(value) == ReadFacts()


@pytest.mark.parametrize("value", [b"", b"[]", b'{"object":7}', b'{"type":"ADDED","object":{"metadata":7}}', b"\xff"])
def test_what_cannot_be_read(value: bytes) -> None:
    for read in (read_node_facts, read_pod_facts):
        with pytest.raises(Unreadable):
            read(value)
