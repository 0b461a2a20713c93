"""Nodes and pods as tests create them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.e2e.api_client import Object

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def pods(namespace: str = "default") -> str:
    """Return the path of a namespace's pods."""
    return f"/api/v1/namespaces/{namespace}/pods"


def node(name: str, zone: str) -> Object:
    """Return a node as its kubelet registers it."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": "r1",
        "topology.kubernetes.io/zone": zone,
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}}


def pod(
    name: str,
    on_node: str,
    *,
    tolerations: Sequence[Object] = (),
    grace_seconds: int = 1,
    labels: Object | None = None,
) -> Object:
    """Return a pod that is bound already, as no scheduler runs."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {"app": name}},
        "spec": {
            "nodeName": on_node,
            "containers": [{"name": "c", "image": "img"}],
            "tolerations": list(tolerations),
            "terminationGracePeriodSeconds": grace_seconds,
            "automountServiceAccountToken": False,
        },
    }


def tolerates(key: str, seconds: int | None = None, effect: str = "NoExecute") -> Object:
    """Return a toleration of any value, for some seconds or forever."""
    return {"key": key, "operator": "Exists", "effect": effect} | (
        {} if seconds is None else {"tolerationSeconds": seconds}
    )


def taint(key: str, effect: str = "NoExecute") -> Object:
    """Return a taint without a value."""
    return {"key": key, "effect": effect}
