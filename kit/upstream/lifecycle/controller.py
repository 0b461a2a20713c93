"""The node lifecycle controller as a model; the caller gives the time (semantics.md 7 and 8).

Source: `pkg/controller/nodelifecycle/node_lifecycle_controller.go`. Methods with a result of `ClusterChange`s do their
work in one instant and return what the controller would have written, in order. Those with a result of `Steps` describe
the work and what it waits for: `LifecycleClock` runs them at upstream's times, at any pace.

Left out: writes that fail, but for conflicts over a silent node; caches that lag behind the API server, but for that of
leases; and the labels for architecture and operating system, which have nothing to do with taints.
"""

import functools
from collections.abc import Iterable
from types import MappingProxyType

from evictstream.kit.upstream.lifecycle.changes import ClusterChange, ZoneTurned
from evictstream.kit.upstream.lifecycle.cluster import WatchedCluster
from evictstream.kit.upstream.lifecycle.disruption import Passage, disruption_step
from evictstream.kit.upstream.lifecycle.health_queues import HealthQueues
from evictstream.kit.upstream.lifecycle.leases import LiveLease
from evictstream.kit.upstream.lifecycle.nodes import TRUE, PodAddress, WatchedNode, WatchedPod
from evictstream.kit.upstream.lifecycle.pace import NODE_WRITE_TRIES
from evictstream.kit.upstream.lifecycle.queue import RateLimitedTimedQueue
from evictstream.kit.upstream.lifecycle.settings import LifecycleSettings
from evictstream.kit.upstream.lifecycle.silence import HealthUpdate, NodeHealth, update_health
from evictstream.kit.upstream.lifecycle.steps import API_REQUEST, NOW, NodesChecked, QueueUnlocked, Steps, at_once
from evictstream.kit.upstream.lifecycle.zones import ZoneState, is_excluded_from_disruption, zone_key


