"""Makes the recordings in examples/situations: watch events of a cluster in trouble, the same on each machine.

`python -m tests.kit.situations.made` writes them. Objects have what decides and what policies select by, no more.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from evictstream.models.instants import instant_text, instant_us

FOLDER: Final = Path(__file__).parents[3] / "examples" / "situations"
Json = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
RACK: Final = "example.com/rack"
AGENT: Final = "node.cilium.io/agent-not-ready"
XID: Final = "gpu-health.example.com/xid"
MAINTENANCE: Final = "example.com/maintenance"
EVACUATE: Final = "example.com/evacuate"


class Cluster:
    """Collects the watch events of one cluster."""

    def __init__(self, name: str, begin: str) -> None:
        """`begin` is the instant of the first event, RFC 3339."""
        self.events: list[Json] = []
        self._name = name
        self._begin_us = instant_us(begin)
        self._nodes: dict[str, Json] = {}

    def _add(self, seconds: float, change: str, object_: Json) -> None:
        object_["metadata"]["resourceVersion"] = str(1_000 + len(self.events))
        at = instant_text(self._begin_us + round(seconds * 1_000_000))
        event = {"cluster": self._name, "type": change, "observedAt": at, "object": object_}
        self.events.append(json.loads(json.dumps(event)))

    def node(self, name: str, **labels: str) -> None:
        """Let a healthy node be there from the beginning."""
        metadata = {"name": name, "uid": f"uid-{name}", "labels": {"kubernetes.io/hostname": name} | labels}
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        self._nodes[name] = {"kind": "Node", "apiVersion": "v1", "metadata": metadata, "spec": {}, "status": status}
        self._add(0, "ADDED", self._nodes[name])

    def pod(
        self, name: str, node: str, owner: str, *, namespace: str = "shop", priority: int = 0, **stays: int
    ) -> None:
        """Let a pod be there from the beginning.

        Args:
            name: its name.
            node: where it is bound.
            owner: kind and name of its controller.
            namespace: of the pod.
            priority: of the pod.
            stays: for how many seconds it tolerates the taint `example.com/KEY`, by that key.
        """
        kind, _, controller = owner.partition("/")
        version = "v1" if kind == "ReplicationController" else "apps/v1"
        reference = {"apiVersion": version, "kind": kind, "name": controller, "uid": controller, "controller": True}
        tolerations = [
            {"key": f"example.com/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            for key, seconds in stays.items()
        ]
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "ownerReferences": [reference]}
        spec = {"nodeName": node, "priority": priority, "tolerations": tolerations, "containers": []}
        pod = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}
        self._add(0, "ADDED", pod)

    def taint(self, seconds: float, node: str, key: str | None) -> None:
        """Put a `NoExecute` taint on a node, or take all off."""
        self._nodes[node]["spec"]["taints"] = [] if key is None else [{"key": key, "effect": "NoExecute"}]
        self._add(seconds, "MODIFIED", self._nodes[node])


def agents_rollout(nodes: int = 500) -> Cluster:
    """An agent that is rolled out everywhere taints each node for 100 ms, a hundred nodes a second."""
    cluster = Cluster("edge-2", "2026-11-23T09:00:00Z")
    for number in range(nodes):
        cluster.node(f"n-{number:03}")
        for name in ("web", "db"):
            cluster.pod(
                f"{name}-{number:03}", f"n-{number:03}", f"{'StatefulSet' if name == 'db' else 'ReplicaSet'}/{name}"
            )
    for changed_us, number, key in sorted(
        (2_000_000 + number * 10_000 + off_us, number, key)
        for number in range(nodes)
        for off_us, key in ((0, AGENT), (100_000, ""))
    ):
        cluster.taint(changed_us / 1e6, f"n-{number:03}", key or None)
    return cluster


def xid_storm() -> Cluster:
    """A driver fault spreads over three racks of GPU nodes; a fourth rack has one broken board."""
    cluster = Cluster("gpu-1", "2026-11-24T03:00:00Z")
    for rack in range(4):
        for slot in range(8):
            cluster.node(f"r{rack}-{slot}", **{RACK: f"r{rack}", "pool": "gpu"})
            for number in range(4):
                cluster.pod(
                    f"train-{rack}-{slot}-{number}", f"r{rack}-{slot}", f"Job/train-{rack}", namespace="training"
                )
    for step, (rack, slot) in enumerate([(rack, slot) for slot in range(8) for rack in range(3)]):
        cluster.taint(60 + step * 2, f"r{rack}-{slot}", XID)
    cluster.taint(110, "r3-5", XID)
    for step, slot in enumerate(range(4, 8)):  # the drivers of half of the nodes come back by themselves
        for rack in range(3):
            cluster.taint(240 + step, f"r{rack}-{slot}", None)
    return cluster


def maintenance_wave() -> Cluster:
    """Somebody taints forty batch nodes of two zones in the afternoon; they may be emptied at night."""
    cluster = Cluster("batch-3", "2026-11-25T15:00:00Z")
    for number in range(40):
        name = f"batch-{number:02}"
        cluster.node(name, **{ZONE: f"z-{number % 2}"})
        for pod in range(5):
            cluster.pod(f"step-{number:02}-{pod}", name, "Job/nightly", namespace="batch")
    for number in range(40):
        cluster.taint(60 + number * 5, f"batch-{number:02}", MAINTENANCE)
    return cluster


def region_evacuation() -> Cluster:
    """A region has to be left: all nodes are tainted at once, and pods have ten minutes to be placed elsewhere."""
    cluster = Cluster("eu-west-1a", "2026-11-26T12:00:00Z")
    for number in range(60):
        name = f"n-{number:02}"
        cluster.node(name, **{ZONE: f"eu-west-1{'abc'[number % 3]}"})
        for pod in range(10):
            urgent = pod == 0
            cluster.pod(
                f"app-{number:02}-{pod}",
                name,
                f"ReplicaSet/app-{pod}",
                priority=1_000 if urgent else 0,
                evacuate=120 if urgent else 600,
            )
        cluster.pod(f"log-{number:02}", name, "DaemonSet/log", namespace="kube-system", evacuate=0)
    for number in range(60):
        cluster.taint(30, f"n-{number:02}", EVACUATE)
    return cluster


def singletons() -> Cluster:
    """Three nodes are drained; one tenant runs each of its services once."""
    cluster = Cluster("prod-eu-4", "2026-11-26T20:00:00Z")
    for number in range(3):
        cluster.node(f"n-{number}")
        for pod in range(6):
            name = f"{number}{pod}"
            cluster.pod(f"single-{name}-0", f"n-{number}", f"StatefulSet/single-{name}", namespace="tenant-solo")
            cluster.pod(f"web-{name}", f"n-{number}", "ReplicaSet/web", namespace="tenant-web")
    for number in range(3):
        cluster.taint(20 + number, f"n-{number}", MAINTENANCE)
    return cluster


MADE: Final[dict[str, Callable[[], Cluster]]] = {
    "agents-rollout": agents_rollout,
    "xid-storm": xid_storm,
    "maintenance-wave": maintenance_wave,
    "region-evacuation": region_evacuation,
    "singletons": singletons,
}


def lines(name: str) -> bytes:
    """Return what stands in the recording of a situation."""
    return b"".join(json.dumps(event, separators=(",", ":")).encode() + b"\n" for event in MADE[name]().events)


def files() -> Iterator[tuple[str, Path]]:
    """Give the situations and where their recordings are."""
    return ((name, FOLDER / f"{name}.jsonl.gz") for name in MADE)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for situation, path in files():
        path.write_bytes(gzip.compress(lines(situation), compresslevel=9, mtime=0))
