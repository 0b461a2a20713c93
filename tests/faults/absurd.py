"""Objects that are made to cost as much as their size allows: long lists, each in the other's reverse order.

And pods of a tenant with lists as long as may be, finished and not, on a node with pods of others: these have to leave.
"""

from __future__ import annotations

from evictstream.kit.oracle.records import InputTopic
from tests.faults.objects import Json, watch_event
from tests.faults.plan import Change

TAINTS, TOLERATIONS = 27_000, 58_000  # 1.0 and 0.98 MB
PODS = 3
LONGEST_LIST = 1_000
TENANT_PODS = 101  # their lists together have more than 100,000 entries
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
    return [*changes, *_shielded(at_us)]


def _shielded(at_us: int) -> list[Change]:
    """Give a node with two pods that have to leave, and a tenant's pods with lists as long as may be."""
    name = f"s{at_us}"
    junk: list[Json] = [{"key": f"t{number}"} for number in range(LONGEST_LIST)]
    pods = [
        _pod(name, f"t{number}", 1000, junk) | ({"status": {"phase": "Failed"}} if number % 2 else {})
        for number in range(TENANT_PODS)
    ]
    pods += [_pod(name, "soon", 1000, [{"operator": "Exists", "tolerationSeconds": 1}]), _pod(name, "now", 1000, [])]
    changes = [_change("pods", name, pod, at_us) for pod in pods]
    taint: Json = {"key": "lab", "effect": "NoExecute"}
    return [*changes, _change("nodes", name, _node(name, 1000, [taint]), at_us + AGAIN_US)]


def _node(name: str, version: int, taints: list[Json]) -> Json:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "Node", "metadata": metadata, "spec": {"taints": taints}}


def _pod(node: str, name: str, version: int, tolerations: list[Json]) -> Json:
    metadata = {"namespace": "ns", "name": name, "uid": f"{node}-{name}", "resourceVersion": str(version)}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node, "tolerations": tolerations}}


def _change(topic: InputTopic, node: str, shown: Json, at_us: int) -> Change:
    value = watch_event(CLUSTER, "MODIFIED", shown, None)
    return Change(at_us, topic, CLUSTER.encode(), value)