class NodeLifecycle:
    """A controller that has just started, with an empty memory, beside a cluster.

    Inputs are `put_node`, `delete_node`, `renew_lease`, `put_pod`, `delete_pod` and `pod_write_failed`; the
    periodic work is in `monitor` and `no_execute_pass`. Beside a clock with a pace, nodes and pods come in through the
    clock, because the writes that they cause wait too.

    Attributes:
        settings: periods, rates and thresholds.
        cluster: the nodes and pods, and what is to be written to them.
    """

    def __init__(self, settings: LifecycleSettings | None = None) -> None:
        """Start with an empty cluster.

        Args:
            settings: periods, rates and thresholds; upstream's defaults if absent.
        """
        self.settings = LifecycleSettings() if settings is None else settings
        self.cluster = WatchedCluster()
        self._watched: dict[str, WatchedNode] = {}  # nodes of the last round
        self._health: dict[str, NodeHealth] = {}  # stays when a node goes, as in the source
        self._states: dict[str, ZoneState] = {}
        self._queues = HealthQueues(self.cluster, self.settings.eviction_rate)
        self._to_mark_again: set[str] = set()

    # ----------------------------------------------------------------------------------------------------- what is seen

    @property
    def nodes(self) -> MappingProxyType[str, WatchedNode]:
        """All nodes by name, with taints and conditions as they are now."""
        return MappingProxyType(self.cluster.nodes)

    @property
    def pods(self) -> MappingProxyType[PodAddress, WatchedPod]:
        """All pods by address."""
        return MappingProxyType(self.cluster.pods)

    @property
    def zone_states(self) -> MappingProxyType[str, ZoneState]:
        """State of each zone, by key."""
        return MappingProxyType(self._states)

    @property
    def queues(self) -> MappingProxyType[str, RateLimitedTimedQueue]:
        """Nodes that wait for a health taint, by zone. For reading only."""
        return MappingProxyType(self._queues.by_zone)

    @property
    def health(self) -> MappingProxyType[str, NodeHealth]:
        """The controller's memory of each node's heartbeats, by name."""
        return MappingProxyType(self._health)

    # ------------------------------------------------------------------------------------------------------- what comes

    def put_node(self, node: WatchedNode, now_us: int) -> tuple[ClusterChange, ...]:
        """Store a new or changed node; its taints and conditions replace those known so far."""
        self.cluster.put_node(node)
        return self._do(self._follow_changed_nodes(now_us), now_us)

    def delete_node(self, name: str) -> None:
        """Forget a node, its lease and a pending retry for its pods, but not its heartbeats."""
        self.cluster.nodes.pop(name, None)
        self.cluster.leases.delete(name)
        self._to_mark_again.discard(name)

    def renew_lease(self, name: str, renewed_at_us: int) -> None:
        """Store the lease of a node: a heartbeat if `renewed_at_us`, by the node's clock, is later than before."""
        self.cluster.leases.put(name, renewed_at_us)

    def put_pod(self, pod: WatchedPod, now_us: int) -> tuple[ClusterChange, ...]:
        """Store a pod. On a node known to be not ready, the pod becomes not ready at once (`processPod`)."""
        return self._do(self.mark_arrived(pod.key), now_us) if self.store_pod(pod) else ()

    def store_pod(self, pod: WatchedPod) -> bool:
        """Store a pod; returns whether it has just arrived on its node, so that `mark_arrived` has to follow."""
        before = self.cluster.pods.get(pod.key)
        self.cluster.put_pod(pod)
        return before is None or before.node_name != pod.node_name

    def delete_pod(self, key: PodAddress) -> None:
        """Forget a pod."""
        self.cluster.delete_pod(key)

    def pod_write_failed(self, pod: WatchedPod) -> None:
        """Report that a pod's write as not ready failed: the next round tries again, for all pods of its node.

        Args:
            pod: its actual state.
        """
        self.cluster.put_pod(pod)
        self._to_mark_again.add(pod.node_name)

    # ----------------------------------------------------------------------------------------------------- what is done

    def monitor(self, now_us: int) -> tuple[ClusterChange, ...]:
        """Run one round over all nodes, in one instant."""
        return self._do(self.round(now_us), now_us)

    def no_execute_pass(self, now_us: int) -> tuple[ClusterChange, ...]:
        """Handle the queues of all zones as far as their limiters allow, in one instant."""
        return self._do(self.work_off_queues(now_us), now_us)

    def round(self, now_us: int) -> Steps[None]:
        """Describe one round over all nodes (`monitorNodeHealth`).

        The order of steps matters: new zones, new nodes, deleted nodes, then for each node its heartbeat and its health
        taint, at last the zones. All decisions about taints are made on nodes as they were when the round began. Until
        the round ends, the queues go on at the rates of the round before.
        """
        nodes = tuple(self.cluster.nodes.values())
        yield from self._take_stock(nodes, now_us)
        ready_statuses: dict[str, list[str | None]] = {}
        yield NodesChecked(tuple(functools.partial(self._check, node, ready_statuses) for node in nodes))
        yield from self._treat_zones(nodes, ready_statuses)

    def work_off_queues(self, now_us: int) -> Steps[int]:
        """Describe one pass over the queues of all zones; its result is the time at which it ends."""
        return self._queues.work_off(now_us)

    def mark_arrived(self, key: PodAddress) -> Steps[None]:
        """Describe what happens to a pod that has arrived on a node (`processPod`)."""
        pod = self.cluster.pods.get(key)
        if pod is not None and pod.node_name in self.cluster.nodes:
            health = self._health.get(pod.node_name)
            ready = None if health is None else health.ready
            if ready is not None and ready.status != TRUE:
                yield from self.cluster.mark_pods_not_ready(pod.node_name, (pod,))

    def _do(self, steps: Steps[object], now_us: int) -> tuple[ClusterChange, ...]:
        """Do a piece of work in one instant; wherever it waits, the NoSchedule taints of changed nodes follow."""
        at_once(steps, now_us, lambda: at_once(self._follow_changed_nodes(now_us), now_us))
        return self.cluster.drain_changes()

    def _follow_changed_nodes(self, now_us: int) -> Steps[None]:
        while self.cluster.changed_nodes:
            name = next(iter(self.cluster.changed_nodes))
            del self.cluster.changed_nodes[name]
            yield from self.cluster.follow_conditions(name, now_us)

    # ------------------------------------------------------------------------------------------------- steps of a round

    def _take_stock(self, nodes: Iterable[WatchedNode], now_us: int) -> Steps[None]:
        """Notice new and deleted nodes; a new node loses its health taints, also after a restart of the controller."""
        present = {node.name: node for node in nodes}
        for node in present.values():
            if node.name in self._watched:
                self._open_zone(node)
        for node in present.values():
            if node.name not in self._watched:
                self.cluster.report(node, "RegisteredNode", now_us)
                self._watched[node.name] = node
                self._open_zone(node)
                yield from self._queues.mark_reachable(node)
                now_us = yield NOW
        for name in [name for name in self._watched if name not in present]:
            self.cluster.report(self._watched.pop(name), "RemovingNode", now_us)

    def _open_zone(self, node: WatchedNode) -> None:
        """Give a zone that is seen for the first time, or again after a while, a queue with a full limiter."""
        zone = zone_key(node.labels)
        if zone not in self._states:
            self._states[zone] = ZoneState.INITIAL
            self._queues.open(zone)

    def _check(self, node: WatchedNode, ready_statuses: dict[str, list[str | None]], now_us: int) -> Steps[None]:
        """Check one node's heartbeat, and treat its health taint and its pods."""
        for _ in range(NODE_WRITE_TRIES):
            update, now_us = yield from self._judge(node, now_us)
            if update is None:
                return
            if update.written is None:
                break
            now_us = yield API_REQUEST
            present = self.cluster.nodes.get(node.name)
            if present is None:
                return
            if present is node:
                self.cluster.write_conditions(node.name, update.written, now_us)
                break
            now_us = yield API_REQUEST  # the write was refused, because the node has changed: it is read again
            node = self.cluster.nodes.get(node.name, present)
            self._open_zone(node)
        else:
            return
        self._health[node.name] = update.health
        if not is_excluded_from_disruption(node.labels):
            status = None if update.current is None else update.current.status
            ready_statuses.setdefault(zone_key(node.labels), []).append(status)
        if update.current is not None:
            pods = self.cluster.pods_on(node.name)
            decisive = update.current if self.settings.reacts_in_same_round else update.observed
            yield from self._queues.treat(node, decisive.status, now_us)
            yield from self._treat_pods(node, update, pods)
        self._to_mark_again.discard(node.name)

    def _judge(self, node: WatchedNode, now_us: int) -> Steps[tuple[HealthUpdate | None, int]]:
        """Check one node's heartbeat; before it is called silent, its lease is read from the API server.

        Nothing is judged while the cache of leases has to catch up with such a read. A node that is not judged counts
        for no zone in this round, and keeps its conditions and taints.

        Returns:
            The result, None if the node is not judged, and the time.
        """
        leases, saved = self.cluster.leases, self._health.get(node.name)
        if self.settings.reads_live_leases and leases.are_awaited:
            return None, now_us
        cached = leases.cached(node.name)
        update = update_health(node, saved, cached, self.settings, now_us)
        if not (self.settings.reads_live_leases and update.is_silent):
            return update, now_us
        now_us = yield API_REQUEST
        if leases.look(node.name, update.unwritten.lease) is not LiveLease.AS_REMEMBERED:
            self._health[node.name] = update.unwritten
            return None, now_us
        return update_health(node, saved, cached, self.settings, now_us), now_us

    def _treat_pods(self, node: WatchedNode, update: HealthUpdate, pods: Iterable[WatchedPod]) -> Steps[None]:
        """Write the node's pods as not ready if `Ready` fell from True now, or if an earlier write failed."""
        current_status = TRUE if update.current is None else update.current.status
        has_fallen = current_status != TRUE and update.observed.status == TRUE
        if has_fallen:
            now_us = yield NOW
            self.cluster.report(node, "NodeNotReady", now_us)
        owes = node.name in self._to_mark_again and update.observed.status != TRUE
        if has_fallen or owes:
            yield from self.cluster.mark_pods_not_ready(node.name, pods)

    def _treat_zones(self, nodes: Iterable[WatchedNode], ready_statuses: dict[str, list[str | None]]) -> Steps[None]:
        """Compute the states of all zones and set their limiters, when no pass uses them (`handleDisruption`)."""
        step = disruption_step(self._states, ready_statuses, self.settings)
        now_us = yield NOW
        if step.passage is Passage.ENTERED:
            for node in nodes:
                yield from self._queues.mark_reachable(node)
        elif step.passage is Passage.LEFT:
            for node in nodes:
                health = self._health.get(node.name)
                if health is not None:
                    self._health[node.name] = NodeHealth(now_us, now_us, health.ready, health.lease)
        for zone, rate in step.rates.items():
            now_us = yield QueueUnlocked(zone)
            self._queues.by_zone[zone].swap_limiter(rate, now_us)
        for zone, state in step.states.items():
            before = self._states.get(zone, ZoneState.INITIAL)
            if before is not state:
                self.cluster.changes.append(ZoneTurned(now_us, zone, before, state))
        self._states = dict(step.states)
