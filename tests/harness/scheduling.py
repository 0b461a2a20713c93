"""Which process of pytest-xdist runs which test: long ones one by one, short ones as the rest of their file.

Fixtures of a module are made in each process that has a test of it, so a file of short tests stays in one process. A
file of long ones does not, since the others would wait for it in the end.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Final

import pytest
from xdist.scheduler import LoadScheduling

IN_ONE_PROCESS: Final = frozenset(
    {
        "tests/deploy/test_image_build.py",
        "tests/deploy/test_packaging.py",
        "tests/guarantees/test_kafka_rights.py",
        "tests/streams/broker/test_embedded.py",
        "tests/streams/cli/test_secrets.py",
        "tests/kit/demo/test_demo_command.py",
        "tests/kit/report/test_page.py",
        "tests/streams/engine/test_markers.py",
        "tests/streams/engine/test_transactions.py",
        "tests/streams/engine/test_transactions_v2.py",
    }
)
"""Files of long tests that stay in one process nevertheless: they share what is dear to make, or look at all demos.

pytest-xdist 3.8 has a marker for this, but with pytest 9.2 it is ignored without a word.
"""

SHORT_SECONDS: Final = 0.1
FEWEST_WAITING: Final = 3
"""A process begins a test when it knows the next one; with one more it never waits for an answer from here."""


def in_order(items: list[pytest.Item]) -> None:
    """Put the long tests first, so that no process is left with one at the end while the others have nothing to do."""
    items.sort(
        key=lambda item: (
            file_of(item.nodeid) if file_of(item.nodeid) in IN_ONE_PROCESS else "~",  # behind all files
            *(item.get_closest_marker(name) is None for name in ("slow", "kafka")),
        )
    )


def file_of(nodeid: str) -> str:
    """Return the file of a test, as reports name it."""
    return nodeid.partition("::")[0]


class Scheduling(LoadScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out tests in their order; all that it overrides is when, and how many at once."""

    def check_schedule(self, node: Any, duration: float = math.inf) -> None:
        """Give a process more to do when it has almost nothing left; its last test took `duration` seconds."""
        if node.shutting_down:
            return
        if self.pending:
            self._send_tests(node, 1, is_short=duration < SHORT_SECONDS)
        else:
            node.shutdown()

    def _send_tests(self, node: Any, num: int, *, is_short: bool = False) -> None:
        """Send what is to be known of the future; a share of all tests, as `num` is at the beginning, is not."""
        while self.pending and len(self.node2pending[node]) < FEWEST_WAITING:
            files = (file_of(self.collection[index]) for index in self.pending)
            file, rest = next(itertools.groupby(files))
            super()._send_tests(node, sum(1 for _ in rest) if is_short or file in IN_ONE_PROCESS else 1)
