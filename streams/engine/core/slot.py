"""One partition number that the group has assigned to this worker: its state, and its writer if it has one.

Only the methods of a slot change its state, `Partitions` says when. `MOVES` are all changes that there are.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic

from evictstream.streams.engine.core.logic import Logic
from evictstream.streams.errors import InternalFailureError, PartitionLostError, TakeoverFailedError

if TYPE_CHECKING:
    from evictstream.streams.engine.core.takeover import Takeover
    from evictstream.streams.engine.core.writer import PartitionWriter

    OnFailure = Callable[[PartitionWriter[Logic], BaseException], None]


class SlotState(enum.Enum):
    """Where a partition number stands."""

    ABSENT = "absent"
    """Assigned to this worker, and without a writer."""
    TAKING_OVER = "taking over"
    """The previous owner is being fenced and its rows are read."""
    LIVE = "live"
    """The writer steps and commits."""
    FAILED = "failed"
    """The writer has failed, and nothing takes the partition over yet."""
    REPAIRING = "repairing"
    """A task takes the partition over again."""


MOVES: Final = {
    (SlotState.ABSENT, SlotState.TAKING_OVER): "the group has assigned the number",
    (SlotState.TAKING_OVER, SlotState.ABSENT): "the takeover has failed, was cancelled, or everything ends",
    (SlotState.TAKING_OVER, SlotState.LIVE): "the takeover is done",
    (SlotState.LIVE, SlotState.FAILED): "the writer has failed",
    (SlotState.LIVE, SlotState.ABSENT): "the number is given away, a generation was missed, or everything ends",
    (SlotState.FAILED, SlotState.ABSENT): "the same, before a repair has begun",
    (SlotState.FAILED, SlotState.REPAIRING): "the partition is to be taken over again",
    (SlotState.REPAIRING, SlotState.FAILED): "a rebalance has begun, which cancels repairs",
    (SlotState.REPAIRING, SlotState.LIVE): "the takeover of the repair is done",
    (SlotState.LIVE, SlotState.REPAIRING): "the repair's new writer has failed, or is closed before the next try",
}
"""From, to, and when."""


class PartitionSlot(Generic[Logic]):
    """Holds the writer of one partition number; the writer may fail and be replaced.

    Its mutable state is where the number stands, the writer, the task that repairs, and how often that has failed.

    Attributes:
        partition: its number.
    """

    def __init__(
        self,
        partition: int,
        new_writer: Callable[[Takeover[Logic], OnFailure[Logic]], PartitionWriter[Logic]],
        on_failure: Callable[[PartitionSlot[Logic], BaseException], None],
    ) -> None:
        """`on_failure` is called when the slot's writer has failed, once for each writer at most."""
        self.partition = partition
        self._new_writer = new_writer
        self._on_failure = on_failure
        self._state = SlotState.ABSENT
        self._takeovers = 0
        self._writer: PartitionWriter[Logic] | None = None
        self._durable: Mapping[str, int] = {}
        self._repair: asyncio.Task[None] | None = None
        self._failed_in_a_row = 0

    @property
    def state(self) -> SlotState:
        """Changed only by the methods below."""
        return self._state

    @property
    def writer(self) -> PartitionWriter[Logic] | None:
        """The writer that may step and write, if there is one."""
        return self._writer if self._state is SlotState.LIVE else None

    @property
    def has_writer(self) -> bool:
        """Whether there is a writer, live or failed, that has to be closed."""
        return self._writer is not None

    def _move(self, to: SlotState) -> None:
        if (self._state, to) not in MOVES:
            raise InternalFailureError(f"partition {self.partition} cannot be {to.value}: it is {self._state.value}")
        self._state = to

    def durable_positions(self) -> Mapping[str, int]:
        """Positions of the last committed transaction, by topic; also those of a writer that has failed since."""
        if self._writer is not None and self._state is SlotState.LIVE:
            self._durable = self._writer.committer.durable
        return self._durable

    def begin_takeover(self) -> None:
        """Note that a takeover has begun. Within a repair the state stays REPAIRING."""
        self._takeovers += 1
        if self._state is SlotState.ABSENT:
            self._move(SlotState.TAKING_OVER)

    def abandon_takeover(self) -> None:
        """Note that a takeover has failed or was cancelled, perhaps while the next one goes on already."""
        self._takeovers -= 1
        if self._state is SlotState.TAKING_OVER and not self._takeovers:
            self._move(SlotState.ABSENT)

    def open(self, takeover: Takeover[Logic]) -> PartitionWriter[Logic]:
        """Make the writer of a finished takeover and go live."""
        self._move(SlotState.LIVE)
        self._takeovers -= 1
        self._writer = self._new_writer(takeover, self._writer_failed)
        # Kept now: a repair must be able to commit these positions even if this writer fails at once.
        self._durable = self._writer.committer.durable
        return self._writer

    def _writer_failed(self, writer: PartitionWriter[Logic], error: BaseException) -> None:
        if writer is self._writer:
            self._move(SlotState.FAILED if self._repair is None else SlotState.REPAIRING)
        self._on_failure(self, error)

    def detach(self) -> PartitionWriter[Logic] | None:
        """Remove the writer, live or failed, and return it; the caller must close it."""
        writer, self._writer = self._writer, None
        rest = SlotState.ABSENT if self._repair is None else SlotState.REPAIRING
        if self._state is not rest:
            self._move(rest)
        return writer

    def begin_repair(self, repair: Callable[[PartitionSlot[Logic]], Coroutine[Any, Any, None]]) -> None:
        """Start a task that takes the partition over again, unless there is one."""
        if self._repair is None:
            self._move(SlotState.REPAIRING)
            self._repair = asyncio.create_task(repair(self), name=f"repair-{self.partition}")

    def cancel_repair(self) -> asyncio.Task[None] | None:
        """Cancel the repair, if there is one, and give it to the caller, who waits for its end."""
        repair, self._repair = self._repair, None
        if repair is not None:
            repair.cancel()
        if self._state is SlotState.REPAIRING:
            self._move(SlotState.FAILED)
        return repair

    def count_failure(self, error: PartitionLostError, most: int) -> None:
        """Count a takeover of the repair that has failed.

        Raises:
            TakeoverFailedError: `most` takeovers have failed in a row.
        """
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= most:
            raise TakeoverFailedError(partition=self.partition, attempts=self._failed_in_a_row) from error

    def forget_failures(self) -> None:
        """Count failures in a row from 0 again."""
        self._failed_in_a_row = 0

    def repaired(self) -> None:
        """Note that the repair is done; the next failure begins another one."""
        self._repair = None
        self._failed_in_a_row = 0
