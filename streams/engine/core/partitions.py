"""All partition numbers that this worker owns, and what happens to them over rebalances and failures.

Faust's recovery calls :meth:`Partitions.assign` after each rebalance: writers of lost partitions are closed
(their state is dropped), kept ones go on, new ones are taken over. A kept writer goes on only if the worker
took part in every generation between; otherwise somebody else may have owned the partition meanwhile.

A writer that fails in between (fenced, transaction timed out) is closed, and its partition is taken over
again once the group has confirmed our membership *after* the failure: a worker that was thrown out gets no
such confirmation and so never fences the new owner. What can never succeed stops the process instead.
"""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import structlog

from evictstream.streams.engine.core.histogram import Histogram
from evictstream.streams.engine.core.lease import Lease
from evictstream.streams.engine.core.takeover import take_over
from evictstream.streams.engine.core.waits import WorkerWaits
from evictstream.streams.engine.core.writer import PartitionWriter
from evictstream.streams.errors import PartitionLostError, TakeoverFailedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from evictstream.streams.engine.core.batches import Batch
    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.logic import LogicFactory
    from evictstream.streams.engine.core.ports import Clock, Group, Kafka, Place

    Crash = Callable[[BaseException], Awaitable[None]]

log = structlog.get_logger(__name__)

FLUSH_TIMEOUT_SECONDS = 5.0  # a rebalance waits no longer for open transactions; what is open is read again
# Of all partitions of a worker together, while they are busy: at 1 to 2 ms of processor time each, a third of a core.
# A partition that was quiet longer than its share writes at once.
TRANSACTIONS_PER_SECOND = 200
RETRY_PAUSE_SECONDS = 0.5
# A transaction alone takes 5 ms; those beyond a second wait for a broker, until the minute after which they are lost.
TRANSACTION_BOUNDS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
CONFIRM_POLL_SECONDS = 0.1


