"""Run as a program: kills a process group when the one that started us is gone, however it went.

`python reaper.py PID FOLDER`: waits for the end of standard input, whose other end only the starter holds and the
system closes when the starter dies. Then kills the group PID and removes FOLDER (unless it is empty text). It imports
little, because it stays in memory as long as the broker.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys


def main() -> None:
    """Wait, kill, clean up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for our starter, which then stops things in order
    pid, folder = int(sys.argv[1]), sys.argv[2]
    while os.read(0, 1):
        pass
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
