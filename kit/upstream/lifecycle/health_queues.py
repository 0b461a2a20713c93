"""The queues of the zones, and what enters and leaves them: the way of a node to its health taint (semantics.md 7.2).

Source: `pkg/controller/nodelifecycle/node_lifecycle_controller.go` (`processTaintBaseEviction`, `markNodeForTainting`,
`markNodeAsReachable`, `doNoExecuteTaintingPass`).
"""

from evictstream.kit.upstream.lifecycle.cluster import WatchedCluster
from evictstream.kit.upstream.lifecycle.health_taints import (
    HEALTH_TAINTS,
    HealthStep,
    fitting_taint,
    health_step,
    opposite_taint,
)
from evictstream.kit.upstream.lifecycle.limiter import new_limiter
from evictstream.kit.upstream.lifecycle.nodes import READY, WatchedNode, find_condition
from evictstream.kit.upstream.lifecycle.queue import Again, RateLimitedTimedQueue, TimedValue
from evictstream.kit.upstream.lifecycle.settings import RETRY_WITHOUT_READY_US
from evictstream.kit.upstream.lifecycle.steps import Steps
from evictstream.kit.upstream.lifecycle.zones import zone_key


class HealthQueues:
    """One queue for each zone, and the writes of health taints.

    Attributes:
        by_zone: the queues by key of the zone; they stay when a zone goes.
    """

    def __init__(self, cluster: WatchedCluster, eviction_rate: float) -> None:
        """Start without zones.

        Args:
            cluster: what is read and written.
            eviction_rate: of a zone that is seen for the first time.
        """
        self.by_zone: dict[str, RateLimitedTimedQueue] = {}
        self._cluster = cluster
        self._eviction_rate = eviction_rate

    def open(self, zone: str) -> None:
        """Give a zone a queue with a full limiter."""
        self.by_zone[zone] = RateLimitedTimedQueue(new_limiter(self._eviction_rate))

    def mark_reachable(self, node: WatchedNode) -> Steps[None]:
        """Remove both health taints, as far as `node` carries them, and remove the node from its queue.

        A taint that comes after `node` was read stays: a round that enters full disruption leaves those that its own
        passes have put.
        """
        for taint in HEALTH_TAINTS:
            yield from self._cluster.remove_taints(node, (taint,))
        self.by_zone[zone_key(node.labels)].remove(node.name)

    def treat(self, node: WatchedNode, ready_status: str, now_us: int) -> Steps[None]:
        """Swap, queue or clear a node's health taint (`processTaintBaseEviction`)."""
        step = health_step(ready_status, node.taints)
        if step is HealthStep.CLEAR:
            yield from self.mark_reachable(node)
        elif step is HealthStep.SWAP:
            yield from self._put_taint(node, ready_status, now_us)
        elif step is not HealthStep.NOTHING:
            queue = self.by_zone[zone_key(node.labels)]
            if step is HealthStep.QUEUE:
                queue.remove(node.name)
            queue.add(node.name, node.uid, now_us)

    def work_off(self, now_us: int) -> Steps[int]:
        """Handle all queues, one after the other, as far as their limiters allow (`doNoExecuteTaintingPass`).

        Returns:
            The time at which the pass ends.
        """
        for queue in tuple(self.by_zone.values()):
            now_us = yield from queue.work_off(now_us, self._handle)
        return now_us

    def _handle(self, entry: TimedValue, now_us: int) -> Steps[Again | None]:
        """Add the taint that fits when the entry's turn comes; the node may have recovered when the write is done."""
        node = self._cluster.nodes.get(entry.value)
        if node is None:
            return None
        ready = find_condition(node.conditions, READY)
        if ready is None:
            return Again(RETRY_WITHOUT_READY_US)
        yield from self._put_taint(node, ready.status, now_us)
        return None

    def _put_taint(self, node: WatchedNode, ready_status: str, now_us: int) -> Steps[None]:
        """Add the taint that fits and remove the opposite one; nothing if no taint fits."""
        fitting = fitting_taint(ready_status)
        if fitting is not None:
            yield from self._cluster.swap_taints(node, (fitting,), (opposite_taint(fitting),), now_us)
