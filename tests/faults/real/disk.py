"""A small disk of its own for a broker, to be filled up: a file system in memory, mounted for the run.

Mounting needs root. Without it the disk is an ordinary folder that cannot be filled, and the run says so.
"""

from __future__ import annotations

import contextlib
import errno
import subprocess
from pathlib import Path
from typing import Self

MOUNT, UMOUNT = "/bin/mount", "/bin/umount"

DISK_MEGABYTES = 400
"""Kafka's own topics, ours and their indexes take some 60 MB in a run."""

FILL_BYTES = 1_048_576


class SmallDisk:
    """A folder with little room. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.is_small = False
        self._filler = folder / "filler"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [MOUNT, "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "tmpfs", str(self.folder)]
        with contextlib.suppress(OSError):
            self.is_small = subprocess.run(command, capture_output=True, check=False).returncode == 0
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_small:
            subprocess.run([UMOUNT, "--lazy", str(self.folder)], check=False)

    def fill(self) -> None:
        """Leave no byte free."""
        assert self.is_small, "this would fill the machine's own disk"
        with self._filler.open("ab", buffering=0) as filler:
            size = FILL_BYTES
            while size:
                try:
                    filler.write(b"\0" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2

    def clear(self) -> None:
        """Give the room back."""
        self._filler.unlink(missing_ok=True)
