"""The node lifecycle controller as a model; the caller gives the time (semantics.md 7 and 8).

Source: `pkg/controller/nodelifecycle/node_lifecycle_controller.go`. Every method takes the time, changes the model and
returns what the controller would have written, in order. `LifecycleClock` calls them at upstream's
times; tests and previews may also call them one by one.

Left out: writes that fail and are tried again within 100 ms, waiting for API quota, and the labels for architecture
and operating system, which have nothing to do with taints.
"""

from collections.abc import Iterable
from types import MappingProxyType

from evictstream.models.upstream.lifecycle.changes import Change, NodeReported, ZoneTurned
from evictstream.models.upstream.lifecycle.cluster import Cluster
from evictstream.models.upstream.lifecycle.disruption import Passage, disruption_step
from evictstream.models.upstream.lifecycle.health_taints import (
    HEALTH_TAINTS,
    HealthStep,
    fitting_taint,
    health_step,
    opposite_taint,
)
from evictstream.models.upstream.lifecycle.limiter import new_limiter
from evictstream.models.upstream.lifecycle.nodes import READY, TRUE, PodKey, WatchedNode, WatchedPod, find_condition
from evictstream.models.upstream.lifecycle.queue import Again, RateLimitedTimedQueue, TimedValue
from evictstream.models.upstream.lifecycle.settings import RETRY_WITHOUT_READY_US, LifecycleSettings
from evictstream.models.upstream.lifecycle.silence import HealthUpdate, NodeHealth, update_health
from evictstream.models.upstream.lifecycle.taint_lists import has_taint
from evictstream.models.upstream.lifecycle.zones import ZoneState, is_excluded_from_disruption, zone_key


