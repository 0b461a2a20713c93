"""One fetched batch of one input partition, on its way from the consumer's thread to the agent.

A batch carries three numbers besides its records:

- `start`: where the consumer stood before it. Batches of one epoch form a chain; the writer notices a missing link.
- `position`: where the consumer stands after it. Transaction markers and compacted holes have no record, so only the
  position tells that an end was reached; a batch may have no records at all.
- `epoch`: which seek it was read after. The writer ignores batches that were fetched before its partition's last seek,
  so it skips nothing and applies nothing to the wrong state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from evictstream.streams.compression import Unusable


class Record(Protocol):
    """What the engine and its logic read of a consumed record (aiokafka's `ConsumerRecord`)."""

    @property
    def offset(self) -> int:
        """Offset in its partition."""

    @property
    def timestamp(self) -> int:
        """Append time in milliseconds since the epoch (inputs use `LogAppendTime`)."""

    @property
    def key(self) -> bytes | None:
        """Key as it came."""

    @property
    def value(self) -> bytes | None:
        """Value as it came."""


class UnusableRecord(NamedTuple):
    """Stands for a record that is left out, and has neither key nor value, which no logic takes for one that it knows.

    Attributes:
        offset: its offset. Of a batch that cannot be opened only the first records have one of these each.
        timestamp: append time of its batch in milliseconds since the epoch.
        reason: why it is left out.
        detail: what it was part of, for people.
        content_key: its key, where it could be read.
        content: its value. Of what could not be read the first record has all of the batch as it came, the others none.
    """

    offset: int
    timestamp: int
    reason: Unusable
    detail: str
    content_key: bytes | None = None
    content: bytes | None = None
    key: None = None
    value: None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Batch(NamedTuple):
    """Records of one input partition in offset order, and where the consumer stands after them."""

    topic: str
    partition: int
    records: Sequence[Record]
    start: int
    position: int
    epoch: int
