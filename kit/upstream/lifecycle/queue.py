"""The queue of nodes that wait for a health taint (semantics.md 8.5).

Source: `pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go`.
"""

import dataclasses
from collections.abc import Callable

from evictstream.kit.upstream.lifecycle.limiter import Limiter, limiter_after
from evictstream.kit.upstream.lifecycle.steps import NOW, Steps


@dataclasses.dataclass(frozen=True, slots=True)
class TimedValue:
    """An entry of the queue.

    Attributes:
        value: its identity, here the name of a node.
        uid: UID of the node; stored and not used.
        added_at_us: when it was added.
        process_at_us: the earliest instant at which it is handled.
    """

    value: str
    uid: str
    added_at_us: int
    process_at_us: int


@dataclasses.dataclass(frozen=True, slots=True)
class Again:
    """A handler's answer: not done, try again later.

    Attributes:
        wait_us: the shortest wait; 1 µs is added, so that even 0 lets other entries go first.
    """

    wait_us: int = 0


class RateLimitedTimedQueue:
    """Entries in the order of their `process_at_us`, each handled at most once until it is removed and added again.

    Entries with equal times take turns in the order of adding. An entry that is done leaves the queue but stays known,
    so adding it again does nothing until `remove` forgets it.

    Attributes:
        is_locked: whether a pass is under way; the limiter cannot be exchanged until it ends.
    """

    def __init__(self, limiter: Limiter) -> None:
        """Start empty.

        Args:
            limiter: `take` needs one of its tokens before it looks at the head of the queue.
        """
        self.is_locked = False
        self._limiter = limiter
        self._waiting: dict[str, TimedValue] = {}  # in the order of adding
        self._members: set[str] = set()

    @property
    def rate(self) -> float:
        """The rate that the limiter reports."""
        return self._limiter.rate

    @property
    def waiting(self) -> tuple[TimedValue, ...]:
        """The entries that wait, in the order of handling."""
        return tuple(sorted(self._waiting.values(), key=lambda entry: entry.process_at_us))

    @property
    def known(self) -> frozenset[str]:
        """The entries that cannot be added now: waiting ones and finished ones."""
        return frozenset(self._members)

    def __len__(self) -> int:
        """Count the entries that wait."""
        return len(self._waiting)

    def add(self, value: str, uid: str, now_us: int) -> bool:
        """Add an entry, due at once; returns whether it is new."""
        if value in self._members:
            return False
        self._members.add(value)
        self._waiting[value] = TimedValue(value, uid, now_us, now_us)
        return True

    def remove(self, value: str) -> bool:
        """Forget an entry, waiting or done, so that it can be added again; returns whether it was known."""
        if value not in self._members:
            return False
        self._members.discard(value)
        self._waiting.pop(value, None)
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._members.clear()
        self._waiting.clear()

    def swap_limiter(self, rate: float, now_us: int) -> None:
        """Change the rate; see `limiter_after`."""
        self._limiter = limiter_after(self._limiter, rate, now_us)

    def take(self, now_us: int) -> TimedValue | None:
        """Get the entry that is due; it stays in the queue until `settle`.

        This uses up a token even if no entry is due yet. An empty queue costs none.

        Args:
            now_us: the time.

        Returns:
            The entry, or None if there is no token, nothing waits, or nothing is due.
        """
        if not self._waiting or not self._limiter.try_accept(now_us):
            return None
        head = min(self._waiting.values(), key=lambda entry: entry.process_at_us)
        return None if now_us < head.process_at_us else head

    def settle(self, entry: TimedValue, answer: Again | None, now_us: int) -> None:
        """Finish an entry, or queue it again.

        An entry that was removed meanwhile is not put back.

        Args:
            entry: the result of `take`.
            answer: None if it is done.
            now_us: the time of `take`; the wait counts from there, however long the handler took.
        """
        was_waiting = self._waiting.pop(entry.value, None) is not None
        if answer is not None and was_waiting:
            process_at_us = now_us + answer.wait_us + 1  # Kubernetes adds a nanosecond; the smallest step here is 1 µs
            self._waiting[entry.value] = dataclasses.replace(entry, process_at_us=process_at_us)

    def work_off(self, now_us: int, handle: Callable[[TimedValue, int], Steps[Again | None]]) -> Steps[int]:
        """Handle entries while the limiter gives tokens and entries are due (`Try`).

        The limiter fills while a handler waits for the API server. With slow requests one pass can therefore handle
        many entries, and all that time it holds the lock that `swap_limiter` needs upstream.

        Args:
            now_us: the time at which the pass begins.
            handle: handles an entry at a time; its result is None when done. It may remove entries, also the one that
                it handles.

        Returns:
            The time at which the pass ends.
        """
        self.is_locked = True
        while (entry := self.take(now_us)) is not None:
            answer = yield from handle(entry, now_us)
            self.settle(entry, answer, now_us)
            now_us = yield NOW
        self.is_locked = False
        return now_us
