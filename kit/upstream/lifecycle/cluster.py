"""The cluster that the node lifecycle controller watches and writes to.

It models the API server and the controller's caches in one: a write is visible as soon as it is answered. Writes wait
for their requests (`Steps`), and changed nodes for the NoSchedule pass (semantics.md 7.1).
"""

import dataclasses
from collections.abc import Iterable

from evictstream.kit.upstream.lifecycle.changes import (
    ClusterChange,
    ConditionsWritten,
    NodeReported,
    PodsMarkedNotReady,
    TaintsChanged,
)
from evictstream.kit.upstream.lifecycle.condition_taints import condition_taints, taint_difference
from evictstream.kit.upstream.lifecycle.leases import WatchedLeases
from evictstream.kit.upstream.lifecycle.nodes import FALSE, Condition, PodAddress, WatchedNode, WatchedPod
from evictstream.kit.upstream.lifecycle.steps import API_REQUEST, Steps
from evictstream.kit.upstream.lifecycle.taint_lists import has_taint, stamped, with_taint, without_taints
from evictstream.models.kubernetes.taints import Taint


class WatchedCluster:
    """Nodes, their leases, and pods.

    Attributes:
        nodes: by name, in the order in which they were first seen. Rounds use this order; Kubernetes' own is the random
            order of a Go map.
        leases: the leases of nodes, by name.
        pods: by address.
        changes: writes since this list was emptied, in order.
        changed_nodes: names of nodes whose NoSchedule taints are to be compared with their conditions, in order.
        events_to_send: Kubernetes events that were recorded, each a request of its own, since this was set to 0.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, WatchedNode] = {}
        self.leases = WatchedLeases()
        self.pods: dict[PodAddress, WatchedPod] = {}
        self._keys_on: dict[str, dict[PodAddress, None]] = {}  # pods of each node, in the order of arrival
        self.changes: list[ClusterChange] = []
        self.changed_nodes: dict[str, None] = {}
        self.events_to_send = 0

    def put_node(self, node: WatchedNode) -> None:
        """Store a node as another client wrote it."""
        self.nodes[node.name] = node
        self.changed_nodes[node.name] = None

    def put_pod(self, pod: WatchedPod) -> None:
        """Store a new or changed pod."""
        self.delete_pod(pod.key)
        self.pods[pod.key] = pod
        self._keys_on.setdefault(pod.node_name, {})[pod.key] = None

    def delete_pod(self, key: PodAddress) -> None:
        """Forget a pod, if it is known."""
        pod = self.pods.pop(key, None)
        if pod is not None:
            del self._keys_on[pod.node_name][key]

    def pods_on(self, name: str) -> tuple[WatchedPod, ...]:
        """List the pods of a node."""
        return tuple(self.pods[key] for key in self._keys_on.get(name, ()))

    def write_conditions(self, name: str, conditions: tuple[Condition, ...], now_us: int) -> None:
        """Write the conditions of a node; its request has been answered."""
        self.changes.append(ConditionsWritten(now_us, name, conditions))
        self.put_node(dataclasses.replace(self.nodes[name], conditions=conditions))

    def report(self, node: WatchedNode, reason: str, now_us: int) -> None:
        """Record an event about a node."""
        self.changes.append(NodeReported(now_us, node.name, node.uid, reason))
        self.events_to_send += 1

    def follow_conditions(self, name: str, now_us: int) -> Steps[None]:
        """Give a node the NoSchedule taints of its conditions (`doNoScheduleTaintingPass`)."""
        node = self.nodes.get(name)
        if node is not None:
            wanted = condition_taints(node.conditions, is_unschedulable=node.is_unschedulable)
            difference = taint_difference(node.taints, wanted)
            yield from self.swap_taints(node, difference.added, difference.removed, now_us)

    def swap_taints(
        self, node: WatchedNode, added: Iterable[Taint], removed: Iterable[Taint], now_us: int
    ) -> Steps[None]:
        """Add taints, then remove others, in two writes (`SwapNodeControllerTaint`); each reads the node first.

        Args:
            node: as the controller saw it.
            added: without times. All get the time at which this begins, even if their write has to wait; a taint that
                the node has already gets it too.
            removed: taints that the node may lack.
            now_us: the time.
        """
        put = tuple(stamped(taint, now_us) for taint in added)
        if put:
            yield API_REQUEST
            now_us = yield API_REQUEST
            self._add_taints(node.name, put, now_us)
        yield from self.remove_taints(node, removed)

    def remove_taints(self, node: WatchedNode, removed: Iterable[Taint]) -> Steps[None]:
        """Remove taints in one write. Without one of them on `node`, as the controller saw it, nothing is asked."""
        unwanted = tuple(removed)
        if not any(has_taint(unwanted, taint) for taint in node.taints):
            return
        yield API_REQUEST
        if self._carried(node.name, unwanted):
            now_us = yield API_REQUEST
            gone = self._carried(node.name, unwanted)
            if gone:
                present = self.nodes[node.name]
                self.changes.append(TaintsChanged(now_us, node.name, removed=gone))
                self.nodes[node.name] = dataclasses.replace(present, taints=without_taints(present.taints, gone))

    def mark_pods_not_ready(self, name: str, pods: Iterable[WatchedPod]) -> Steps[None]:
        """Set the condition `Ready` of pods to False, one after the other (semantics.md 7.4; `MarkPodsNotReady`).

        Pods without that condition, and pods where it is False, do not change.

        Args:
            name: the node.
            pods: pods on it, as the controller saw them.
        """
        for seen in pods:
            if seen.ready in (None, FALSE):
                continue
            now_us = yield API_REQUEST
            pod = self.pods.get(seen.key)
            if pod is None or pod.node_name != name or pod.ready in (None, FALSE):
                continue
            self.pods[pod.key] = dataclasses.replace(pod, ready=FALSE)
            self.events_to_send += 1
            last = self.changes[-1] if self.changes else None
            if isinstance(last, PodsMarkedNotReady) and (last.at_us, last.node) == (now_us, name):
                self.changes[-1] = dataclasses.replace(last, pods=(*last.pods, pod.key))
            else:
                self.changes.append(PodsMarkedNotReady(now_us, name, (pod.key,)))

    def drain_changes(self) -> tuple[ClusterChange, ...]:
        """Return the changes so far, and start a new list."""
        drained = tuple(self.changes)
        self.changes.clear()
        return drained

    def _carried(self, name: str, wanted: tuple[Taint, ...]) -> tuple[Taint, ...]:
        """List those of the taints that the node has now; none if it is gone."""
        node = self.nodes.get(name)
        return () if node is None else tuple(taint for taint in node.taints if has_taint(wanted, taint))

    def _add_taints(self, name: str, put: tuple[Taint, ...], now_us: int) -> None:
        node = self.nodes.get(name)
        if node is None:
            return
        taints = node.taints
        for taint in put:
            taints = with_taint(taints, taint)
        if taints != node.taints:
            self.changes.append(TaintsChanged(now_us, name, added=put))
            self.nodes[name] = dataclasses.replace(node, taints=taints)
