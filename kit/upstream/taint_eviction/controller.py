"""Upstream's taint eviction controller as a reference model (semantics.md 6).

Source: Kubernetes `pkg/controller/tainteviction/taint_eviction.go`. The model keeps upstream's weaknesses: timers
belong to names and not to pods, deadlines never move, nothing follows five failed attempts, and a restart loses all.

The caller gives the time. Handling a key takes no time, but as with upstream's clock no two keys are handled at one
instant: a timer that is found was set earlier. So the branch of 6.6 that replaces a timer whose creation is not in the
past is never taken, neither upstream nor here.
"""

from collections.abc import Mapping

from evictstream.kit.upstream.taint_eviction.cache import WatchCache, address_of
from evictstream.kit.upstream.taint_eviction.distribution import PodKey, WaitingKeys
from evictstream.kit.upstream.taint_eviction.evicting import ApiServer, Evictor
from evictstream.kit.upstream.taint_eviction.metrics import DeletionMetrics
from evictstream.kit.upstream.taint_eviction.outcomes import (
    AdditionSkipped,
    AttemptFailed,
    ControllerOutcome,
    TimerCancelled,
    TimerKept,
    TimerSet,
    cancelling,
)
from evictstream.kit.upstream.taint_eviction.staying import stay_us
from evictstream.kit.upstream.taint_eviction.timers import Added, Cancelled, TimerQueue
from evictstream.models.kubernetes.matching import tolerations_in_use
from evictstream.models.kubernetes.objects import Node, Pod
from evictstream.models.kubernetes.taints import NO_EXECUTE, Taint
from evictstream.models.kubernetes.tolerations import Tolerations


