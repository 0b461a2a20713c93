"""The share of the machine that other processes used during a run; it is printed beside the figures."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Final

_STAT: Final = Path("/proc/stat")  # Linux; unknown elsewhere
_IDLE: Final = slice(3, 5)  # idle, and idle while waiting for a disk
_ALL: Final = slice(0, 8)  # the columns that follow are included in these


class Watch:
    """Measures from its creation. The share is right once all processes of the run have ended."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._busy = _busy_seconds()
        self._own = _own_seconds()

    def others_share(self) -> float | None:
        """Give the processor time of other processes, as a share of the whole."""
        busy = _busy_seconds()
        if busy is None or self._busy is None:
            return None
        others = busy - self._busy - (_own_seconds() - self._own)
        return max(0.0, others / ((time.monotonic() - self._began) * (os.cpu_count() or 1)))


def _busy_seconds() -> float | None:
    try:
        ticks = [int(number) for number in _STAT.read_text().splitlines()[0].split()[1:]]
    except OSError:
        return None
    return (sum(ticks[_ALL]) - sum(ticks[_IDLE])) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)
