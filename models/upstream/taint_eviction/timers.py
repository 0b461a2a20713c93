"""The timer queue of the released controller, with what is weak about it (semantics.md 6.8).

Kubernetes `pkg/controller/tainteviction/timed_workers.go` as released. A key is the address of a pod, so pods that have
the same name one after the other share a key. A key is present while its timer is pending **and** while its eviction
runs, and what is present cannot be added again. Three things follow, all kept here on purpose:

- A timer that has fired stays in the queue while its eviction runs; cancelling it then "succeeds" and stops nothing.
- Cancelling an eviction that started without a timer removes the key and reports nothing.
- An eviction that ends removes its key whatever is under it by then. A newer timer there still fires, and nobody can
  find or cancel it any more. (Merged, but not released: only its own entry is removed.)
"""

import enum
import heapq

import msgspec


class Timer(msgspec.Struct, eq=False):
    """One timer.

    Attributes:
        address: key, `<namespace>/<name>`.
        created_at_us: since when it counts.
        fire_at_us: when the eviction is meant to start.
        rings_at_us: when the timer really fires: the moment of adding it plus fire time minus creation time.
        is_running: it has fired.
        is_stopped: it was cancelled; if it has not fired yet it never will.
    """

    address: str
    created_at_us: int
    fire_at_us: int
    rings_at_us: int
    is_running: bool = False
    is_stopped: bool = False


class Added(enum.Enum):
    """What became of an addition."""

    PENDING = enum.auto()
    """A timer was started."""
    RUNNING = enum.auto()
    """There is no delay: the eviction starts at once, and its key has an empty entry."""
    SKIPPED = enum.auto()
    """The key is present already; nothing was changed."""


class Cancelled(enum.Enum):
    """What became of a cancel."""

    TIMER = enum.auto()
    """An entry with a timer was removed, pending or fired; reported as success."""
    RUNNING = enum.auto()
    """The empty entry of an eviction without a timer was removed; the eviction goes on, nothing is reported."""
    ABSENT = enum.auto()
    """There was no such key."""


class TimerQueue:
    """Timers by key. Only the caller moves time: it asks for the next instant and lets that timer ring."""

    __slots__ = ("_entries", "_ringing", "_serial")

    def __init__(self) -> None:
        """Begin empty."""
        self._entries: dict[str, Timer | None] = {}
        self._ringing: list[tuple[int, int, Timer]] = []
        self._serial = 0

    def __contains__(self, address: object) -> bool:
        """Tell whether a key is present, pending or running."""
        return address in self._entries

    def get(self, address: str) -> Timer | None:
        """Find the timer of a key, pending or fired; None if the key is absent or its entry is empty."""
        return self._entries.get(address)

    def pending(self) -> dict[str, int]:
        """List when the timers fire that wait under their key, by key."""
        return {
            key: timer.rings_at_us for key, timer in self._entries.items() if timer is not None and not timer.is_running
        }

    def add(self, address: str, created_at_us: int, fire_at_us: int, at_us: int) -> Added:
        """Add a key, unless it is present.

        Args:
            address: the key.
            created_at_us: since when it counts.
            fire_at_us: when the eviction is to start.
            at_us: now. The delay is fire time minus creation time, and runs from now.
        """
        if address in self._entries:
            return Added.SKIPPED
        delay_us = fire_at_us - created_at_us
        if delay_us <= 0:
            self._entries[address] = None
            return Added.RUNNING
        timer = Timer(address, created_at_us, fire_at_us, at_us + delay_us)
        self._entries[address] = timer
        self._serial += 1
        heapq.heappush(self._ringing, (timer.rings_at_us, self._serial, timer))
        return Added.PENDING

    def cancel(self, address: str) -> Cancelled:
        """Remove a key and stop its timer; an eviction that runs goes on."""
        if address not in self._entries:
            return Cancelled.ABSENT
        timer = self._entries.pop(address)
        if timer is None:
            return Cancelled.RUNNING
        timer.is_stopped = True
        return Cancelled.TIMER

    def finish(self, address: str) -> None:
        """Remove the key of an eviction that has ended, and with it whatever is under that key by now."""
        self._entries.pop(address, None)

    def next_ring_us(self) -> int | None:
        """Tell when the next timer fires, None if there is none."""
        while self._ringing and self._ringing[0][2].is_stopped:
            heapq.heappop(self._ringing)
        return self._ringing[0][0] if self._ringing else None

    def ring(self) -> Timer:
        """Let the next timer fire; its key stays present until `finish` or `cancel`.

        Raises:
            IndexError: there is no timer; ask `next_ring_us` first.
        """
        self.next_ring_us()
        timer = heapq.heappop(self._ringing)[2]
        timer.is_running = True
        return timer
