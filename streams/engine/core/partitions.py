"""A slot for each partition number that the group has assigned to this worker. Slots outlive rebalances and failures.

`assign` follows each rebalance: it closes the writers of lost partitions (their state is dropped), keeps others, and
takes new partitions over. It keeps a writer only if this worker has missed no generation of the group since; otherwise
another worker may have owned the partition meanwhile.

A writer that fails in between (fenced, transaction timed out) is closed, and its partition is taken over again once the
group has confirmed this worker *after* the failure: a worker that was thrown out gets no such confirmation, and so
never fences the new owner. An error that another takeover cannot cure stops the process instead.
"""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Generic

import structlog

from evictstream.streams.engine.core.committer import Committer
from evictstream.streams.engine.core.histogram import Histogram
from evictstream.streams.engine.core.lease import Lease
from evictstream.streams.engine.core.logic import Logic
from evictstream.streams.engine.core.slot import PartitionSlot, SlotState
from evictstream.streams.engine.core.takeover import take_over
from evictstream.streams.engine.core.waits import WorkerWaits
from evictstream.streams.engine.core.writer import PartitionWriter
from evictstream.streams.errors import PartitionLostError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from evictstream.streams.engine.core.batches import Batch
    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.logic import LogicFactory
    from evictstream.streams.engine.core.ports import Clock, Group, Kafka, Place
    from evictstream.streams.engine.core.slot import OnFailure
    from evictstream.streams.engine.core.takeover import Takeover

    Crash = Callable[[BaseException], Awaitable[None]]

log = structlog.get_logger(__name__)

FLUSH_TIMEOUT_SECONDS = 5.0  # longest wait of a rebalance for open transactions; what they hold is then read again
# Upper limit over all busy partitions of a worker; at 1 to 2 ms of processor time each, a third of a core. A partition
# whose last transaction began longer ago than the spacing writes at once.
TRANSACTIONS_PER_SECOND = 200
RETRY_PAUSE_SECONDS = 0.5
# One transaction takes 5 ms. One that takes more than a second waits for a broker; after a minute it fails.
TRANSACTION_BOUNDS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CONFIRM_POLL_SECONDS = 0.1


