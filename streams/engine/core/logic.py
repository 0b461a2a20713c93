"""The seam between the engine and whatever it runs.

The engine moves bytes: it knows partitions, rows and messages, never what they mean. What they mean is a
``PartitionLogic``, one instance for each partition number that this worker owns. All its methods are
synchronous and run on the event loop's thread, one at a time, so state, positions and output always agree.

Two of them are iterators, since one record may have much to change: the engine runs them to their end, and may let
others work at each value. Until then it applies nothing else, but it fires, and it commits what the outbox holds.

Life of an instance: made at take-over, ``load`` for every row of the changelog, ``loaded`` once, then
``apply`` and ``fire`` in any order, ``caught_up`` once when the inputs have been read to the end that they
had at take-over. It is thrown away, never repaired, when its partition is lost or a transaction fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from evictstream.streams.engine.core.batches import Record
from evictstream.streams.engine.core.outbox import Outbox


class PartitionLogic(Protocol):
    """State of one partition number and what is decided on it."""

    def load(self, key: bytes, value: bytes | None) -> None:
        """Take one row of the changelog; rows come in log order and may repeat, ``None`` deletes."""

    def loaded(self) -> None:
        """Be told that all rows have come: rebuild indexes and timers."""

    def apply(self, topic: str, records: Sequence[Record], outbox: Outbox) -> Iterable[int]:
        """Apply records of one input in offset order. Must not raise on bad records: they are data.

        Yields now and then the offset up to which the outbox has everything, and of what is behind it nothing.
        """

    def caught_up(self, outbox: Outbox) -> Iterable[object]:
        """Decide anew what may have waited, now that nothing known at take-over is unread.

        Yields where the outbox holds nothing by halves.
        """

    def next_due_at_us(self) -> int | None:
        """When the earliest timer is due (microseconds UTC), or ``None`` without timers."""

    def fire(self, now_us: int, limit: int, outbox: Outbox) -> int:
        """Fire timers due at ``now_us``, of usual cost at most ``limit``; returns the cost of those handled."""

    def objection(self) -> str | None:
        """Say why no timer of this partition may fire now, or ``None``."""

    def gap_found(self, lost: dict[str, int], now_us: int, outbox: Outbox) -> None:
        """Be told at take-over that input expired unread: records lost by topic."""


LogicFactory = Callable[[int], PartitionLogic]
