"""A process with a watchdog and nothing else, that hangs as it is told: `python -m tests.harness.hung_process HOW`.

`log`: the loop is stuck, and so is whatever wants to write to stderr. `interpreter`: a call does not let go of the
interpreter, so no thread of Python gets on, the watchdog's included.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

from evictstream.streams.cli.worker import leave
from evictstream.streams.engine.core.waits import WaitKind
from evictstream.streams.worker.watchdog import Watchdog

FOREVER_SECONDS = 600
LIMITS = dict.fromkeys(WaitKind, 1.0)


def _fill_stderr() -> None:
    os.set_blocking(2, False)
    try:
        while True:
            os.write(2, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(2, True)


def main() -> None:
    """Hang."""
    since = time.monotonic()
    is_stuck = sys.argv[1] == "log"
    watchdog = Watchdog(lambda now: {WaitKind.LOOP: now - since if is_stuck else 0.0}, LIMITS, leave)
    if is_stuck:
        _fill_stderr()
    watchdog.start()
    if is_stuck:
        threading.Event().wait()
    time.sleep(1)  # the watchdog has looked
    ctypes.PyDLL(None).sleep(FOREVER_SECONDS)


if __name__ == "__main__":
    main()
