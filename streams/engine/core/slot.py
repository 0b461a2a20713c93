"""One partition number that the group has assigned to this worker: its state, and its writer if it has one.

| from | to | by | when |
|---|---|---|---|
| ABSENT | TAKING_OVER | `begin_takeover` | the group has assigned the number |
| TAKING_OVER | ABSENT | `abandon_takeover` | the take-over has failed or was cancelled |
| TAKING_OVER, REPAIRING | LIVE | `open` | the take-over is done |
| LIVE | FAILED | its writer | the writer has failed |
| FAILED | REPAIRING | `begin_repair` | the partition is to be taken over again |
| REPAIRING | FAILED | `cancel_repair` | a rebalance has begun |
| REPAIRING | REPAIRING | its writer, `detach` | the new writer has failed too, or is closed before the next try |
| LIVE, FAILED | ABSENT | `detach` | the number is given away, a generation was missed, or everything ends |

Only the methods of a slot change it. `Partitions` says when.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Generic

from evictstream.streams.engine.core.logic import Logic
from evictstream.streams.errors import PartitionLostError, TakeoverFailedError

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


class PartitionSlot(Generic[Logic]):
    """Holds the writer of one partition number; the writer may fail and be replaced.

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

    def durable_positions(self) -> Mapping[str, int]:
        """Positions of the last committed transaction, by topic; also those of a writer that has failed since."""
        if self._writer is not None and self._state is SlotState.LIVE:
            self._durable = self._writer.durable
        return self._durable

    def begin_takeover(self) -> None:
        """Note that a take-over has begun. Within a repair the state stays REPAIRING."""
        if self._state is SlotState.ABSENT:
            self._state = SlotState.TAKING_OVER

    def abandon_takeover(self) -> None:
        """Note that the take-over has failed or was cancelled."""
        if self._state is SlotState.TAKING_OVER:
            self._state = SlotState.ABSENT

    def open(self, takeover: Takeover[Logic]) -> PartitionWriter[Logic]:
        """Make the writer of a finished take-over and go live."""
        self._writer = self._new_writer(takeover, self._writer_failed)
        self._state = SlotState.LIVE
        # Kept now: a repair must be able to commit these positions even if this writer fails at once.
        self._durable = self._writer.durable
        return self._writer

    def _writer_failed(self, writer: PartitionWriter[Logic], error: BaseException) -> None:
        if writer is self._writer:
            self._state = SlotState.FAILED if self._repair is None else SlotState.REPAIRING
        self._on_failure(self, error)

    def detach(self) -> PartitionWriter[Logic] | None:
        """Remove the writer, live or failed, and return it; the caller must close it."""
        writer, self._writer = self._writer, None
        self._state = SlotState.ABSENT if self._repair is None else SlotState.REPAIRING
        return writer

    def begin_repair(self, repair: Callable[[PartitionSlot[Logic]], Coroutine[Any, Any, None]]) -> None:
        """Start a task that takes the partition over again, unless there is one."""
        if self._repair is None:
            self._state = SlotState.REPAIRING
            self._repair = asyncio.create_task(repair(self), name=f"repair-{self.partition}")

    def cancel_repair(self) -> asyncio.Task[None] | None:
        """Cancel the repair, if there is one, and give it to the caller, who waits for its end."""
        repair, self._repair = self._repair, None
        if repair is not None:
            repair.cancel()
        if self._state is SlotState.REPAIRING:
            self._state = SlotState.FAILED
        return repair

    def count_failure(self, error: PartitionLostError, most: int) -> None:
        """Count a take-over of the repair that has failed.

        Raises:
            TakeoverFailedError: `most` take-overs have failed in a row.
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