class Partitions(Generic[Logic]):
    """The slots by partition number. All methods run on the event loop's thread.

    Attributes:
        waits: how long each thing that this worker waits for has been awaited.
        transaction_seconds: how long committed transactions took.
        takeovers: partitions taken over since the start.
        failures: partitions lost since the start, except those that the group assigned elsewhere.
    """

    def __init__(
        self,
        config: EngineConfig,
        *,
        new_logic: LogicFactory[Logic],
        kafka: Kafka,
        group: Group,
        clock: Clock,
        crash: Crash,
        on_step: Callable[[PartitionWriter[Logic]], None] = lambda _: None,
    ) -> None:
        """`crash` ends the application; `on_step` is called after each step of a writer, and when one has room again.

        Neither is called before a partition is assigned, so what they use may be made later.
        """
        self.config = config
        self.lease = Lease(
            clock.monotonic,
            session_timeout_seconds=config.session_timeout_seconds,
            margin_seconds=config.lease_margin_seconds,
        )
        self.waits = WorkerWaits()
        self.transaction_seconds = Histogram(TRANSACTION_BOUNDS_SECONDS)
        self.takeovers = 0
        self.failures = 0
        self._new_logic = new_logic
        self._kafka = kafka
        self._group = group
        self._clock = clock
        self._monotonic = clock.monotonic
        self._crash = crash
        self._on_step = on_step
        self._slots: dict[int, PartitionSlot[Logic]] = {}
        self._generation = -1
        self._is_closed = False
        self._is_assigning = False  # from a revocation until the assignment that follows is done
        self._rebalances = 0  # takeovers that began before the newest one open nothing
        self._crashing: set[asyncio.Task[None]] = set()

    @property
    def numbers(self) -> frozenset[int]:
        """What the group has assigned to this worker, taken over or not."""
        return frozenset(self._slots)

    @property
    def has_been_assigned(self) -> bool:
        """Whether the group has ever answered this worker, perhaps with no partition."""
        return self._generation >= 0

    def live(self) -> Iterator[PartitionWriter[Logic]]:
        """Writers that may step and write, in partition order."""
        for slot in tuple(self._slots.values()):
            writer = slot.writer
            if writer is not None:
                yield writer

    def durable_positions(self) -> dict[Place, int]:
        """Positions of committed transactions, by topic and partition, to be committed as group offsets.

        Those of failed partitions are included: a repair waits until the group accepts an offset commit of this worker,
        and if all partitions failed at once there would be nothing to commit.
        """
        return {
            (topic, number): offset
            for number, slot in self._slots.items()
            for topic, offset in slot.durable_positions().items()
        }

    async def deliver(self, batch: Batch) -> None:
        """Give a batch to its writer; without a live one it is dropped and read again after takeover."""
        slot = self._slots.get(batch.partition)
        writer = slot.writer if slot is not None else None
        if writer is not None:
            await writer.apply(batch)
        self.waits.taken(self._monotonic())

    async def flush(self) -> None:
        """Wait, bounded, until every live writer has committed what it stepped."""
        waiting = [asyncio.ensure_future(writer.committer.flush()) for writer in self.live()]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=FLUSH_TIMEOUT_SECONDS)
            for task in late:
                task.cancel()

    async def revoked(self) -> None:
        """Cancel all repairs: a rebalance has begun, and none may fence a worker before the assignment is known."""
        self._is_assigning = True
        self._rebalances += 1
        self.lease.drop()
        self.waits.rebalancing(self._monotonic())
        repairs = [repair for slot in self._slots.values() if (repair := slot.cancel_repair()) is not None]
        await asyncio.gather(*repairs, return_exceptions=True)

    async def assign(self, numbers: set[int], generation: int) -> None:
        """Bring the slots in line with an assignment. Cancelled by the next rebalance at any point."""
        rebalances = self._rebalances
        unbroken = generation in (self._generation, self._generation + 1)  # the same one again: a takeover has failed
        self._is_assigning = True
        self._generation = generation
        before = self._slots
        self._slots = {number: before.get(number) or self._new_slot(number) for number in sorted(numbers)}
        kept = {n for n, slot in self._slots.items() if slot.state is SlotState.LIVE and unbroken}
        await self._drop([slot for number, slot in before.items() if number not in kept])
        await self._open([slot for number, slot in self._slots.items() if number not in kept], rebalances)
        self._is_assigning = False
        for slot in self._slots.values():
            slot.forget_failures()
            if slot.state is SlotState.FAILED:  # while others were taken over
                slot.begin_repair(self._repair)

    def _new_slot(self, number: int) -> PartitionSlot[Logic]:
        return PartitionSlot(number, self._new_writer, self._on_failure)

    def _new_writer(self, takeover: Takeover[Logic], on_failure: OnFailure[Logic]) -> PartitionWriter[Logic]:
        committer = Committer(
            config=self.config,
            clock=self._clock,
            producer=takeover.producer,
            positions=takeover.positions,
            last_commit=takeover.committed,
            spacing_seconds=self._spacing_seconds,
            transaction_seconds=self.transaction_seconds,
        )
        return PartitionWriter(
            takeover.partition,
            logic=takeover.logic,
            committer=committer,
            clock=self._clock,
            on_failure=on_failure,
            on_step=self._on_step,
        )

    async def _open(self, slots: list[PartitionSlot[Logic]], rebalances: int) -> None:
        """Take slots over and open them, unless a rebalance has come since there were so many.

        Raises:
            CancelledError: one has. It has cancelled this takeover, but `asyncio.wait_for` of Python 3.11 swallows that
                where what it waits for is done at the same moment.
        """
        if not slots:
            return
        by_number = {slot.partition: slot for slot in slots}
        for slot in slots:
            slot.begin_takeover()
        try:
            takeovers = await take_over(
                by_number,
                config=self.config,
                new_logic=self._new_logic,
                kafka=self._kafka,
                clock=self._clock,
                on_progress=self._takeover_progress,
            )
        except BaseException:
            for slot in slots:
                slot.abandon_takeover()
            raise
        if self._is_closed or rebalances != self._rebalances:
            await asyncio.gather(*(takeover.producer.close() for takeover in takeovers))
            if self._is_closed:
                return
            for slot in slots:
                slot.abandon_takeover()
            raise asyncio.CancelledError
        self.takeovers += len(takeovers)
        opened = [(by_number[takeover.partition].open(takeover), takeover) for takeover in takeovers]
        for writer, takeover in opened:
            await writer.expect_ends(takeover.ends, takeover.asked_at)

    async def _close(self, slots: Iterable[PartitionSlot[Logic]]) -> int:
        """Close the writers of slots; returns how many there were."""
        writers = [writer for slot in slots if (writer := slot.detach()) is not None]
        # Shielded: a rebalance that cancels this must not leave a producer open.
        await asyncio.shield(asyncio.gather(*(writer.close() for writer in writers)))
        return len(writers)

    async def _drop(self, slots: Iterable[PartitionSlot[Logic]]) -> None:
        """Close the writers of slots and free the memory of their state."""
        if await self._close(slots):
            gc.collect()  # the state has cycles, and no other full collection runs (worker/memory_tuning.py)

    async def seek_all(self) -> None:
        """Seek the inputs of all live writers to their positions and begin new epochs."""
        await self._seek(list(self.live()))

    async def _seek(self, writers: list[PartitionWriter[Logic]]) -> None:
        epochs = await self._group.seek(
            {(t, w.partition): offset for w in writers for t, offset in w.positions.items()}
        )
        for writer in writers:
            writer.begin_epochs({topic: epochs[topic, writer.partition] for topic in writer.positions})

    def note_owned(self) -> None:
        """End the watchdog's wait for `ownership` if all slots are live. Call it after an assignment or a repair."""
        if all(slot.state is SlotState.LIVE for slot in self._slots.values()):
            self.waits.owned(self._monotonic(), len(self._slots))

    def _takeover_progress(self) -> None:
        self.waits.ownership.progress(self._monotonic())

    def _spacing_seconds(self) -> float:
        return sum(slot.has_writer for slot in self._slots.values()) / TRANSACTIONS_PER_SECOND

    def _on_failure(self, slot: PartitionSlot[Logic], error: BaseException) -> None:
        self.failures += 1
        if not isinstance(error, PartitionLostError):
            crashing = asyncio.ensure_future(self._crash(error))
            self._crashing.add(crashing)  # asyncio keeps only weak references to tasks
            crashing.add_done_callback(self._crashing.discard)
            return
        log.warning("partition lost, will be taken over again", partition=slot.partition, reason=error.reason)
        self.waits.ownership.begin(self._monotonic())
        if not self._is_assigning:  # the assignment looks after slots that failed meanwhile; it may give them away
            slot.begin_repair(self._repair)

    async def _repair(self, slot: PartitionSlot[Logic]) -> None:
        """Take one partition over again, as soon as the group has confirmed that it is assigned to this worker."""
        try:
            while True:
                rebalances = self._rebalances
                await self._drop([slot])
                await self.confirmed_since(self._monotonic())
                try:
                    await self._open([slot], rebalances)
                    if (writer := slot.writer) is not None:
                        await self._seek([writer])
                except PartitionLostError as error:
                    slot.count_failure(error, self.config.takeover_attempts)
                    await asyncio.sleep(RETRY_PAUSE_SECONDS)
                else:
                    if slot.state is SlotState.LIVE:  # it may have been lost while it was sought
                        break
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever stops a repair has to stop the process
            await self._crash(error)
        else:
            slot.repaired()
            self.note_owned()

    async def confirmed_since(self, moment: float) -> None:
        """Wait until the group has confirmed this worker by a request sent after a moment (monotonic seconds)."""
        while not self.lease.confirmed_after(moment):  # noqa: ASYNC110 - a repair is rare and may wait for seconds
            await asyncio.sleep(CONFIRM_POLL_SECONDS)

    async def close(self) -> None:
        """Commit what can be committed in time, then close all writers; nothing is opened afterwards."""
        self._is_closed = True
        await self.revoked()
        await self.flush()
        await self._close(self._slots.values())
