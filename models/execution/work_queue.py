"""Evictions that wait for their turn: namespaces take turns, each in its own order, one eviction at a time for a pod.

Pods of a node need not wait for one another: each eviction has its own pod as precondition, and `evictionId` orders
commands. No namespace takes all the places that may run at once, so a namespace with slow writes, as behind a dead
webhook, leaves room for the others. Every operation costs the same however many evictions wait, except where its
docstring says that it looks at all of them.
"""

from __future__ import annotations

import dataclasses
import enum
import heapq
import itertools
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from typing import Final

from evictstream.models.messages.command import EvictionCommand

CLUSTER_SHARE: Final = 3
"""A namespace may run so many times as many as could still begin: three quarters of all if it is alone, three sevenths
each if there are two. The rest stays free for the next namespace."""


class QueueState(enum.Enum):
    """Where an `Evict` stands between its command and its answer."""

    QUEUED = enum.auto()
    """It waits for its turn, or for the time until which it was put off."""
    RUNNING = enum.auto()
    """A worker carries it out."""
    SUPERSEDED = enum.auto()
    """A worker carries it out, and a newer command of the eviction has arrived: there is no further try."""
    ABANDONED = enum.auto()
    """A worker carries it out, and its command is read again, perhaps by another one: only a final outcome counts."""
    ENDED = enum.auto()
    """It is out of the queue, with or without an answer."""


_MOVES: Final[Mapping[QueueState, frozenset[QueueState]]] = {
    QueueState.QUEUED: frozenset({QueueState.RUNNING, QueueState.ENDED}),
    QueueState.RUNNING: frozenset({QueueState.QUEUED, QueueState.SUPERSEDED, QueueState.ABANDONED, QueueState.ENDED}),
    QueueState.SUPERSEDED: frozenset({QueueState.ABANDONED, QueueState.ENDED}),
    QueueState.ABANDONED: frozenset({QueueState.ENDED}),
    QueueState.ENDED: frozenset(),
}


@dataclasses.dataclass(slots=True, eq=False, kw_only=True)
class QueuedEviction:
    """An `Evict` that is queued or being carried out.

    Attributes:
        command: the `Evict`.
        reading: number of the reading that had its command. After a loss of the partition it is read again.
        offset: of the command in the partition of its cluster.
        queued_at: monotonic seconds.
        seen_at: monotonic seconds at which the first `Evict` of the eviction was read.
        tries: how often it was put off.
        is_open: whether its EvictionRequest lasts, so that it may wait for longer.
        until: monotonic second until which it is put off; None if it is not.
        woken_at: monotonic second at which it was woken while it runs; None if it was not.
        state: changed by `move` alone.
    """

    command: EvictionCommand
    reading: int
    offset: int
    queued_at: float
    seen_at: float
    tries: int = 0
    is_open: bool = False
    until: float | None = None
    woken_at: float | None = None
    state: QueueState = QueueState.QUEUED

    def move(self, state: QueueState) -> None:
        """Change the state.

        Raises:
            RuntimeError: no eviction goes from its present state to that one: an invariant was broken.
        """
        if state not in _MOVES[self.state]:
            message = f"an eviction cannot go from {self.state.name} to {state.name}"
            raise RuntimeError(message)
        self.state = state


