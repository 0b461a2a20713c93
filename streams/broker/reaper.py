"""A program that kills a process group as soon as its own parent process has ended, even by SIGKILL.

`python reaper.py PID FOLDER` waits for the end of standard input. Only the parent holds the other end, and the system
closes it when the parent dies. Then the program kills the group PID and removes FOLDER (unless it is empty text). It
imports little, because it stays in memory as long as the broker.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys


def main() -> None:
    """Wait, kill, clean up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then stops things in order
    pid, folder = int(sys.argv[1]), sys.argv[2]
    while os.read(0, 1):
        pass
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
