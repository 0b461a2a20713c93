"""Runs the node lifecycle controller at upstream's times (semantics.md 7.2 and 8.1)."""

from collections.abc import Callable
from typing import Generic, TypeVar

from evictstream.kit.upstream.lifecycle.changes import ClusterChange
from evictstream.kit.upstream.lifecycle.controller import NodeLifecycle
from evictstream.kit.upstream.lifecycle.nodes import PodAddress, WatchedNode, WatchedPod
from evictstream.kit.upstream.lifecycle.pace import INSTANT, MAX_QUEUED_EVENTS, RequestPace
from evictstream.kit.upstream.lifecycle.settings import NO_EXECUTE_PASS_PERIOD_US
from evictstream.kit.upstream.lifecycle.steps import API_REQUEST, NOW, Pause, Steps
from evictstream.kit.upstream.lifecycle.tasks import FIRST, LAST, TaskRunner

_Key = TypeVar("_Key")


class LifecycleClock:
    """A virtual clock: rounds, and passes over the queues every 100 ms, beside the writes that they cause.

    With the default pace nothing takes time: a round every monitor period, all from the start on. At any other pace the
    period counts from the end of one round to the begin of the next, as upstream (`wait.UntilWithContext`).

    Where a round and a pass fall on one instant the round comes first, so that the pass handles the nodes that it
    queues. Upstream runs both concurrently, so either order can occur there.
    """

    def __init__(self, lifecycle: NodeLifecycle, started_at_us: int, pace: RequestPace = INSTANT) -> None:
        """Start the clock.

        Args:
            lifecycle: the controller to run.
            started_at_us: time of the first round; the first pass follows at the pace's offset.
            pace: how long its requests take.
        """
        self._lifecycle = lifecycle
        self._tasks = TaskRunner(pace, lambda zone: lifecycle.queues[zone].is_locked, self._follow)
        self._next_round_us: int | None = None  # None during a round
        self._tainting = _WorkQueue(self._tasks, pace.node_workers, lifecycle.cluster.follow_conditions)
        self._marking: _WorkQueue[PodAddress] = _WorkQueue(
            self._tasks, pace.pod_workers, lambda key, _: lifecycle.mark_arrived(key)
        )
        self._events = 0
        self._sends_events = False
        self._tasks.schedule(self._rounds(), started_at_us, FIRST)
        self._tasks.schedule(self._passes(), started_at_us + pace.pass_offset_us, LAST)

    def advance(self, to_us: int) -> tuple[ClusterChange, ...]:
        """Let time pass up to and including an instant.

        Args:
            to_us: the instant; one that lies behind changes nothing.

        Returns:
            All changes, in order, with their times.
        """
        while (at_us := self._tasks.next_us) is not None and at_us <= to_us:
            self._tasks.run_next()
        return self._lifecycle.cluster.drain_changes()

    def put_node(self, node: WatchedNode, now_us: int) -> tuple[ClusterChange, ...]:
        """Store a new or changed node; the NoSchedule taints of its conditions follow when their requests are answered.

        Args:
            node: its taints and conditions replace those known so far.
            now_us: the time, up to which the clock has been advanced.
        """
        self._lifecycle.cluster.put_node(node)
        self._follow(now_us)
        return self._lifecycle.cluster.drain_changes()

    def put_pod(self, pod: WatchedPod, now_us: int) -> tuple[ClusterChange, ...]:
        """Store a pod; if it has just arrived on a node known to be not ready, its mark follows.

        Args:
            pod: a new or changed one.
            now_us: the time, up to which the clock has been advanced.
        """
        if self._lifecycle.store_pod(pod):
            self._marking.add(pod.key, now_us)
        return self._lifecycle.cluster.drain_changes()

    def _rounds(self) -> Steps[None]:
        now_us = yield NOW
        while True:
            self._next_round_us = None
            yield from self._lifecycle.round(now_us)
            period_us = self._lifecycle.settings.monitor_period_us
            self._next_round_us = (yield NOW) + period_us
            now_us = yield Pause(period_us)

    def _passes(self) -> Steps[None]:
        now_us = yield NOW
        while True:
            now_us = yield from self._lifecycle.work_off_queues(now_us)
            now_us = yield Pause(self._until_next_pass_us(now_us))

    def _until_next_pass_us(self, now_us: int) -> int:
        """Skip passes before the next round while the queues are empty; such passes change nothing."""
        behind_us = 0
        if self._next_round_us is not None and not any(len(queue) for queue in self._lifecycle.queues.values()):
            behind_us = max(self._next_round_us - now_us - NO_EXECUTE_PASS_PERIOD_US, 0)
        return (1 - -behind_us // NO_EXECUTE_PASS_PERIOD_US) * NO_EXECUTE_PASS_PERIOD_US

    def _follow(self, now_us: int) -> None:
        """Hand changed nodes to the NoSchedule workers, and recorded events to their sender."""
        cluster = self._lifecycle.cluster
        while cluster.changed_nodes:
            name = next(iter(cluster.changed_nodes))
            del cluster.changed_nodes[name]
            self._tainting.add(name, now_us)
        self._events = min(self._events + cluster.events_to_send, MAX_QUEUED_EVENTS)
        cluster.events_to_send = 0
        if self._events and not self._sends_events:
            self._sends_events = True
            self._tasks.start(self._send_events(), now_us)

    def _send_events(self) -> Steps[None]:
        """Send events one by one, concurrently with everything else and through the same limiter."""
        while self._events:
            self._events -= 1
            yield API_REQUEST
        self._sends_events = False


class _WorkQueue(Generic[_Key]):
    """Keys for workers (`workqueue`): a key that waits is not added twice, and no two workers have the same one."""

    def __init__(self, tasks: TaskRunner, most_workers: int, handle: Callable[[_Key, int], Steps[None]]) -> None:
        self._tasks = tasks
        self._most_workers = most_workers
        self._handle = handle
        self._waiting: dict[_Key, None] = {}
        self._in_work: set[_Key] = set()

    def add(self, key: _Key, now_us: int) -> None:
        """Let a key be handled as soon as a worker is free."""
        self._waiting[key] = None
        if key not in self._in_work and len(self._in_work) < self._most_workers:
            self._tasks.start(self._work(now_us), now_us)

    def _work(self, now_us: int) -> Steps[None]:
        """Handle keys until none is left, but for those of other workers, who look again when they are done."""
        while (key := next((one for one in self._waiting if one not in self._in_work), None)) is not None:
            del self._waiting[key]
            self._in_work.add(key)
            yield from self._handle(key, now_us)
            self._in_work.discard(key)
            now_us = yield NOW
