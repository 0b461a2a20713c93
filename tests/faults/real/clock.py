"""A worker's wall clock that steps while it runs: what `time.time` and `time.time_ns` answer in its process is shifted.

The worker is an ordinary worker, which this module starts: `python -m tests.faults.real.clock FILE worker`. How far the
clock is off stands in the file, which both processes map. The monotonic clock stays true, as it does when a real
machine's clock is set.

libfaketime, which shifts the C library's clock, cannot be used: where it is loaded, `time.sleep` can raise `OSError` or
sleep on, because it computes the end of a sleep on the monotonic clock from the shifted one. A worker's watchdog ends
of that.
"""

from __future__ import annotations

import mmap
import struct
import sys
import time
from pathlib import Path

OFFSET_NS = struct.Struct("q")
NANOSECONDS = 1_000_000_000


class SteppedClock:
    """The clock of one worker: true at first, then as far off as it was told."""

    def __init__(self, file: Path) -> None:
        file.write_bytes(OFFSET_NS.pack(0))
        self._offset = _mapped(file)
        self.program = (__name__, str(file))

    def step(self, offset_seconds: float) -> None:
        """Set the wall clock to the true time plus so many seconds, from now on."""
        OFFSET_NS.pack_into(self._offset, 0, int(offset_seconds * NANOSECONDS))


def follow(file: Path) -> None:
    """Shift this process's wall clock by what `file` says, at each reading, from now on."""
    offset, true_ns = _mapped(file), time.time_ns

    def stepped_ns() -> int:
        return true_ns() + int(OFFSET_NS.unpack_from(offset)[0])

    def stepped() -> float:
        return stepped_ns() / NANOSECONDS

    time.time_ns, time.time = stepped_ns, stepped


def _mapped(file: Path) -> mmap.mmap:
    with file.open("r+b") as opened:
        return mmap.mmap(opened.fileno(), OFFSET_NS.size)


if __name__ == "__main__":
    follow(Path(sys.argv[1]))
    from evictstream.streams.cli.main import run  # only now: a module may keep the function that it imports

    sys.exit(run(sys.argv[2:]))
