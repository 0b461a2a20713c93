"""When recorded events are sent, and which `observedAt` they get.

The time that counts for the service is `observedAt`, limited to a minute (a setting) before the append time and the
append time itself. So what is played at its recorded pace and re-stamped keeps its distances; what is played faster is
counted from its append times; and what keeps its old times counts as seen a minute before it was appended.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable
from typing import Final

from evictstream.models.instants import SECOND_US
from evictstream.streams.errors import WrongUseError

RECORDED: Final = "recorded"
FAST: Final = "fast"

FASTEST: Final = 1_000_000.0
"""Largest N of `Nx`. Beyond it is `fast`."""

NAP_SECONDS: Final = 0.2
"""Longest sleep at a time, and so how long a stop is not noticed."""

_TIMES: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*x?")


@dataclasses.dataclass(frozen=True, slots=True)
class FeedClock:
    """The clocks and the sleep that playing uses, so that tests need not wait.

    Attributes:
        now_us: the time of day, microseconds since 1970.
        monotonic: seconds that never go back.
        sleep: wait so many seconds.
    """

    now_us: Callable[[], int] = lambda: time.time_ns() // 1_000
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def read_pace(text: str) -> float | None:
    """Read `recorded`, `fast` or `10x` as a factor; None is as fast as can be.

    Raises:
        WrongUseError: it is none of these, or not between 0 and `FASTEST`.
    """
    if text == FAST:
        return None
    if text == RECORDED:
        return 1.0
    match = _TIMES.fullmatch(text)
    if match is None or not 0 < (factor := float(match[1])) <= FASTEST:
        raise WrongUseError(f"{text!r} is not a pace", next_step="use recorded, fast, or a factor such as 10x")
    return factor


class Pace:
    """Lets recorded events wait until their turn; the first one has it at once.

    An event that is late, because times went back or Kafka was slow, does not wait, and moves nothing that follows.
    """

    def __init__(self, factor: float | None, clock: FeedClock) -> None:
        """Start with the first event.

        Args:
            factor: how much faster than recorded; None never waits.
            clock: what to wait on.
        """
        self._factor = factor
        self._clock = clock
        self._begun: tuple[int, float] | None = None

    def wait(self, observed_at_us: int | None, is_stopped: Callable[[], bool]) -> None:
        """Return when it is the event's turn, or soon after `is_stopped` says so. Without a time it has it now."""
        if self._factor is None or observed_at_us is None:
            return
        if self._begun is None:
            self._begun = (observed_at_us, self._clock.monotonic())
        first_us, begun_at = self._begun
        due_at = begun_at + (observed_at_us - first_us) / SECOND_US / self._factor
        while (left := due_at - self._clock.monotonic()) > 0 and not is_stopped():
            self._clock.sleep(min(left, NAP_SECONDS))


class Restamp:
    """Moves all times by one distance, so that the first is now."""

    def __init__(self, clock: FeedClock) -> None:
        self._clock = clock
        self._shift_us: int | None = None

    def moved(self, observed_at_us: int) -> int:
        """Return the moved time."""
        if self._shift_us is None:
            self._shift_us = self._clock.now_us() - observed_at_us
        return observed_at_us + self._shift_us