class WorkQueue:
    """All evictions of one cluster that wait or run. The caller limits their number."""

    def __init__(self) -> None:
        self._waiting: dict[str, QueuedEviction] = {}  # by `evictionId`
        self._running: dict[str, QueuedEviction] = {}
        # What may begin, by namespace; namespaces in the order of their turns.
        self._ready: dict[str, deque[QueuedEviction]] = {}
        self._turns: deque[str] = deque()
        self._behind: dict[str, deque[QueuedEviction]] = {}  # by UID of a pod that is being evicted: its next evictions
        self._running_in: Counter[str] = Counter()
        self._put_off: list[tuple[float, int, QueuedEviction]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        """How many wait or run."""
        return len(self._waiting) + len(self._running)

    def __iter__(self) -> Iterator[QueuedEviction]:
        """All that wait or run; looks at all of them."""
        return iter((*self._waiting.values(), *self._running.values()))

    @property
    def waits(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """How many are being carried out."""
        return len(self._running)

    def put(self, eviction: QueuedEviction) -> None:
        """Queue an eviction behind all others of its namespace. No other one with its `evictionId` may wait."""
        self._waiting[eviction.command.eviction_id] = eviction
        self._append(eviction)

    def withdraw(self, eviction_id: str) -> QueuedEviction | None:
        """Take out an eviction that no worker has; None if none waits. One that runs is not tried again."""
        running = self._running.get(eviction_id)
        if running is not None and running.state is QueueState.RUNNING:
            running.move(QueueState.SUPERSEDED)
        waiting = self._waiting.pop(eviction_id, None)
        if waiting is not None:
            waiting.move(QueueState.ENDED)
        return waiting

    def take(self, now: float, most: int) -> QueuedEviction | None:
        """Give the next eviction to a worker; its pod is busy until `finish` or `put_off`. None if none may begin.

        Looks at as many namespaces as have something running at most.

        Args:
            now: monotonic seconds.
            most: how many may run at once.
        """
        while self._put_off and self._put_off[0][0] <= now:
            until, _, eviction = heapq.heappop(self._put_off)
            if eviction.state is QueueState.QUEUED and eviction.until == until:  # else of before it was woken
                eviction.until = None
                self._append(eviction)
        share = CLUSTER_SHARE * (most - len(self._running))
        for _ in range(len(self._turns) if share > 0 else 0):
            namespace = self._turns.popleft()
            if self._running_in[namespace] >= share:
                self._turns.append(namespace)
                continue
            first = self._first(namespace)
            if first is not None:
                return self._begin(first)
        return None

    def next_at(self) -> float | None:
        """When the next eviction that was put off comes back, monotonic seconds; None if none was put off."""
        return self._put_off[0][0] if self._put_off else None

    def finish(self, eviction: QueuedEviction) -> None:
        """Remove an eviction that a worker has ended; the next one of its pod may begin."""
        eviction.move(QueueState.ENDED)
        self._release(eviction)

    def put_off(self, eviction: QueuedEviction, until: float) -> None:
        """Queue an eviction that runs again at that monotonic second; others go first."""
        eviction.move(QueueState.QUEUED)
        eviction.tries += 1
        self._release(eviction)
        self._waiting[eviction.command.eviction_id] = eviction
        self._come_back(eviction, until if eviction.woken_at is None else min(until, eviction.woken_at))

    def remove_all(self) -> list[QueuedEviction]:
        """Remove all evictions without an answer. Returns also those that run."""
        removed = list(self)
        for eviction in removed:
            if eviction.state is QueueState.QUEUED:
                eviction.move(QueueState.ENDED)
                del self._waiting[eviction.command.eviction_id]
            elif eviction.state is not QueueState.ABANDONED:
                eviction.move(QueueState.ABANDONED)
        return removed

    def wake(self, eviction_id: str, now: float) -> None:
        """Let an eviction begin now that is put off until later, and one that runs as soon as it is put off."""
        running = self._running.get(eviction_id)
        if running is not None:
            running.woken_at = now
        eviction = self._waiting.get(eviction_id)
        if eviction is not None and eviction.until is not None and eviction.until > now:
            self._come_back(eviction, now)

    def remove_older(self, before: float, open_before: float) -> list[QueuedEviction]:
        """Remove all that were queued before that monotonic second and do not run; looks at all that wait.

        For those whose EvictionRequest lasts `open_before` counts.
        """
        removed = [
            eviction
            for eviction in self._waiting.values()
            if eviction.queued_at <= (open_before if eviction.is_open else before)
        ]
        for eviction in removed:
            eviction.move(QueueState.ENDED)
            del self._waiting[eviction.command.eviction_id]
        return removed

    def _come_back(self, eviction: QueuedEviction, at: float) -> None:
        eviction.until = at
        heapq.heappush(self._put_off, (at, next(self._numbers), eviction))

    def _append(self, eviction: QueuedEviction) -> None:
        behind = self._behind.get(eviction.command.pod_uid)
        if behind is not None:
            behind.append(eviction)
            return
        namespace = eviction.command.namespace
        if namespace not in self._ready:
            self._ready[namespace] = deque()
            self._turns.append(namespace)
        self._ready[namespace].append(eviction)

    def _first(self, namespace: str) -> QueuedEviction | None:
        """Take the first eviction of a namespace at its turn; None if all were withdrawn or their pods are busy."""
        ready, eviction = self._ready[namespace], None
        while ready and eviction is None:
            first = ready.popleft()
            if first.state is not QueueState.QUEUED:
                continue
            if first.command.pod_uid in self._behind:
                self._behind[first.command.pod_uid].append(first)
            else:
                eviction = first
        if ready:
            self._turns.append(namespace)
        else:
            del self._ready[namespace]
        return eviction

    def _begin(self, eviction: QueuedEviction) -> QueuedEviction:
        command = eviction.command
        eviction.move(QueueState.RUNNING)
        eviction.woken_at = None
        del self._waiting[command.eviction_id]
        self._running[command.eviction_id] = eviction
        self._running_in[command.namespace] += 1
        self._behind[command.pod_uid] = deque()
        return eviction

    def _release(self, eviction: QueuedEviction) -> None:
        command = eviction.command
        if self._running.get(command.eviction_id) is eviction:
            del self._running[command.eviction_id]
        self._running_in[command.namespace] -= 1
        if not self._running_in[command.namespace]:
            del self._running_in[command.namespace]
        for following in self._behind.pop(command.pod_uid):
            self._append(following)
