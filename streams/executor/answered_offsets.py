"""Which commands of a partition have an outcome, stored in the group's commit, so that a restart repeats none of them.

Kafka stores one offset for a group and partition. Evictions end out of order: one waits for a disruption budget while a
thousand after it are done. The committed offset is the first without an outcome; the metadata of the commit, a text,
lists which later offsets have one.
"""

from __future__ import annotations

import base64
import binascii
from collections import deque
from typing import Final

MOST_AHEAD: Final = 20_000
"""Answered commands of the cluster after the first one without an outcome; with so many, reading waits for that one.
Records of other clusters do not count: they must not delay this cluster."""

MOST_BITS: Final = 22_200
"""The most offsets that the metadata covers: in base64 3,700 characters, which leaves 390 of the 4,096 that a broker
accepts (`offset.metadata.max.bytes`) to the member's beat. Later answered commands are not stored, and get one more
last look after a restart."""

_PREFIX: Final = "v1:"


class AnsweredOffsets:
    """The offsets of one partition that have an outcome.

    Attributes:
        first_open: the first offset without an outcome, which is committed.
    """

    def __init__(self, first_open: int, metadata: str = "") -> None:
        """Begin at a commit.

        Args:
            first_open: the committed offset.
            metadata: of the commit; that of another program is ignored.
        """
        self.first_open = first_open
        self._answered = _read(metadata, first_open)
        self._passed: deque[list[int]] = deque()  # runs of offsets that need no outcome: begin and end
        self._advance()

    def add(self, offset: int) -> None:
        """Record that an offset has an outcome."""
        if offset >= self.first_open:
            self._answered.add(offset)
            self._advance()

    def pass_over(self, begin: int, end: int) -> None:
        """Record that the offsets from `begin` up to, but without `end` need no outcome. Call it in their order."""
        if end <= begin:
            return
        if self._passed and self._passed[-1][1] == begin:
            self._passed[-1][1] = end
        else:
            self._passed.append([begin, end])
        self._advance()

    def __contains__(self, offset: int) -> bool:
        """Whether an offset has an outcome."""
        return offset < self.first_open or offset in self._answered

    def is_far(self) -> bool:
        """Whether reading has to wait for the first offset without an outcome."""
        return len(self._answered) >= MOST_AHEAD

    def metadata(self) -> str:
        """Encode which offsets after `first_open` have an outcome."""
        if not self._answered:
            return ""
        bits = bytearray(min(max(self._answered) - self.first_open, MOST_BITS - 1) // 8 + 1)
        for offset in self._answered:
            index, bit = divmod(offset - self.first_open, 8)
            if index < len(bits):
                bits[index] |= 1 << bit
        return _PREFIX + base64.b64encode(bits).decode()

    def _advance(self) -> None:
        while True:
            if self._passed and self._passed[0][0] <= self.first_open:
                self.first_open = max(self.first_open, self._passed.popleft()[1])
            elif self.first_open in self._answered:
                self._answered.remove(self.first_open)
                self.first_open += 1
            else:
                return


def _read(metadata: str, first_open: int) -> set[int]:
    if not metadata.startswith(_PREFIX):
        return set()
    try:
        data = base64.b64decode(metadata.removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return set()
    return {first_open + 8 * index + bit for index, byte in enumerate(data) for bit in range(8) if byte >> bit & 1}
