"""The interface between the engine and the program that it runs.

The engine moves bytes: it knows partitions, rows and messages, never what they mean. A `PartitionLogic` knows that;
there is one for each partition number that this worker owns. All its methods are synchronous and run on the event
loop's thread, one at a time, so state, positions and output always agree.

A logic works in steps, mostly one for each record. As one record may change much, `apply` and `caught_up` are iterators
of parts. The engine decides after which of them other tasks run: they fire timers and commit the outbox and, where the
step is whole, apply other batches. A step is visible as a whole or not at all: what it writes before its last part is
put aside in the outbox (`Outbox.aside`), and timers of what it has half changed wait.

Life of an instance: made at takeover, `load` for every row of the changelog, `loaded` once, then `apply` and `fire` in
any order, `caught_up` once when the inputs have been read to the end that they had at takeover. When its partition is
lost or a transaction fails, the engine drops it and makes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from evictstream.streams.engine.core.batches import Record
from evictstream.streams.engine.core.outbox import Outbox

SLICE_COST = 25  # most cost without a look at the clock: 0.5 ms of usual decisions


class Part(NamedTuple):
    """A part of a step, which has just been done; mostly the step has no other one.

    Attributes:
        position: all records before this offset are applied, and none behind it but in the parts of this step. 0 where
            no record is applied.
        cost: how much work it was. 1 is one usual record, or the decision about one pod: 10 to 40 µs.
        is_last: whether the step is whole now.
    """

    position: int
    cost: int = 1
    is_last: bool = True


class PartitionLogic(Protocol):
    """State of one partition number and what is decided on it."""

    def load(self, key: bytes, value: bytes | None) -> None:
        """Take one row of the changelog; rows come in log order and may repeat, the value `None` deletes."""

    def loaded(self) -> None:
        """Rebuild indexes and timers: all rows have come."""

    def apply(self, topic: str, records: Sequence[Record], outbox: Outbox) -> Iterable[Part]:
        """Apply records of one input in offset order. Must not raise on bad records: they are data.

        Yields the parts; cheap ones may go together, up to a cost of `SLICE_COST`. May be left after a last part: other
        records are then applied by another call. The next record is asked for when the one before is applied.
        """

    def caught_up(self, now_us: int, outbox: Outbox) -> Iterable[Part]:
        """Decide again at `now_us`. Called once, when everything that was in the inputs at takeover has been applied.

        Yields the parts of one step, though what they write need not be put aside: no part depends on a later one.
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
        """Note at takeover that input expired unread; `lost` counts its records by topic."""


Logic = TypeVar("Logic", bound=PartitionLogic)
"""The type of logic that a `Partitions[Logic]`, its slots and its writers run."""

LogicFactory: TypeAlias = Callable[[int], Logic]
