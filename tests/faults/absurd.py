"""Objects that are made to cost as much as their size allows: long lists, each in the other's reverse order."""

from __future__ import annotations

from evictstream.streams.oracle.records import InputTopic
from tests.faults.objects import Json, watch_event
from tests.faults.plan import Change

TAINTS, TOLERATIONS = 27_000, 58_000  # 1.0 and 0.98 MB
PODS = 3
AGAIN_US = 500_000
CLUSTER = "absurd"


def absurd_records(at_us: int) -> list[Change]:
    """Give a node and pods on it in a cluster of their own, and both once more, turned round."""
    name = f"n{at_us}"
    taints: list[Json] = [{"key": f"t{number}", "effect": "NoExecute"} for number in range(TAINTS)]
    tolerations: list[Json] = [{"key": f"t{number}"} for number in reversed(range(TOLERATIONS))]
    changes = []
    for version, again_at_us in enumerate((at_us, at_us + AGAIN_US), start=1000):
        changes.append(_change("nodes", name, _node(name, version, taints), again_at_us))
        changes += [
            _change("pods", name, _pod(name, f"p{number}", version, tolerations), again_at_us) for number in range(PODS)
        ]
        taints, tolerations = taints[::-1], tolerations[::-1]
    return changes


def _node(name: str, version: int, taints: list[Json]) -> Json:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "Node", "metadata": metadata, "spec": {"taints": taints}}


def _pod(node: str, name: str, version: int, tolerations: list[Json]) -> Json:
    metadata = {"namespace": "ns", "name": name, "uid": f"{node}-{name}", "resourceVersion": str(version)}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node, "tolerations": tolerations}}


def _change(topic: InputTopic, node: str, shown: Json, at_us: int) -> Change:
    value = watch_event(CLUSTER, "MODIFIED", shown, None)
    return Change(at_us, topic, f"{CLUSTER}/{node}".encode(), value)
