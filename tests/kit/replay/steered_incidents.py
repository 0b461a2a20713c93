"""Random incidents of small clusters, as their recording and as what was so at each instant, told apart from any rule.

Nodes of three zones get taints and lose them, turn unready, are deleted and come back; pods come, go, are replaced by
others of the same owner, and get other tolerations. No two of these changes are whole seconds apart, so none comes in
the very instant of a deadline.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

from evictstream.kit.recordings.record import RecordedRecord, Role
from tests.faults.objects import NOT_READY, UNREACHABLE, Json, watch_event

SECOND_US: Final = 1_000_000
MILLISECOND_US: Final = 1_000
START_US: Final = 1_760_000_000 * SECOND_US
"""A Thursday, 08:53:20 UTC."""
CLUSTERS: Final = ("lab", "shop")
KEYS: Final = ("agent", "rack/dead", NOT_READY, UNREACHABLE)
ZONES: Final = ("a", "b", "")
RACKS: Final = ("r1", "r2")
NAMESPACES: Final = ("web", "batch")
OWNERS: Final = ("ReplicaSet/web", "StatefulSet/db", "Job/nightly", "")
PRIORITIES: Final = (None, 100, 2000)
GROUPS: Final = ("", "", "gang")
GAPS_MS: Final = (5, 5, 20, 300, 900, 3_000, 11_000, 40_000)
FEWEST_CHANGES: Final = 6
_MOST_NODES: Final = 5
_FIRST_PODS: Final = 10
_STEP_MS: Final = 7
"""Each change comes so many milliseconds of a second after the one before: it has no common factor with 1,000."""


class NodeThen(NamedTuple):
    """A node at an instant: since when it has each `NoExecute` taint, and when it was deleted."""

    cluster: str
    name: str
    zone: str
    rack: str
    taints: dict[str, int]
    is_ready: bool = True
    left_us: int | None = None
    births: int = 0

    @property
    def is_unhealthy(self) -> bool:
        """As an outage counts it; a deleted one as it was."""
        return not self.is_ready or NOT_READY in self.taints or UNREACHABLE in self.taints


class PodThen(NamedTuple):
    """What does not change of a pod."""

    cluster: str
    namespace: str
    name: str
    uid: str
    node: str
    owner: str
    priority: int | None
    group: str


@dataclasses.dataclass
class Incident:
    """A recording, and what was so.

    Attributes:
        records: in the order of their times.
        nodes: what the nodes of all clusters were from each instant on, by cluster and name.
        pods: all that there ever were, by UID.
        begins: when a pod came, by UID.
        ends: when a pod was gone, by UID.
    """

    records: list[RecordedRecord] = dataclasses.field(default_factory=list)
    nodes: list[tuple[int, dict[tuple[str, str], NodeThen]]] = dataclasses.field(default_factory=list)
    pods: dict[str, PodThen] = dataclasses.field(default_factory=dict)
    begins: dict[str, int] = dataclasses.field(default_factory=dict)
    ends: dict[str, int] = dataclasses.field(default_factory=dict)

    def nodes_at(self, at_us: int) -> dict[tuple[str, str], NodeThen]:
        """Give the nodes at an instant."""
        return next((nodes for from_us, nodes in reversed(self.nodes) if from_us <= at_us), {})


class _Scene:
    """Writes an incident down, change by change."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.incident = Incident()
        self._draw = draw
        self._now_ms = START_US // MILLISECOND_US
        self._version = 1000
        self._nodes: dict[tuple[str, str], NodeThen] = {}
        self._tolerations: dict[str, list[Json]] = {}
        self._live: dict[str, PodThen] = {}

    def pick(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def begin(self) -> None:
        for cluster in CLUSTERS[: self.pick(1, 1, 2)]:
            for number in range(self._draw(st.integers(2, _MOST_NODES))):
                node = NodeThen(cluster, f"n{number}", self.pick(*ZONES), self.pick(*RACKS), {})
                self._put("ADDED", node)
        for _ in range(self._draw(st.integers(4, _FIRST_PODS))):
            self.pod_comes()

    def wait(self) -> None:
        self._now_ms += self.pick(*GAPS_MS)

    def change(self) -> None:
        """Let one thing happen."""
        self.wait()
        change = self.pick(
            self.storm, self.storm, self.taint, self.taint, self.recover, self.untaint, self.flip_ready,
            self.node_goes, self.pod_comes, self.pod_goes, self.pod_is_replaced, self.edit,
        )  # fmt: skip
        change()

    def taint(self) -> None:
        self._taint(self._some_node(), self.pick(*KEYS))

    def untaint(self) -> None:
        node = self._some_node()
        self._untaint(node, self.pick(*KEYS))

    def storm(self) -> None:
        """One taint on all nodes of a cluster, or of a zone of it."""
        for node, key in self._of_some():
            self._taint(node, key)

    def recover(self) -> None:
        for node, key in self._of_some():
            self._untaint(node, key)

    def _of_some(self) -> Iterator[tuple[NodeThen, str]]:
        cluster, zone, key = self.pick(CLUSTERS[0], *CLUSTERS), self.pick(None, None, *ZONES), self.pick(*KEYS)
        gap_ms = self.pick(1, 1, 200, 1_500)
        for node in list(self._nodes.values()):
            if node.cluster == cluster and zone in (None, node.zone):
                self._now_ms += gap_ms
                yield self._nodes[node.cluster, node.name], key

    def _taint(self, node: NodeThen, key: str) -> None:
        if key not in node.taints and node.left_us is None:
            at_us = self._tick()
            self._put("MODIFIED", node._replace(taints={**node.taints, key: at_us}), at_us)

    def _untaint(self, node: NodeThen, key: str) -> None:
        if key in node.taints and node.left_us is None:
            self._put("MODIFIED", node._replace(taints={one: us for one, us in node.taints.items() if one != key}))

    def flip_ready(self) -> None:
        node = self._some_node()
        if node.left_us is None:
            self._put("MODIFIED", node._replace(is_ready=not node.is_ready))

    def node_goes(self) -> None:
        """A node is deleted, or comes back as another one."""
        node = self._some_node()
        if node.left_us is None:
            at_us = self._tick()
            self._put("DELETED", node._replace(left_us=at_us), at_us)
        else:
            self._put("ADDED", node._replace(taints={}, left_us=None, births=node.births + 1))

    def pod_comes(self, like: PodThen | None = None) -> None:
        node, number = self._some_node(), len(self.incident.pods)
        pod = PodThen(
            cluster=node.cluster,
            namespace=self.pick(*NAMESPACES),
            name=f"p{number}",
            uid=f"u{number}",
            node=node.name,
            owner=self.pick(*OWNERS),
            priority=self.pick(*PRIORITIES),
            group=self.pick(*GROUPS),
        )
        if like is not None:
            nodes = [one.name for one in self._nodes.values() if one.cluster == like.cluster]
            pod = like._replace(name=self.pick(like.name, pod.name), uid=pod.uid, node=self.pick(*nodes))
        self.incident.pods[pod.uid] = self._live[pod.uid] = pod
        self._tolerations[pod.uid] = self._some_tolerations()
        self.incident.begins[pod.uid] = self._tell_pod("ADDED", pod)

    def pod_goes(self) -> PodThen | None:
        """A pod terminates and goes, or goes at once."""
        if not self._live:
            return None
        pod = self._live[self.pick(*self._live)]
        if self.pick(True, False):  # noqa: FBT003 - a choice
            self._tell_pod("MODIFIED", pod, is_terminating=True)
            self.wait()
        del self._live[pod.uid]
        self.incident.ends[pod.uid] = self._tell_pod("DELETED", pod, is_terminating=True)
        return pod

    def pod_is_replaced(self) -> None:
        pod = self.pod_goes()
        if pod is not None:
            self.wait()
            self.pod_comes(pod)

    def edit(self) -> None:
        """A pod gets other tolerations."""
        if self._live:
            pod = self._live[self.pick(*self._live)]
            self._tolerations[pod.uid] = self._some_tolerations()
            self._tell_pod("MODIFIED", pod)

    def _some_node(self) -> NodeThen:
        return self._nodes[self.pick(*self._nodes)]

    def _tick(self) -> int:
        """Return the next instant, with milliseconds of a second that no other one has."""
        fraction = len(self.incident.records) * _STEP_MS % 1_000
        self._now_ms += (fraction - self._now_ms) % 1_000
        return self._now_ms * MILLISECOND_US

    def _put(self, kind: str, node: NodeThen, at_us: int | None = None) -> None:
        at_us = self._tick() if at_us is None else at_us
        self._nodes[node.cluster, node.name] = node
        self.incident.nodes.append((at_us, dict(self._nodes)))
        self._tell("nodes", node.cluster, kind, _node(node), at_us)

    def _tell_pod(self, kind: str, pod: PodThen, *, is_terminating: bool = False) -> int:
        at_us = self._tick()
        shown = _pod(pod, self._tolerations[pod.uid])
        if is_terminating:
            shown["metadata"]["deletionTimestamp"] = "2025-10-09T08:00:00Z"
        self._tell("pods", pod.cluster, kind, shown, at_us)
        return at_us

    def _some_tolerations(self) -> list[Json]:
        """Most of them tolerate taints for some time; some pods leave at once."""
        key: Json = self.pick({}, {}, {"key": self.pick(*KEYS)})
        toleration: Json = {"operator": "Exists", "effect": "NoExecute", **key}
        seconds = self.pick(20, 60, 5, 1, 0, None, None, -1)
        if seconds is None:
            return []
        return [toleration if seconds == -1 else {**toleration, "tolerationSeconds": seconds}]

    def _tell(self, topic: Role, cluster: str, kind: str, shown: Json, at_us: int) -> None:
        self._version += 1
        shown["metadata"]["resourceVersion"] = str(self._version)
        records = self.incident.records
        records.append(
            RecordedRecord(
                topic=topic,
                partition=0,
                offset=len(records),
                timestamp=at_us // MILLISECOND_US,
                key=cluster.encode(),
                value=watch_event(cluster, kind, shown, at_us),
            )
        )


def _node(node: NodeThen) -> Json:
    zone = {"topology.kubernetes.io/zone": node.zone} if node.zone else {}
    taints = [{"key": key, "effect": "NoExecute"} for key in node.taints]
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": node.name, "uid": f"{node.name}+{node.births}", "labels": {"rack": node.rack, **zone}},
        "spec": {"taints": taints} if taints else {},
        "status": {"conditions": [{"type": "Ready", "status": "True" if node.is_ready else "Unknown"}]},
    }


def _pod(pod: PodThen, tolerations: list[Json]) -> Json:
    metadata: Json = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if pod.owner:
        kind, _, name = pod.owner.partition("/")
        metadata["ownerReferences"] = [{"kind": kind, "name": name, "uid": name, "controller": True}]
    if pod.group:
        metadata["labels"] = {"scheduling.x-k8s.io/pod-group": pod.group}
    spec: Json = {"nodeName": pod.node, "tolerations": tolerations}
    if pod.priority is not None:
        spec["priority"] = pod.priority
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


@st.composite
def incidents(draw: Callable[[st.SearchStrategy[Any]], Any], *, changes: int = 16) -> Incident:
    """Draw the incident of one or two clusters; `changes` is how many changes or storms there are at most."""
    scene = _Scene(draw)
    scene.begin()
    scene.storm()
    for _ in range(draw(st.integers(FEWEST_CHANGES, changes))):
        scene.change()
    return scene.incident
