"""The interface between the engine and the program that it runs.

The engine moves bytes: it knows partitions, rows and messages, never what they mean. A `PartitionLogic` knows that;
there is one for each partition number that this worker owns. All its methods are synchronous and run on the event
loop's thread, one at a time, so state, positions and output always agree.

`apply` and `caught_up` are iterators, because one record may change much. The engine runs each to its end and may run
other tasks after each value. Meanwhile it applies no other batch, but it fires timers and commits the outbox.

Life of an instance: made at take-over, `load` for every row of the changelog, `loaded` once, then `apply` and `fire` in
any order, `caught_up` once when the inputs have been read to the end that they had at take-over. When its partition is
lost or a transaction fails, the engine drops it and makes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from evictstream.streams.engine.core.batches import Record
from evictstream.streams.engine.core.outbox import Outbox


class PartitionLogic(Protocol):
    """State of one partition number and what is decided on it."""

    def load(self, key: bytes, value: bytes | None) -> None:
        """Take one row of the changelog; rows come in log order and may repeat, the value `None` deletes."""

    def loaded(self) -> None:
        """Rebuild indexes and timers: all rows have come."""

    def apply(self, topic: str, records: Sequence[Record], outbox: Outbox) -> Iterable[int]:
        """Apply records of one input in offset order. Must not raise on bad records: they are data.

        Yields an offset now and then. At that moment the outbox holds the complete output of all records before that
        offset, and nothing of later ones.
        """

    def caught_up(self, now_us: int, outbox: Outbox) -> Iterable[object]:
        """Decide again at `now_us`. Called once, when everything that was in the inputs at take-over has been applied.

        Yields where the outbox may be committed as it is.
        """

    def next_due_at_us(self) -> int | None:
        """When the earliest timer is due (microseconds UTC), or `None` without timers."""

    def fire(self, now_us: int, limit: int, outbox: Outbox) -> int:
        """Fire timers that are due at `now_us`, up to a total cost of `limit`; a usual timer costs 1.

        Returns the cost of what fired.
        """

    def objection(self) -> str | None:
        """Say why no timer of this partition may fire now, or `None`."""

    def gap_found(self, lost: dict[str, int], now_us: int, outbox: Outbox) -> None:
        """Note at take-over that input expired unread; `lost` counts its records by topic."""


Logic = TypeVar("Logic", bound=PartitionLogic)
"""The type of logic that a `Partitions[Logic]`, its slots and its writers run."""

LogicFactory: TypeAlias = Callable[[int], Logic]
