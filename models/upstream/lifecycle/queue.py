"""The queue of nodes that wait for a health taint (semantics.md 8.5).

Source: `pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go`.
"""

import dataclasses
from collections.abc import Callable

from evictstream.models.upstream.lifecycle.limiter import Limiter, limiter_after


@dataclasses.dataclass(frozen=True, slots=True)
class TimedValue:
    """An entry of the queue.

    Attributes:
        value: what waits, here the name of a node; an entry is known by it.
        uid: anything that helps to tell it; only passed on.
        added_at_us: when it was added.
        process_at_us: not to be handled before.
    """

    value: str
    uid: str
    added_at_us: int
    process_at_us: int


@dataclasses.dataclass(frozen=True, slots=True)
class Again:
    """A handler's answer: not done, come back.

    Attributes:
        wait_us: at least this long; a moment is added, so that even 0 lets others go first.
    """

    wait_us: int = 0


class RateLimitedTimedQueue:
    """Entries by the time of their turn, each handled at most once until it is removed and added again.

    Entries with equal times take turns in the order of adding. An entry that is done leaves the queue but stays known,
    so adding it again does nothing until `remove` forgets it.
    """

    def __init__(self, limiter: Limiter) -> None:
        """Start empty.

        Args:
            limiter: is asked before each look at the head of the queue.
        """
        self._limiter = limiter
        self._waiting: dict[str, TimedValue] = {}  # in the order of adding
        self._known: set[str] = set()

    @property
    def rate(self) -> float:
        """The rate that the limiter in use reports."""
        return self._limiter.rate

    @property
    def waiting(self) -> tuple[TimedValue, ...]:
        """All that wait, in the order of their turns."""
        return tuple(sorted(self._waiting.values(), key=lambda entry: entry.process_at_us))

    @property
    def known(self) -> frozenset[str]:
        """All that cannot be added now: what waits and what is done."""
        return frozenset(self._known)

    def __len__(self) -> int:
        """Count those that wait."""
        return len(self._waiting)

    def add(self, value: str, uid: str, now_us: int) -> bool:
        """Add an entry, due at once; returns whether it is new."""
        if value in self._known:
            return False
        self._known.add(value)
        self._waiting[value] = TimedValue(value, uid, now_us, now_us)
        return True

    def remove(self, value: str) -> bool:
        """Forget an entry, waiting or done, so that it can be added again; returns whether it was known."""
        if value not in self._known:
            return False
        self._known.discard(value)
        self._waiting.pop(value, None)
        return True

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._waiting.clear()

    def swap_limiter(self, rate: float, now_us: int) -> None:
        """Go on at another rate; see `limiter_after`."""
        self._limiter = limiter_after(self._limiter, rate, now_us)

    def take(self, now_us: int) -> TimedValue | None:
        """Ask for the entry whose turn it is; it stays in the queue until `settle`.

        A token is used up even if the first entry's time has not come. An empty queue costs none.

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
        """Take in what became of an entry.

        An entry that was removed meanwhile is not put back.

        Args:
            entry: what `take` gave.
            answer: None if it is done.
            now_us: the time, which may be later than it was for `take`.
        """
        was_waiting = self._waiting.pop(entry.value, None) is not None
        if answer is not None and was_waiting:
            process_at_us = (
                now_us + answer.wait_us + 1
            )  # Kubernetes adds a nanosecond; ours is the smallest step we have
            self._waiting[entry.value] = dataclasses.replace(entry, process_at_us=process_at_us)

    def work_off(self, now_us: int, handle: Callable[[TimedValue], Again | None]) -> None:
        """Handle entries while the limiter gives tokens and entries are due (`Try`).

        Args:
            now_us: the time; it stands still meanwhile.
            handle: does the work and says whether it is done. It may remove entries, also the one it handles.
        """
        while (entry := self.take(now_us)) is not None:
            self.settle(entry, handle(entry), now_us)
