"""Watch events for tests, as Kubernetes and kubectl write them."""

from __future__ import annotations

import json
from typing import Any

Object = dict[str, Any]


def node(name: str = "n-1", **spec: object) -> Object:
    """A node with more in it than is in use."""
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "7",
            "labels": {"a": "b"},
            "managedFields": [{"manager": "kubelet"}],
            "annotations": {"other": "x"},
        },
        "spec": {"providerID": f"hollow://{name}", **spec},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]},
    }


def pod(name: str = "p-1", node_name: str | None = "n-1", **spec: object) -> Object:
    """A pod with more in it than is in use."""
    binding = {} if node_name is None else {"nodeName": node_name}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "9"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **binding, **spec},
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    }


def kubectl_line(found: Object, change: str = "ADDED") -> bytes:
    """What kubectl prints for one event."""
    return json.dumps({"type": change, "object": found}, separators=(",", ":")).encode() + b"\n"


def line(found: Object, at: str, change: str = "ADDED", cluster: str = "lab") -> bytes:
    """One line of our format."""
    event = {"cluster": cluster, "type": change, "observedAt": at, "object": found}
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"
