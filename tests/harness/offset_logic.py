"""A partition's logic for tests of the engine: its only state are the offsets of the records it was given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evictstream.streams.engine.core.batches import Record
from evictstream.streams.engine.core.logic import Part
from evictstream.streams.engine.core.outbox import Outbox


class OffsetLogic:
    """Keeps offsets, and puts some rows into the outbox for each record."""

    def __init__(self, _partition: int = 0, *, rows_per_record: int = 0) -> None:
        self.offsets: list[int] = []
        self._rows_per_record = rows_per_record

    def load(self, key: bytes, value: bytes | None) -> None:
        """Keep no rows."""

    def loaded(self) -> None:
        """Derive nothing."""

    def apply(self, _topic: str, records: Sequence[Record], outbox: Outbox) -> Iterable[Part]:
        for record in records:
            self.offsets.append(record.offset)
            for number in range(self._rows_per_record):
                outbox.put(b"%d-%d" % (record.offset, number), b"row")
            yield Part(record.offset + 1, 1 + self._rows_per_record)

    def caught_up(self, now_us: int, outbox: Outbox) -> Iterable[Part]:
        return ()

    def next_due_at_us(self) -> int | None:
        return None

    def fire(self, _now_us: int, _limit: int, _outbox: Outbox) -> int:
        return 0

    def objection(self) -> str | None:
        return None

    def gap_found(self, lost: dict[str, int], now_us: int, outbox: Outbox) -> None:
        """Take gaps for nothing."""
