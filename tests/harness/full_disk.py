"""`evictstream` in a process that cannot write a byte into any file, as on a full disk; it logs into a pipe.

Started as `python -m tests.harness.full_disk feed ...`.
"""

from __future__ import annotations

import resource

from evictstream.streams.cli.main import main

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    main()