class TaintEvictionController:
    """The controller with its caches.

    Feed it with `feed.apply`, or by hand: `see_node`, `lose_node`, `see_pod` and `lose_pod` change the caches and queue
    keys, `work` handles what is queued, `advance` lets time pass. States that are
    replaced before `work` are skipped, as upstream.
    """

    __slots__ = ("_cache", "_comparison_operators", "_evictor", "_keys", "_now_us", "_outcomes", "_tainted", "_timers")

    def __init__(self, api: ApiServer | None = None, *, comparison_operators: bool = False) -> None:
        """Start with empty caches and without a time.

        Args:
            api: how the API server answers; by default everything succeeds at once.
            comparison_operators: the gate `TaintTolerationComparisonOperators` (semantics.md 3.2).
        """
        self._comparison_operators = comparison_operators
        self._cache = WatchCache()
        self._evictor = Evictor(api or ApiServer(), self._cache)
        self._keys = WaitingKeys()
        self._tainted: dict[str, tuple[Taint, ...]] = {}
        self._timers = TimerQueue()
        self._outcomes: list[ControllerOutcome] = []
        self._now_us: int | None = None

    # ------------------------------------------------------------------- what can be looked at

    @property
    def tainted_nodes(self) -> Mapping[str, tuple[Taint, ...]]:
        """The `NoExecute` taints by node; no entry for a node without any (semantics.md 6.3)."""
        return self._tainted

    @property
    def metrics(self) -> DeletionMetrics:
        """Counter and histogram since the last start."""
        return self._evictor.metrics

    def deadlines(self) -> dict[str, int]:
        """List the pending timers: address to fire time. A timer whose key was lost still fires, but is not listed."""
        return self._timers.pending()

    def is_queued(self, address: str) -> bool:
        """Return whether a key is present, pending or running; such a key cannot be added again (semantics.md 6.8)."""
        return address in self._timers

    # ------------------------------------------------------------------- what is seen and queued, semantics.md 6.2

    def see_node(self, node: Node) -> None:
        """Take a node that was added or modified into the cache, and queue it if its `NoExecute` taints differ."""
        old = self._cache.nodes.get(node.name)
        self._cache.nodes[node.name] = node
        if old is None or _no_execute(old) != _no_execute(node):
            self._keys.put_node(node.name)

    def lose_node(self, name: str) -> None:
        """Take a deleted node out of the cache, and queue it."""
        self._cache.nodes.pop(name, None)
        self._keys.put_node(name)

    def see_pod(self, pod: Pod) -> None:
        """Take a pod that was added or modified into the cache, and queue it if tolerations or node differ.

        UIDs are not compared: a replacement of the same name that is seen as one update may compare as equal.
        """
        old = self._cache.put_pod(pod)
        if old is None or old.tolerations != pod.tolerations or old.node_name != pod.node_name:
            self._keys.put_pod(PodKey(address_of(pod), pod.node_name))

    def lose_pod(self, address: str) -> None:
        """Take a deleted pod out of the cache, and queue it under the node that it was bound to."""
        old = self._cache.drop_pod(address)
        if old is not None:
            self._keys.put_pod(PodKey(address, old.node_name))

    # ------------------------------------------------------------------- how time passes

    def work(self, at_us: int) -> list[ControllerOutcome]:
        """Let time pass up to an instant, then handle every key that waits.

        Returns:
            The outcomes in their order.

        Raises:
            ValueError: the instant lies before one that was handed in earlier.
        """
        outcomes = self.advance(at_us)
        for key in self._keys.take_all():
            if isinstance(key, PodKey):
                self._handle_pod(key, at_us)
            else:
                self._handle_node(key, at_us)
        return outcomes + self._collect(at_us)

    def advance(self, to_us: int) -> list[ControllerOutcome]:
        """Let time pass up to and including an instant: timers fire, and attempts run.

        Raises:
            ValueError: the instant lies before one that was handed in earlier.
        """
        if self._now_us is not None and to_us < self._now_us:
            message = f"time went back from {self._now_us} to {to_us} microseconds; hand instants in in order"
            raise ValueError(message)
        return self._collect(to_us)

    def next_us(self) -> int | None:
        """Return when a timer fires or an attempt is answered next, if nothing is seen before; None if never."""
        instants = [at_us for at_us in (self._timers.next_ring_us(), self._evictor.next_us()) if at_us is not None]
        return min(instants, default=None)

    def restart(self, at_us: int) -> list[ControllerOutcome]:
        """Restart the controller, or let another replica take over: timers and running evictions are lost.

        All nodes and pods then arrive as added, and every window restarts (semantics.md 6.7, 6.12).

        Raises:
            ValueError: the instant lies before one that was handed in earlier.
        """
        outcomes = self.advance(at_us)
        self._keys = WaitingKeys()
        self._tainted = {}
        self._timers = TimerQueue()
        self._evictor.stop()
        for name in self._cache.nodes:
            self._keys.put_node(name)
        for pod in self._cache.pods.values():
            self._keys.put_pod(PodKey(address_of(pod), pod.node_name))
        return outcomes + self.work(at_us)

    def _collect(self, to_us: int) -> list[ControllerOutcome]:
        """Fire timers and run attempts up to an instant; returns all outcomes."""
        while True:
            ring_us, step_us = self._timers.next_ring_us(), self._evictor.next_us()
            if step_us is not None and step_us <= to_us and (ring_us is None or step_us <= ring_us):
                outcome = self._evictor.step()
                if not isinstance(outcome, AttemptFailed):
                    self._timers.finish(outcome.address)
                self._outcomes.append(outcome)
            elif ring_us is not None and ring_us <= to_us:
                timer = self._timers.ring()
                self._outcomes.append(self._evictor.begin(timer.address, timer.fire_at_us, ring_us))
            else:
                break
        self._now_us = to_us
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    # ------------------------------------------------------------------- how keys are handled, semantics.md 6.4 to 6.6

    def _handle_node(self, name: str, at_us: int) -> None:
        node = self._cache.nodes.get(name)
        if node is None:
            self._tainted.pop(name, None)  # the timers of its pods stay
            return
        taints = _no_execute(node)
        if taints:
            self._tainted[name] = taints
        else:
            self._tainted.pop(name, None)
        for pod in self._cache.pods_on(name):
            if taints:
                self._handle_on_tainted(address_of(pod), pod.tolerations, taints, at_us)
            else:
                self._cancel(address_of(pod), at_us)

    def _handle_pod(self, key: PodKey, at_us: int) -> None:
        pod = self._cache.pods.get(key.address)
        if pod is None:
            self._cancel(key.address, at_us)
            return
        taints = self._tainted.get(pod.node_name)
        if pod.node_name == key.node_name and taints is not None:
            self._handle_on_tainted(key.address, pod.tolerations, taints, at_us)

    def _handle_on_tainted(self, address: str, tolerations: Tolerations, taints: tuple[Taint, ...], at_us: int) -> None:
        in_use = tolerations_in_use(tolerations, taints, comparison_operators=self._comparison_operators)
        if in_use is None:
            self._cancel(address, at_us)
            self._add(address, 0, at_us)
            return
        stay = stay_us(in_use)
        if stay is None:
            self._cancel(address, at_us)
            return
        timer = self._timers.get(address)
        if timer is not None:
            self._outcomes.append(TimerKept(at_us, address, timer.fire_at_us, stay))
            return
        self._add(address, stay, at_us)

    def _cancel(self, address: str, at_us: int) -> None:
        timer = self._timers.get(address)
        if self._timers.cancel(address) is Cancelled.TIMER and timer is not None:
            self._outcomes.append(TimerCancelled(at_us, address, timer.fire_at_us, is_too_late=timer.is_running))
            self._outcomes.append(cancelling(at_us, address))

    def _add(self, address: str, stay: int, at_us: int) -> None:
        added = self._timers.add(address, at_us, at_us + stay, at_us)
        if added is Added.SKIPPED:
            self._outcomes.append(AdditionSkipped(at_us, address))
        elif added is Added.PENDING:
            self._outcomes.append(TimerSet(at_us, address, at_us + stay))
        else:
            self._outcomes.append(self._evictor.begin(address, at_us, at_us))


def _no_execute(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.taints if taint.effect == NO_EXECUTE)