class NodeLifecycle:
    """A controller that has just started, with an empty memory, beside a cluster.

    Inputs are `put_node`, `delete_node`, `renew_lease`, `put_pod`, `delete_pod` and `pod_write_failed`; the
    periodic work is in `monitor` and `no_execute_pass`.
    """

    def __init__(self, settings: LifecycleSettings | None = None) -> None:
        """Start with an empty cluster.

        Args:
            settings: periods, rates and thresholds; upstream's defaults if absent.
        """
        self.settings = LifecycleSettings() if settings is None else settings
        self._cluster = Cluster()
        self._known: dict[str, WatchedNode] = {}  # nodes of the last round
        self._health: dict[str, NodeHealth] = {}  # stays when a node goes, as in the source
        self._states: dict[str, ZoneState] = {}
        self._queues: dict[str, RateLimitedTimedQueue] = {}  # stay when a zone goes
        self._to_mark_again: set[str] = set()

    # ----------------------------------------------------------------------------------------------------- what is seen

    @property
    def nodes(self) -> MappingProxyType[str, WatchedNode]:
        """All nodes by name, with taints and conditions as they are now."""
        return MappingProxyType(self._cluster.nodes)

    @property
    def pods(self) -> MappingProxyType[PodKey, WatchedPod]:
        """All pods by address."""
        return MappingProxyType(self._cluster.pods)

    @property
    def zone_states(self) -> MappingProxyType[str, ZoneState]:
        """State of each zone, by key."""
        return MappingProxyType(self._states)

    @property
    def queues(self) -> MappingProxyType[str, RateLimitedTimedQueue]:
        """Nodes that wait for a health taint, by zone. For reading only."""
        return MappingProxyType(self._queues)

    @property
    def health(self) -> MappingProxyType[str, NodeHealth]:
        """The controller's memory of each node's heartbeats, by name."""
        return MappingProxyType(self._health)

    # ------------------------------------------------------------------------------------------------------- what comes

    def put_node(self, node: WatchedNode, now_us: int) -> tuple[Change, ...]:
        """Store a new or changed node; its taints and conditions replace those known so far."""
        self._cluster.put_node(node, now_us)
        return self._cluster.drain_changes()

    def delete_node(self, name: str) -> None:
        """Forget a node, its lease and a pending retry for its pods, but not its heartbeats."""
        self._cluster.nodes.pop(name, None)
        self._cluster.leases.pop(name, None)
        self._to_mark_again.discard(name)

    def renew_lease(self, name: str, renewed_at_us: int) -> None:
        """Store the lease of a node: a heartbeat if `renewed_at_us`, by the node's clock, is later than before."""
        self._cluster.leases[name] = renewed_at_us

    def put_pod(self, pod: WatchedPod, now_us: int) -> tuple[Change, ...]:
        """Store a pod. On a node known to be not ready, the pod becomes not ready at once (`processPod`)."""
        before = self._cluster.pods.get(pod.key)
        self._cluster.put_pod(pod)
        arrives = before is None or before.node_name != pod.node_name
        health = self._health.get(pod.node_name)
        ready = None if health is None else health.ready
        if arrives and pod.node_name in self._cluster.nodes and ready is not None and ready.status != TRUE:
            self._cluster.mark_pods_not_ready(pod.node_name, (pod,), now_us)
        return self._cluster.drain_changes()

    def delete_pod(self, key: PodKey) -> None:
        """Forget a pod."""
        self._cluster.delete_pod(key)

    def pod_write_failed(self, pod: WatchedPod) -> None:
        """Report that a pod's write as not ready failed: the next round tries again, for all pods of its node.

        Args:
            pod: its actual state.
        """
        self._cluster.put_pod(pod)
        self._to_mark_again.add(pod.node_name)

    # ----------------------------------------------------------------------------------------------------- what is done

    def monitor(self, now_us: int) -> tuple[Change, ...]:
        """Run one round over all nodes (`monitorNodeHealth`).

        The order of steps matters: new zones, new nodes, deleted nodes, then for each node its heartbeat and its health
        taint, at last the zones. All decisions about taints are made on nodes as they were when the round began.
        """
        nodes = tuple(self._cluster.nodes.values())
        self._take_stock(nodes, now_us)
        ready_statuses: dict[str, list[str | None]] = {}
        for node in nodes:
            update = update_health(
                node, self._health.get(node.name), self._cluster.leases.get(node.name), self.settings, now_us
            )
            self._health[node.name] = update.health
            if update.written is not None:
                self._cluster.write_conditions(node.name, update.written, now_us)
            if not is_excluded_from_disruption(node.labels):
                status = None if update.current is None else update.current.status
                ready_statuses.setdefault(zone_key(node.labels), []).append(status)
            if update.current is not None:
                decisive = update.current if self.settings.reacts_in_same_round else update.observed
                self._treat_health(node, decisive.status, now_us)
                self._treat_pods(node, update, now_us)
            self._to_mark_again.discard(node.name)
        self._treat_zones(nodes, ready_statuses, now_us)
        return self._cluster.drain_changes()

    def no_execute_pass(self, now_us: int) -> tuple[Change, ...]:
        """Handle the queues of all zones as far as their limiters allow (`doNoExecuteTaintingPass`)."""
        for queue in self._queues.values():
            queue.work_off(now_us, lambda entry: self._taint(entry, now_us))
        return self._cluster.drain_changes()

    # ------------------------------------------------------------------------------------------------- steps of a round

    def _take_stock(self, nodes: Iterable[WatchedNode], now_us: int) -> None:
        """Notice new and deleted nodes; a new node loses its health taints, also after a restart of the controller."""
        present = {node.name: node for node in nodes}
        for node in present.values():
            if node.name in self._known:
                self._open_zone(node)
        for node in present.values():
            if node.name not in self._known:
                self._cluster.changes.append(NodeReported(now_us, node.name, node.uid, "RegisteredNode"))
                self._known[node.name] = node
                self._open_zone(node)
                self._mark_reachable(node, now_us)
        for name in [name for name in self._known if name not in present]:
            gone = self._known.pop(name)
            self._cluster.changes.append(NodeReported(now_us, name, gone.uid, "RemovingNode"))

    def _open_zone(self, node: WatchedNode) -> None:
        """Give a zone that is seen for the first time, or again after a while, a queue with a full limiter."""
        zone = zone_key(node.labels)
        if zone not in self._states:
            self._states[zone] = ZoneState.INITIAL
            self._queues[zone] = RateLimitedTimedQueue(new_limiter(self.settings.eviction_rate))

    def _mark_reachable(self, node: WatchedNode, now_us: int) -> None:
        """Remove both health taints, as far as the round has seen them, and remove the node from its queue."""
        for taint in HEALTH_TAINTS:
            if has_taint(node.taints, taint):
                self._cluster.remove_taints(node.name, (taint,), now_us)
        self._queues[zone_key(node.labels)].remove(node.name)

    def _treat_health(self, node: WatchedNode, ready_status: str, now_us: int) -> None:
        """Swap, queue or clear a node's health taint (`processTaintBaseEviction`)."""
        step = health_step(ready_status, node.taints)
        if step is HealthStep.CLEAR:
            self._mark_reachable(node, now_us)
        elif step is HealthStep.SWAP:
            self._put_health_taint(node, ready_status, now_us)
        elif step is not HealthStep.NOTHING:
            queue = self._queues[zone_key(node.labels)]
            if step is HealthStep.QUEUE:
                queue.remove(node.name)
            queue.add(node.name, node.uid, now_us)

    def _put_health_taint(self, node: WatchedNode, ready_status: str, now_us: int) -> bool:
        """Add the taint that fits and remove the opposite one; False if no taint fits."""
        fitting = fitting_taint(ready_status)
        if fitting is None:
            return False
        opposite = opposite_taint(fitting)
        self._cluster.swap_taints(
            node.name, (fitting,), (opposite,) if has_taint(node.taints, opposite) else (), now_us
        )
        return True

    def _treat_pods(self, node: WatchedNode, update: HealthUpdate, now_us: int) -> None:
        """Write the node's pods as not ready if `Ready` fell from True now, or if an earlier write failed."""
        current_status = TRUE if update.current is None else update.current.status
        has_fallen = current_status != TRUE and update.observed.status == TRUE
        if has_fallen:
            self._cluster.changes.append(NodeReported(now_us, node.name, node.uid, "NodeNotReady"))
        owes = node.name in self._to_mark_again and update.observed.status != TRUE
        if has_fallen or owes:
            self._cluster.mark_pods_not_ready(node.name, self._cluster.pods_on(node.name), now_us)

    def _treat_zones(
        self, nodes: Iterable[WatchedNode], ready_statuses: dict[str, list[str | None]], now_us: int
    ) -> None:
        """Compute the states of all zones and set their limiters (`handleDisruption`)."""
        step = disruption_step(self._states, ready_statuses, self.settings)
        if step.passage is Passage.ENTERED:
            for node in nodes:
                self._mark_reachable(node, now_us)
        elif step.passage is Passage.LEFT:
            for node in nodes:
                health = self._health[node.name]
                self._health[node.name] = NodeHealth(now_us, now_us, health.ready, health.lease_renewed_at_us)
        for zone, rate in step.rates.items():
            self._queues[zone].swap_limiter(rate, now_us)
        for zone, state in step.states.items():
            before = self._states.get(zone, ZoneState.INITIAL)
            if before is not state:
                self._cluster.changes.append(ZoneTurned(now_us, zone, before, state))
        self._states = dict(step.states)

    def _taint(self, entry: TimedValue, now_us: int) -> Again | None:
        """Handle a queued node: add the taint that fits now."""
        node = self._cluster.nodes.get(entry.value)
        if node is None:
            return None
        ready = find_condition(node.conditions, READY)
        if ready is None:
            return Again(RETRY_WITHOUT_READY_US)
        self._put_health_taint(node, ready.status, now_us)
        return None
