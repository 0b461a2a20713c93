"""Simulated partitions: records with offsets and append times, transactions, markers, compaction."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

Headers = list[tuple[str, bytes]]
MILLISECOND_US = 1000


@dataclasses.dataclass(slots=True, eq=False)
class Transaction:
    """A transaction; its records in a partition are visible to `read_committed` readers once that has its commit.

    Attributes:
        committed: by partition that has a marker of it, whether that was a commit.
    """

    transactional_id: str
    began_at_us: int
    partitions: set[tuple[str, int]] = dataclasses.field(default_factory=set)
    committed: dict[tuple[str, int], bool] = dataclasses.field(default_factory=dict)


class Entry(NamedTuple):
    """A record, as a consumer gets it (aiokafka's `ConsumerRecord` has the same names)."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    transaction: Transaction | None


class Fetched(NamedTuple):
    """An answer to a fetch: records, and where the reader stands after them."""

    records: list[Entry]
    position: int


class PartitionLog:
    """One partition. Offsets have holes where markers, or records that were compacted away, stood."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.entries: list[Entry] = []
        self.end = 0
        self._open: dict[int, Transaction] = {}

    def append(
        self,
        at_us: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        transaction: Transaction | None = None,
    ) -> Entry:
        """Append a record; append times are whole milliseconds and never go back."""
        timestamp = at_us // MILLISECOND_US
        entry = Entry(self.topic, self.partition, self.end, timestamp, key, value, headers, transaction)
        if transaction is not None and transaction not in self._open.values():
            self._open[self.end] = transaction
        self.entries.append(entry)
        self.end += 1
        return entry

    def finish(self, transactional_id: str, *, commit: bool) -> None:
        """Write a marker, which ends all open transactions of an id in this partition."""
        ended = {offset: found for offset, found in self._open.items() if found.transactional_id == transactional_id}
        for offset, transaction in ended.items():
            transaction.committed[self.topic, self.partition] = commit
            del self._open[offset]
        self.end += 1

    def skip(self) -> None:
        """Leave an offset without a record, as the marker of a feed's own transaction does."""
        self.end += 1

    @property
    def stable_end(self) -> int:
        """Last stable offset: the first record of the first open transaction, or the end."""
        return min(self._open, default=self.end)

    def readable_end(self, isolation: str) -> int:
        """Give the end that a reader with this isolation sees."""
        return self.stable_end if isolation == "read_committed" else self.end

    def read(self, start: int, limit: int, isolation: str) -> Fetched:
        """Read on from an offset."""
        end = self.readable_end(isolation)
        found: list[Entry] = []
        for entry in self.entries[self._index(start) :]:
            if entry.offset >= end:
                break
            if isolation == "read_committed" and not is_committed(entry):
                continue
            if len(found) == limit:
                return Fetched(found, entry.offset)
            found.append(entry)
        return Fetched(found, max(start, end))

    def _index(self, offset: int) -> int:
        low, high = 0, len(self.entries)
        while low < high:
            middle = (low + high) // 2
            if self.entries[middle].offset < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def compact(self) -> None:
        """Drop aborted records and older values below the last stable offset, as the log cleaner does."""
        end = self.stable_end
        newest = {entry.key: entry.offset for entry in self.entries if entry.offset < end and is_committed(entry)}
        self.entries = [
            entry
            for entry in self.entries
            if entry.offset >= end or (is_committed(entry) and newest[entry.key] == entry.offset)
        ]


def is_committed(entry: Entry) -> bool:
    """Whether the record's transaction is committed here."""
    return entry.transaction is None or entry.transaction.committed.get((entry.topic, entry.partition), False)
