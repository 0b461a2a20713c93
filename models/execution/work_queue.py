"""Evictions that wait for their turn: in order in each namespace, in turns between namespaces, one at a time for a pod.

Pods of a node need not wait for one another: each eviction has its own pod as precondition, and what orders commands is
their `evictionId`. No namespace has all that may run at once, so that slow ones, whose webhook is dead, leave room.
Each operation costs the same whatever waits, but for those that are said to look at everything.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections import Counter, deque
from collections.abc import Iterator
from typing import Final

from evictstream.models.messages.command import EvictionCommand

SHARE: Final = 3
"""A namespace may run so many times as many as could still begin: three quarters of all if it is alone, three sevenths
each if there are two. The rest is free for the next one."""


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class QueuedEviction:
    """An `Evict` that is queued or being carried out.

    Attributes:
        command: what to do.
        partition: where the command stands in its topic.
        offset: the same.
        queued_at: monotonic seconds.
        said_at: monotonic seconds when `Accepted` was said last, or `queued_at`.
        seen_at: monotonic seconds when the first `Evict` of the eviction was read.
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
    seen_at: float
    tries: int = 0
    is_running: bool = False
    is_withdrawn: bool = False
    is_given_up: bool = False


class WorkQueue:
    """All that waits in one cluster. The caller keeps the number of entries within its limit."""

    def __init__(self) -> None:
        self._waiting: dict[str, QueuedEviction] = {}  # by `evictionId`
        self._running: dict[str, QueuedEviction] = {}
        # What may begin, by namespace; namespaces in the order of their turns.
        self._ready: dict[str, deque[QueuedEviction]] = {}
        self._turns: deque[str] = deque()
        self._behind: dict[str, deque[QueuedEviction]] = {}  # by UID of a pod that is being evicted: what comes after
        self._running_in: Counter[str] = Counter()
        self._put_off: list[tuple[float, int, QueuedEviction]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        """How many wait or run."""
        return len(self._waiting) + len(self._running)

    def __iter__(self) -> Iterator[QueuedEviction]:
        """All that wait or run; looks at everything."""
        return iter((*self._waiting.values(), *self._running.values()))

    @property
    def waits(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def put(self, waiting: QueuedEviction) -> None:
        """Queue an eviction behind all others of its namespace. No other one of its `evictionId` may wait."""
        self._waiting[waiting.command.eviction_id] = waiting
        self._append(waiting)

    def withdraw(self, eviction_id: str) -> QueuedEviction | None:
        """Take an eviction out that no worker has; None if there is none. One that runs is only marked."""
        running = self._running.get(eviction_id)
        if running is not None:
            running.is_withdrawn = True
        waiting = self._waiting.pop(eviction_id, None)
        if waiting is not None:
            waiting.is_withdrawn = True
        return waiting

    def take(self, now: float, most: int) -> QueuedEviction | None:
        """Give a worker what is next; its pod is busy until `finish` or `put_off`. None if nothing may begin.

        Looks at as many namespaces as have something running at most.

        Args:
            now: monotonic seconds.
            most: how many may run at once.
        """
        while self._put_off and self._put_off[0][0] <= now:
            waiting = heapq.heappop(self._put_off)[2]
            if not waiting.is_withdrawn:
                self._append(waiting)
        share = SHARE * (most - len(self._running))
        for _ in range(len(self._turns) if share > 0 else 0):
            namespace = self._turns.popleft()
            if self._running_in[namespace] >= share:
                self._turns.append(namespace)
                continue
            found = self._first(namespace)
            if found is not None:
                return self._begin(found)
        return None

    def next_at(self) -> float | None:
        """When what was put off comes back, monotonic seconds; None if nothing was."""
        return self._put_off[0][0] if self._put_off else None

    def finish(self, waiting: QueuedEviction) -> None:
        """Forget what a worker has done; the next of its pod may begin."""
        self._release(waiting)

    def put_off(self, waiting: QueuedEviction, until: float) -> None:
        """Queue again, at that monotonic second, what a worker could not do now; others go first."""
        waiting.is_running = False
        waiting.tries += 1
        self._release(waiting)
        self._waiting[waiting.command.eviction_id] = waiting
        heapq.heappush(self._put_off, (until, next(self._numbers), waiting))

    def remove_partition(self, partition: int) -> list[QueuedEviction]:
        """Give up everything of a partition, without an answer; looks at everything. Returns also what a worker has."""
        found = [waiting for waiting in self if waiting.partition == partition]
        for waiting in found:
            waiting.is_given_up = waiting.is_withdrawn = True
            if not waiting.is_running:
                del self._waiting[waiting.command.eviction_id]
        return found

    def remove_older(self, before: float) -> list[QueuedEviction]:
        """Take out what was queued before that monotonic second and does not run; looks at everything."""
        found = [waiting for waiting in self._waiting.values() if waiting.queued_at <= before]
        for waiting in found:
            waiting.is_withdrawn = True
            del self._waiting[waiting.command.eviction_id]
        return found

    def _append(self, waiting: QueuedEviction) -> None:
        behind = self._behind.get(waiting.command.pod_uid)
        if behind is not None:
            behind.append(waiting)
            return
        namespace = waiting.command.namespace
        if namespace not in self._ready:
            self._ready[namespace] = deque()
            self._turns.append(namespace)
        self._ready[namespace].append(waiting)

    def _first(self, namespace: str) -> QueuedEviction | None:
        """Take the first one of a namespace whose turn it is; None if all were withdrawn, or their pods are busy."""
        ready, found = self._ready[namespace], None
        while ready and found is None:
            first = ready.popleft()
            if first.is_withdrawn:
                continue
            if first.command.pod_uid in self._behind:
                self._behind[first.command.pod_uid].append(first)
            else:
                found = first
        if ready:
            self._turns.append(namespace)
        else:
            del self._ready[namespace]
        return found

    def _begin(self, waiting: QueuedEviction) -> QueuedEviction:
        command = waiting.command
        waiting.is_running = True
        del self._waiting[command.eviction_id]
        self._running[command.eviction_id] = waiting
        self._running_in[command.namespace] += 1
        self._behind[command.pod_uid] = deque()
        return waiting

    def _release(self, waiting: QueuedEviction) -> None:
        command = waiting.command
        if self._running.get(command.eviction_id) is waiting:
            del self._running[command.eviction_id]
        self._running_in[command.namespace] -= 1
        if not self._running_in[command.namespace]:
            del self._running_in[command.namespace]
        for next_one in self._behind.pop(command.pod_uid):
            self._append(next_one)
