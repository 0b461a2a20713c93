"""The timer queue of upstream's controller, with its weaknesses (semantics.md 6.8).

Source: Kubernetes `pkg/controller/tainteviction/timed_workers.go`. A key is the address of a pod, so pods that have
the same name one after the other share a key. A key is present while its timer is pending **and** while its eviction
runs, and a key that is present cannot be added again. Three things follow, all kept here on purpose:

- A timer that has fired stays in the queue while its eviction runs; cancelling it then "succeeds" and stops nothing.
- Cancelling an eviction that started without a timer removes the key and reports nothing.
- An eviction that ends removes its key, even if a newer timer has the key by then. That timer still fires, and can no
  longer be found or cancelled. (Kubernetes' main branch removes only the eviction's own entry.)
"""

import enum
import heapq

import msgspec


class Timer(msgspec.Struct, eq=False):
    """One timer.

    Attributes:
        address: key, `<namespace>/<name>`.
        created_at_us: start of its delay.
        fire_at_us: the intended start of the eviction.
        rings_at_us: when the timer really fires: the instant of adding it, plus fire time minus creation time.
        is_running: whether it has fired.
        is_stopped: whether it was cancelled; if it has not fired yet, it never will.
    """

    address: str
    created_at_us: int
    fire_at_us: int
    rings_at_us: int
    is_running: bool = False
    is_stopped: bool = False


class Added(enum.Enum):
    """The result of adding a key."""

    PENDING = enum.auto()
    """A timer was started."""
    RUNNING = enum.auto()
    """There is no delay: the eviction starts at once, and its key has an empty entry."""
    SKIPPED = enum.auto()
    """The key is present already; nothing was changed."""


class Cancelled(enum.Enum):
    """The result of cancelling a key."""

    TIMER = enum.auto()
    """An entry with a timer was removed, pending or fired; reported as success."""
    RUNNING = enum.auto()
    """The empty entry of an eviction without a timer was removed; the eviction continues, nothing is reported."""
    ABSENT = enum.auto()
    """There was no such key."""


class TimerQueue:
    """Timers by key. The caller moves the time: it reads `next_ring_us` and calls `ring` then."""

    __slots__ = ("_entries", "_ringing", "_serial")

    def __init__(self) -> None:
        self._entries: dict[str, Timer | None] = {}
        self._ringing: list[tuple[int, int, Timer]] = []
        self._serial = 0

    def __contains__(self, address: object) -> bool:
        """Return whether a key is present, pending or running."""
        return address in self._entries

    def get(self, address: str) -> Timer | None:
        """Find the timer of a key, pending or fired; None if the key is absent or its entry is empty."""
        return self._entries.get(address)

    def pending(self) -> dict[str, int]:
        """List the fire times of the timers that have not fired, by key."""
        return {
            key: timer.rings_at_us for key, timer in self._entries.items() if timer is not None and not timer.is_running
        }

    def add(self, address: str, created_at_us: int, fire_at_us: int, at_us: int) -> Added:
        """Add a key, unless it is present.

        Args:
            address: the key.
            created_at_us: start of its delay.
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
        """Remove a key and stop its timer; a running eviction continues."""
        if address not in self._entries:
            return Cancelled.ABSENT
        timer = self._entries.pop(address)
        if timer is None:
            return Cancelled.RUNNING
        timer.is_stopped = True
        return Cancelled.TIMER

    def finish(self, address: str) -> None:
        """Remove the key of an eviction that has ended, even if a newer timer has it by now."""
        self._entries.pop(address, None)

    def next_ring_us(self) -> int | None:
        """Return when the next timer fires, None if there is none."""
        while self._ringing and self._ringing[0][2].is_stopped:
            heapq.heappop(self._ringing)
        return self._ringing[0][0] if self._ringing else None

    def ring(self) -> Timer:
        """Let the next timer fire; its key stays present until `finish` or `cancel`.

        Raises:
            IndexError: there is no timer; check `next_ring_us` first.
        """
        self.next_ring_us()
        timer = heapq.heappop(self._ringing)[2]
        timer.is_running = True
        return timer
