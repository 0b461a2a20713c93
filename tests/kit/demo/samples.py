"""Small incidents for tests: a node and a pod, second by second, on a day of their own."""

from __future__ import annotations

import datetime as dt
from typing import Any

Event = dict[str, Any]

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
START_US = int(START.timestamp()) * 1_000_000

UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"


def at(seconds: float) -> str:
    """An instant as text, so many seconds into the day."""
    return (START + dt.timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def us(seconds: float) -> int:
    """The same in microseconds since 1970."""
    return START_US + round(seconds * 1_000_000)


def taint(key: str = "k", effect: str = "NoExecute", **more: object) -> Event:
    """A taint."""
    return {"key": key, "effect": effect, **more}


def tolerates(key: str = "k", seconds: int | None = None, **more: object) -> Event:
    """A toleration that does not look at the value."""
    found: Event = {"key": key, "operator": "Exists", "effect": "NoExecute", **more}
    return found if seconds is None else found | {"tolerationSeconds": seconds}


def node(
    seconds: float,
    *taints: Event,
    kind: str = "MODIFIED",
    uid: str = "node-1",
    name: str = "n-1",
    ready: str | None = "True",
    version: int | None = None,
) -> Event:
    """A watch event of the node."""
    conditions = [] if ready is None else [{"type": "Ready", "status": ready}]
    thing = {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "uid": uid, "resourceVersion": _version(seconds, version)},
        "spec": {"taints": list(taints)},
        "status": {"conditions": conditions},
    }
    return {"cluster": "lab", "type": kind, "observedAt": at(seconds), "object": thing}


def pod(
    seconds: float,
    *tolerations: Event,
    kind: str = "MODIFIED",
    uid: str = "pod-1",
    name: str = "p-1",
    node_name: str | None = "n-1",
    phase: str = "Running",
    version: int | None = None,
    **meta: object,
) -> Event:
    """A watch event of the pod."""
    spec: Event = {"tolerations": list(tolerations)}
    if node_name is not None:
        spec["nodeName"] = node_name
    names = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": _version(seconds, version)}
    thing = {"kind": "Pod", "apiVersion": "v1", "metadata": names | meta, "spec": spec, "status": {"phase": phase}}
    return {"cluster": "lab", "type": kind, "observedAt": at(seconds), "object": thing}


def command(action: str, seconds: float, **more: Any) -> Event:
    """A command about the pod whose deadline is so many seconds into the day."""
    verdict = more.pop("verdict", "TaintRemoved" if action == "Cancel" else "TolerationExpires")
    return {
        "apiVersion": "evictstream.io/v1",
        "kind": "EvictionCommand",
        "action": action,
        "evictionId": "e1",
        "revision": 1,
        "attempt": 1 if action == "Evict" else 0,
        "cluster": "lab",
        "namespace": "shop",
        "pod": "p-1",
        "podUid": "pod-1",
        "node": "n-1",
        "nodeUid": "node-1",
        "reason": {"verdict": verdict, "taint": {"key": more.pop("key", "k"), "effect": "NoExecute"}},
        "windowStart": at(0),
        "deadline": at(seconds),
        "issuedAt": at(seconds),
        **more,
    }


def _version(seconds: float, version: int | None) -> str:
    return str(100 + round(seconds * 1000) if version is None else version)
