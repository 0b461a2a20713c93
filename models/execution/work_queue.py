"""Evictions that wait for their turn: in order on each node, one at a time there, in turns between namespaces.

Each operation costs the same whatever waits, but for those that are said to look at everything.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections import deque
from collections.abc import Iterator

from evictstream.models.messages.command import EvictionCommand


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class QueuedEviction:
    """An `Evict` that is queued or being carried out.

    Attributes:
        command: what to do.
        partition: where the command stands in its topic.
        offset: the same.
        queued_at: monotonic seconds.
        said_at: monotonic seconds when `Accepted` was said last, or `queued_at`.
        tries: how often it was put off.
        is_running: whether a worker has it.
        is_withdrawn: whether it must not be done any more.
        is_given_up: whether it must not be answered either, unless it is done: who reads its partition next does both.
    """

    command: EvictionCommand
    partition: int
    offset: int
    queued_at: float
    said_at: float
    tries: int = 0
    is_running: bool = False
    is_withdrawn: bool = False
    is_given_up: bool = False


class _Lane:
    """What waits on one node."""

    __slots__ = ("is_busy", "is_listed", "queue")

    def __init__(self) -> None:
        self.queue: deque[QueuedEviction] = deque()
        self.is_busy = False
        self.is_listed = False


class WorkQueue:
    """All that waits in one cluster. The caller keeps the number of entries within its limit."""

    def __init__(self) -> None:
        self._by_id: dict[str, QueuedEviction] = {}
        self._lanes: dict[str, _Lane] = {}
        # Nodes whose turn it may be, by the namespace of their first pod; namespaces in the order of their turns.
        self._ready: dict[str, deque[str]] = {}
        self._turns: deque[str] = deque()
        self._put_off: list[tuple[float, int, QueuedEviction]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        """How many wait or run."""
        return len(self._by_id)

    def __iter__(self) -> Iterator[QueuedEviction]:
        """All that wait or run; looks at everything."""
        return iter(tuple(self._by_id.values()))

    def put(self, waiting: QueuedEviction) -> None:
        """Queue an eviction behind all others of its node. No other one of its `evictionId` may be queued."""
        self._by_id[waiting.command.eviction_id] = waiting
        self._append(waiting)

    def withdraw(self, eviction_id: str) -> QueuedEviction | None:
        """Take an eviction out that no worker has; None if there is none. One that runs is only marked."""
        waiting = self._by_id.get(eviction_id)
        if waiting is None:
            return None
        waiting.is_withdrawn = True
        if waiting.is_running:
            return None
        del self._by_id[eviction_id]
        return waiting

    def take(self, now: float) -> QueuedEviction | None:
        """Give a worker what is next, and keep its node busy until `finish` or `put_off`; None if nothing is ready."""
        while self._put_off and self._put_off[0][0] <= now:
            waiting = heapq.heappop(self._put_off)[2]
            if not waiting.is_withdrawn:
                self._append(waiting)
        while self._turns:
            namespace = self._turns.popleft()
            nodes = self._ready[namespace]
            node = nodes.popleft()
            if nodes:
                self._turns.append(namespace)
            else:
                del self._ready[namespace]
            lane = self._lanes[node]
            lane.is_listed = False
            head = self._head(lane)
            if head is None:
                del self._lanes[node]
            elif head.command.namespace != namespace:
                self._list(node, lane)  # what stood before it was withdrawn
            else:
                lane.queue.popleft()
                lane.is_busy = head.is_running = True
                return head
        return None

    def next_at(self) -> float | None:
        """When what was put off comes back, monotonic seconds; None if nothing was."""
        return self._put_off[0][0] if self._put_off else None

    def finish(self, waiting: QueuedEviction) -> None:
        """Forget what a worker has done; its node's next may begin."""
        if self._by_id.get(waiting.command.eviction_id) is waiting:
            del self._by_id[waiting.command.eviction_id]
        self._release(waiting)

    def put_off(self, waiting: QueuedEviction, until: float) -> None:
        """Queue again, at that monotonic second, what a worker could not do now; others of the node go first."""
        waiting.is_running = False
        waiting.tries += 1
        self._release(waiting)
        heapq.heappush(self._put_off, (until, next(self._numbers), waiting))

    def remove_partition(self, partition: int) -> list[QueuedEviction]:
        """Give up everything of a partition, without an answer; looks at everything. Returns also what a worker has."""
        found = [waiting for waiting in self if waiting.partition == partition]
        for waiting in found:
            waiting.is_given_up = True
            self.withdraw(waiting.command.eviction_id)
        return found

    def _append(self, waiting: QueuedEviction) -> None:
        lane = self._lanes.setdefault(waiting.command.node, _Lane())
        lane.queue.append(waiting)
        self._list(waiting.command.node, lane)

    def _release(self, waiting: QueuedEviction) -> None:
        lane = self._lanes[waiting.command.node]
        lane.is_busy = False
        if self._head(lane) is None:
            del self._lanes[waiting.command.node]
        else:
            self._list(waiting.command.node, lane)

    def _list(self, node: str, lane: _Lane) -> None:
        head = self._head(lane)
        if lane.is_busy or lane.is_listed or head is None:
            return
        lane.is_listed = True
        namespace = head.command.namespace
        nodes = self._ready.get(namespace)
        if nodes is None:
            nodes = self._ready[namespace] = deque()
            self._turns.append(namespace)
        nodes.append(node)

    @staticmethod
    def _head(lane: _Lane) -> QueuedEviction | None:
        while lane.queue and lane.queue[0].is_withdrawn:
            lane.queue.popleft()
        return lane.queue[0] if lane.queue else None
