"""The clock of the machine. `engine.core` reads only the clock that it is given, so time can be simulated."""

from __future__ import annotations

import time

NANOSECONDS_PER_MICROSECOND = 1_000


class SystemClock:
    """Implements `engine.core.ports.Clock` with the operating system's clocks."""

    monotonic = staticmethod(time.monotonic)

    @staticmethod
    def now_us() -> int:
        """Read the wall clock, microseconds since 1970 in UTC."""
        return time.time_ns() // NANOSECONDS_PER_MICROSECOND


SYSTEM_CLOCK = SystemClock()
