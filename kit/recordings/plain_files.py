"""Opens files of a folder that somebody handed over: regular files in that folder and nothing else.

A link could name any file that the process may read, and a pipe or a device would hold the reader, or never end.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path


def open_plain(path: Path) -> io.BufferedReader:
    """Open a regular file to read it.

    Raises:
        OSError: it cannot be opened, or is something else.
    """
    if path.is_symlink():
        raise OSError("it is a link")
    # Without waiting for a writer of a pipe, and without a link that has come meanwhile.
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError("it is no regular file")
    return os.fdopen(opened, "rb")
