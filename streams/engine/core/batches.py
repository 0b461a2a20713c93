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


class Batch(NamedTuple):
    """Records of one input partition in offset order, and where the consumer stands after them."""

    topic: str
    partition: int
    records: Sequence[Record]
    start: int
    position: int
    epoch: int
