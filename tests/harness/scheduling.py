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


WAITING_END: Final = 0.85
"""At this part of all tests the last one on Kafka begins: no process is left with one while the others have nothing."""


def in_order(items: list[pytest.Item]) -> None:
    """Put tests that wait for Kafka evenly among those that compute, so that all cores have work all the time.

    Among each kind the long ones come first. What stays in one process begins before all others.
    """
    items.sort(key=lambda item: not _is_slow(item))
    shared = [item for item in items if file_of(item.nodeid) in IN_ONE_PROCESS]
    others = [item for item in items if file_of(item.nodeid) not in IN_ONE_PROCESS]
    waiting = [[item] for item in others if item.get_closest_marker("kafka")]
    computing = [item for item in others if not item.get_closest_marker("kafka")]
    pieces = itertools.groupby(computing, lambda item: item.nodeid if _is_slow(item) else file_of(item.nodeid))
    files = [list(piece) for _, piece in pieces]
    placed = [(WAITING_END * number / len(waiting), piece) for number, piece in enumerate(waiting)]
    placed += [(number / len(files), piece) for number, piece in enumerate(files)]
    placed.sort(key=lambda place: place[0])
    items[:] = sorted(shared, key=lambda item: file_of(item.nodeid))
    items += (item for _, piece in placed for item in piece)


def _is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


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