class Partitions:
    """The writers by partition number. All methods run on the event loop's thread.

    Attributes:
        waits: how long each thing that this worker waits for has been awaited.
        numbers: what the group has assigned to us, taken over or not.
        transaction_seconds: how long committed transactions took.
        takeovers: partitions taken over since the start.
        failures: partitions lost since the start, but for those that the group took away.

    """

    def __init__(
        self,
        config: EngineConfig,
        *,
        new_logic: LogicFactory,
        kafka: Kafka,
        group: Group,
        clock: Clock,
        crash: Crash,
        on_step: Callable[[PartitionWriter], None] = lambda _: None,
    ) -> None:
        """`crash` ends the application; `on_step` is called after each step of a writer, and when one has room again.

        `crash` and `on_step` are called only once a partition is assigned, so they may be made after this.
        """
        self.config = config
        self.lease = Lease(
            clock.monotonic,
            session_timeout_seconds=config.session_timeout_seconds,
            margin_seconds=config.lease_margin_seconds,
        )
        self.waits = WorkerWaits()
        self.numbers: frozenset[int] = frozenset()
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
        self._writers: dict[int, PartitionWriter] = {}
        self._durable: dict[Place, int] = {}
        self._generation = -1
        self._is_closed = False
        self._is_assigning = False  # from a revocation to the end of the assignment that follows on it
        self._repairs: dict[int, asyncio.Task[None]] = {}
        self._failed_in_a_row: dict[int, int] = {}
        self._background: set[asyncio.Task[None]] = set()

    def live(self) -> Iterator[PartitionWriter]:
        """Writers that may step and write, in partition order."""
        return (writer for _, writer in sorted(self._writers.items()) if writer.live)

    def durable_positions(self) -> dict[Place, int]:
        """Positions of committed transactions, by topic and partition: what group offsets may say.

        Those of partitions that were lost and are not yet taken over again are in it too. The group confirms us by
        taking offsets, and a repair waits for that: with all partitions lost at once there would be none to take.
        """
        for writer in self.live():
            self._note_durable(writer)
        return {place: offset for place, offset in self._durable.items() if place[1] in self.numbers}

    def _note_durable(self, writer: PartitionWriter) -> None:
        self._durable.update(((topic, writer.partition), offset) for topic, offset in writer.durable.items())

    async def deliver(self, batch: Batch) -> None:
        """Give a batch to its writer; without a live one it is dropped and read again after take-over."""
        writer = self._writers.get(batch.partition)
        if writer is not None and writer.live:
            await writer.apply(batch)
        self.waits.taken(self._monotonic())

    async def flush(self) -> None:
        """Wait, bounded, until every live writer has committed what it stepped."""
        waiting = [asyncio.ensure_future(writer.flush()) for writer in self.live()]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=FLUSH_TIMEOUT_SECONDS)
            for task in late:
                task.cancel()

    async def revoked(self) -> None:
        """Hold back: a rebalance has begun, and no repair may fence anybody until the new assignment is known."""
        self._is_assigning = True
        self.lease.drop()
        self.waits.rebalancing(self._monotonic())
        repairs, self._repairs = self._repairs, {}
        for repair in repairs.values():
            repair.cancel()
        await asyncio.gather(*repairs.values(), return_exceptions=True)

    async def assign(self, numbers: set[int], generation: int) -> None:
        """Bring the writers in line with an assignment. Cancelled by the next rebalance at any point."""
        unbroken = generation in (self._generation, self._generation + 1)  # the same one again where a take-over failed
        self._is_assigning = True
        self._generation = generation
        self.numbers = frozenset(numbers)
        self._durable = {place: offset for place, offset in self._durable.items() if place[1] in numbers}
        kept = {n for n, writer in self._writers.items() if n in numbers and writer.live and unbroken}
        await self._drop(set(self._writers) - kept)
        await self._open(numbers - kept)
        self._is_assigning = False
        self._failed_in_a_row.clear()
        for number in [n for n, writer in self._writers.items() if not writer.live]:
            self._begin_repair(number)  # it failed while we assigned

    async def _open(self, numbers: set[int]) -> None:
        if not numbers:
            return
        takeovers = await take_over(
            numbers,
            config=self.config,
            new_logic=self._new_logic,
            kafka=self._kafka,
            clock=self._clock,
            on_progress=self._takeover_progress,
        )
        if self._is_closed:
            await asyncio.gather(*(takeover.producer.close() for takeover in takeovers))
            return
        for takeover in takeovers:
            writer = PartitionWriter(
                takeover.partition,
                config=self.config,
                clock=self._clock,
                logic=takeover.logic,
                producer=takeover.producer,
                positions=takeover.positions,
                last_commit=takeover.committed,
                on_failure=self._on_failure,
                on_step=self._on_step,
                spacing_seconds=self._spacing_seconds,
                transaction_seconds=self.transaction_seconds,
            )
            self._writers[takeover.partition] = writer
            # A repair needs them to be confirmed by the group, even if this writer fails before anybody asks for them.
            self._note_durable(writer)
            self.takeovers += 1
        for takeover in takeovers:
            await self._writers[takeover.partition].expect_ends(takeover.ends)

    async def _close(self, numbers: Iterable[int]) -> None:
        writers = [self._writers.pop(n) for n in numbers]
        # Shielded: a rebalance in mid-close must not leave a producer behind.
        await asyncio.shield(asyncio.gather(*(writer.close() for writer in writers)))

    async def _drop(self, numbers: set[int]) -> None:
        if numbers:
            await self._close(numbers)
            gc.collect()  # states have cycles, and the collector looks through everything at no other time

    async def seek_all(self) -> None:
        """Seek the inputs of all live writers to their positions and begin new epochs."""
        await self._seek_writers(list(self.live()))

    async def _seek_writers(self, writers: list[PartitionWriter]) -> None:
        positions = {(t, w.partition): offset for w in writers for t, offset in w.positions.items()}
        epochs = await self._group.seek(positions)
        for writer in writers:
            writer.begin_epochs({topic: epochs[topic, writer.partition] for topic in writer.positions})

    def note_owned(self) -> None:
        """Be told that an assignment or a repair is done: if all that is ours is taken over, nobody waits for that."""
        if self.numbers <= {writer.partition for writer in self.live()}:
            self.waits.owned(self._monotonic(), len(self.numbers))

    def _takeover_progress(self) -> None:
        self.waits.ownership.progress(self._monotonic())

    def _spacing_seconds(self) -> float:
        return len(self._writers) / TRANSACTIONS_PER_SECOND

    def _on_failure(self, writer: PartitionWriter, error: BaseException) -> None:
        number = writer.partition
        self.failures += 1
        if not isinstance(error, PartitionLostError):
            self._keep(asyncio.ensure_future(self._crash(error)))
            return
        log.warning("partition lost, will be taken over again", partition=number, reason=error.reason)
        self.waits.ownership.begin(self._monotonic())
        if not self._is_assigning:  # an assignment looks after those that failed meanwhile; it may take them away
            self._begin_repair(number)

    def _begin_repair(self, number: int) -> None:
        if number not in self._repairs:
            self._repairs[number] = asyncio.create_task(self._repair(number), name=f"repair-{number}")

    async def _repair(self, number: int) -> None:
        """Take one partition over again, as soon as the group has confirmed that it is ours."""
        try:
            while True:
                await self._drop({number} & set(self._writers))
                await self.confirmed_since(self._monotonic())
                try:
                    await self._open({number})
                    await self._seek_writers([self._writers[number]])
                except PartitionLostError as error:
                    self._count_failure(number, error)
                    await asyncio.sleep(RETRY_PAUSE_SECONDS)
                else:
                    if self._writers[number].live:  # it may have been lost while it was sought
                        break
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever stops a repair has to stop the process
            await self._crash(error)
        else:
            self._repairs.pop(number, None)
            self._failed_in_a_row.pop(number, None)
            self.note_owned()

    def _count_failure(self, number: int, error: PartitionLostError) -> None:
        self._failed_in_a_row[number] = self._failed_in_a_row.get(number, 0) + 1
        if self._failed_in_a_row[number] >= self.config.takeover_attempts:
            raise TakeoverFailedError(partition=number, attempts=self._failed_in_a_row[number]) from error

    async def confirmed_since(self, moment: float) -> None:
        """Wait until the group has confirmed us by a request sent after a moment (monotonic seconds)."""
        while not self.lease.confirmed_after(moment):  # noqa: ASYNC110 - a second-scale wait in a rare repair
            await asyncio.sleep(CONFIRM_POLL_SECONDS)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """Commit what can be committed in time, then let everything go, for good."""
        self._is_closed = True
        await self.revoked()
        await self.flush()
        await self._close(list(self._writers))
