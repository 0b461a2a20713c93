"""A program that shows what it was given, warns, leaves and ends with 7: `python -m tests.harness.shown_process`."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from pathlib import Path

if __name__ == "__main__":
    print(sys.argv[1:], repr(sys.stdin.read()), repr(os.environ.get("SHOWN")), repr(str(Path.cwd())), __name__)  # noqa: T201
    atexit.register(print, "left")
    warnings.warn("odd", stacklevel=1)
    sys.exit(7)
