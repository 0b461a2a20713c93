"""The cluster that the node lifecycle controller watches and writes to.

It models the API server and the controller's caches in one: a write is visible at once. After every change of a node
the NoSchedule pass runs for it (semantics.md 7.1), as the controller's workers do within milliseconds.
"""

import dataclasses
from collections.abc import Iterable

from evictstream.models.kubernetes.taints import Taint
from evictstream.models.upstream.lifecycle.changes import Change, ConditionsWritten, PodsMarkedNotReady, TaintsChanged
from evictstream.models.upstream.lifecycle.condition_taints import condition_taints, taint_difference
from evictstream.models.upstream.lifecycle.nodes import FALSE, Condition, PodKey, WatchedNode, WatchedPod
from evictstream.models.upstream.lifecycle.taint_lists import has_taint, stamped, with_taint, without_taints


class Cluster:
    """Nodes, their leases, and pods.

    Attributes:
        nodes: by name, in the order in which they were first seen. Rounds use this order; Kubernetes' own is the random
            order of a Go map.
        leases: renewal of each node's lease, by name.
        pods: by address.
        changes: what was written since this list was emptied, in order.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, WatchedNode] = {}
        self.leases: dict[str, int] = {}
        self.pods: dict[PodKey, WatchedPod] = {}
        self._keys_on: dict[str, dict[PodKey, None]] = {}  # pods of each node, in the order of arrival
        self.changes: list[Change] = []

    def put_node(self, node: WatchedNode, now_us: int) -> None:
        """Store a node as another client wrote it, and give it the NoSchedule taints of its conditions."""
        self.nodes[node.name] = node
        wanted = condition_taints(node.conditions, is_unschedulable=node.is_unschedulable)
        difference = taint_difference(node.taints, wanted)
        self.swap_taints(node.name, difference.added, difference.removed, now_us)

    def put_pod(self, pod: WatchedPod) -> None:
        """Store a new or changed pod."""
        self.delete_pod(pod.key)
        self.pods[pod.key] = pod
        self._keys_on.setdefault(pod.node_name, {})[pod.key] = None

    def delete_pod(self, key: PodKey) -> None:
        """Forget a pod, if it is known."""
        pod = self.pods.pop(key, None)
        if pod is not None:
            del self._keys_on[pod.node_name][key]

    def pods_on(self, name: str) -> tuple[WatchedPod, ...]:
        """List the pods of a node."""
        return tuple(self.pods[key] for key in self._keys_on.get(name, ()))

    def write_conditions(self, name: str, conditions: tuple[Condition, ...], now_us: int) -> None:
        """Write the conditions of a node and let the NoSchedule taints follow."""
        self.changes.append(ConditionsWritten(now_us, name, conditions))
        self.put_node(dataclasses.replace(self.nodes[name], conditions=conditions), now_us)

    def swap_taints(self, name: str, added: Iterable[Taint], removed: Iterable[Taint], now_us: int) -> None:
        """Add taints, then remove others, in two writes (`SwapNodeControllerTaint`).

        Args:
            name: of the node; it exists.
            added: without times. A taint that the node has already gets the current time.
            removed: taints that the node may lack.
            now_us: the time.
        """
        node = self.nodes[name]
        put = tuple(stamped(taint, now_us) for taint in added)
        taints = node.taints
        for taint in put:
            taints = with_taint(taints, taint)
        if taints != node.taints:
            self.changes.append(TaintsChanged(now_us, name, added=put))
        self.nodes[name] = dataclasses.replace(node, taints=taints)
        self.remove_taints(name, removed, now_us)

    def remove_taints(self, name: str, removed: Iterable[Taint], now_us: int) -> None:
        """Remove taints in one write; nothing happens if the node is gone or has none of them."""
        node = self.nodes.get(name)
        if node is None:
            return
        unwanted = tuple(removed)
        gone = tuple(taint for taint in node.taints if has_taint(unwanted, taint))
        if gone:
            self.changes.append(TaintsChanged(now_us, name, removed=gone))
            self.nodes[name] = dataclasses.replace(node, taints=without_taints(node.taints, gone))

    def mark_pods_not_ready(self, name: str, pods: Iterable[WatchedPod], now_us: int) -> None:
        """Set the condition `Ready` of pods to False (semantics.md 7.4; `MarkPodsNotReady`).

        Pods without that condition, and pods where it is False, do not change.

        Args:
            name: the node.
            pods: pods on it.
            now_us: the time.
        """
        marked = tuple(pod for pod in pods if pod.ready not in (None, FALSE))
        for pod in marked:
            self.pods[pod.key] = dataclasses.replace(pod, ready=FALSE)
        if marked:
            self.changes.append(PodsMarkedNotReady(now_us, name, tuple(pod.key for pod in marked)))

    def drain_changes(self) -> tuple[Change, ...]:
        """Return the changes so far, and start a new list."""
        drained = tuple(self.changes)
        self.changes.clear()
        return drained
