"""The partition writer. Only it changes the state of its partition number, and only it writes that state to Kafka.

Input: batches of the partition's input topics (`PartitionWriter.apply`) and turns of the timer service
(`PartitionWriter.fire`). Both step the logic synchronously: state, positions and outbox change together, with no
`await` in between. Output: one transaction after another, each with everything that the outbox held when it began.
While one is on its way the next outbox fills, so a busy partition writes few large transactions and a quiet one writes
at once. Changed rows wait up to 100 ms for others; positions alone are written every few seconds. A message starts a
transaction when the previous one has committed and the spacing is over. The spacing limits a worker to 200 transactions
a second: with 4 partitions, one begins at least 20 ms after the one before.

A writer that has failed is never used again: its state may be ahead of the log. It calls `on_failure` once and ignores
everything after. Nothing is repaired in place.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic

from evictstream.streams.engine.core.engine_rows import POSITIONS_KEY, encode_positions
from evictstream.streams.engine.core.logic import Logic
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.waits import Wait, set_within
from evictstream.streams.errors import PartitionLostError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evictstream.streams.engine.core.batches import Batch, Record
    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.histogram import Histogram
    from evictstream.streams.engine.core.ports import Clock, Committed, Producer

SLICE_RECORDS = 25  # most records applied without a pause, 0.25 ms of unchanged pods; shrinks when records take longer
SLICE_SECONDS = 0.002  # longest time without letting other tasks run; of n busy partitions each waits for n - 1 of them
# An outbox of this many bytes is full, however few entries it has. About 4,000 usual entries.
FULL_BYTES = 4 * 1024 * 1024
# Brokers forget a transactional id that was not used for a week (`transactional.id.expiration.ms`): the next
# transaction would fail, and the partition be taken over again. Also, only a transaction shows how far the clocks of
# worker and brokers differ; at a drift of 50 ppm that is 0.03 s in ten minutes.
QUIET_LIMIT_SECONDS = 600.0


class WriterState(enum.Enum):
    """Where a writer is in its life. It begins live; failed and closed are final."""

    LIVE = "live"
    FAILED = "failed"
    CLOSED = "closed"


class PartitionWriter(Generic[Logic]):
    """Owns the state, the positions and the open transaction of one partition number.

    Attributes:
        positions: next offset to apply, by input topic; in step with the state in memory.
        durable: the positions of the last committed transaction.
        caught_up: whether the inputs have been read to the end that they had at take-over.
        last_commit: the newest committed transaction, as the broker confirmed it.
        appended_ms: append time (ms) of the newest applied record, by input topic; a topic without one is missing.
    """

    def __init__(
        self,
        partition: int,
        *,
        config: EngineConfig,
        clock: Clock,
        logic: Logic,
        producer: Producer,
        positions: Mapping[str, int],
        last_commit: Committed | None = None,
        on_failure: Callable[[PartitionWriter[Logic], BaseException], None],
        on_step: Callable[[PartitionWriter[Logic]], None],
        spacing_seconds: Callable[[], float],
        transaction_seconds: Histogram,
    ) -> None:
        """Start the task that commits.

        Args:
            partition: which partition number.
            config: limits and times.
            clock: the worker's.
            logic: has loaded all rows.
            producer: has fenced the previous owner.
            positions: next offset to apply, by input topic.
            last_commit: what is known of the take-over's transaction.
            on_failure: called at most once.
            on_step: called after each step that has something to write, and when a full outbox has room again, so that
                due timers can fire; not after `fire`.
            spacing_seconds: tells how long after the beginning of a transaction the next one may begin.
            transaction_seconds: gets the duration of each committed transaction.
        """
        self.partition = partition
        self.logic = logic
        self.positions = dict(positions)
        self.durable = dict(positions)
        self.caught_up = False
        self.state = WriterState.LIVE
        self.last_commit = last_commit
        self.transactions = 0
        self._monotonic = clock.monotonic
        self._now_us = clock.now_us
        self._written_at = clock.monotonic()
        self._epochs: dict[str, int] = dict.fromkeys(positions, -1)
        self._config = config
        self._producer = producer
        self.appended_ms: dict[str, int] = {}
        self._unwritten = Wait()
        self._committing = Wait()
        self._on_failure = on_failure
        self._on_step = on_step
        self._spacing_seconds = spacing_seconds
        self._transaction_seconds = transaction_seconds
        self._ends: dict[str, int] = {}
        self._outbox = Outbox()
        self._is_stepping = False  # a step lets other tasks run and is not at its end: no other step may begin
        self._yielded_at = 0.0
        self._in_flight = False
        self._dirty = asyncio.Event()
        self._urgent = asyncio.Event()
        self._full = asyncio.Event()
        self._changed = asyncio.Condition()
        self._task = asyncio.create_task(self._run(), name=f"writer-{partition}")

    @property
    def live(self) -> bool:
        """Whether this writer may step and write."""
        return self.state is WriterState.LIVE

    @property
    def has_room(self) -> bool:
        """Whether the outbox has room. What the running transaction holds does not count."""
        outbox = self._outbox
        return outbox.entries < self._config.max_rows_per_transaction and outbox.size_bytes < FULL_BYTES

    @property
    def settled(self) -> bool:
        """Whether everything applied so far is committed."""
        return not self._outbox and not self._in_flight and self.durable == self.positions

    def uncommitted_seconds(self, now: float) -> float:
        """How long the oldest uncommitted change has been waiting."""
        return max(self._committing.age_seconds(now), self._unwritten.age_seconds(now))

    def unacknowledged_seconds(self, now: float) -> float:
        """How long records that were sent have waited to be acknowledged."""
        return self._producer.unacknowledged_seconds(now)

    async def expect_ends(self, ends: Mapping[str, int]) -> None:
        """Count as caught up once positions have reached these ends, which the inputs had at take-over."""
        self._ends = dict(ends)
        await self._check_caught_up()

    def begin_epochs(self, epochs: Mapping[str, int]) -> None:
        """From now on ignore batches read before these seeks; `epochs` has the seek epoch of each input topic."""
        self._epochs.update(epochs)

    async def apply(self, batch: Batch) -> None:
        """Apply a batch, and wait while the outbox is full. Returns early when the writer fails."""
        if batch.epoch != self._epochs.get(batch.topic):
            return
        if batch.start > self.positions[batch.topic]:
            self.fail(PartitionLostError(partition=self.partition, reason=f"a batch of {batch.topic} went missing"))
            return
        records = batch.records
        start, size = 0, 1
        began_at = self._yielded_at = self._monotonic()
        while start < len(records):
            if self._is_stepping:
                await self._wait_for(lambda: not self._is_stepping)
                began_at = self._yielded_at = self._monotonic()
            if not self.live or batch.epoch != self._epochs[batch.topic]:
                break
            part = records[start : start + size]
            start += size
            await self._step(batch.topic, part, part[-1].offset + 1)
            now = self._monotonic()
            # The slice adapts: one record may be a pod without a change, or a node that a hundred pods have to leave.
            size = min(size * 2, SLICE_RECORDS) if (now - began_at) * 4 < SLICE_SECONDS else max(size // 2, 1)
            began_at = now
            if not self.has_room:
                await self._wait_for(lambda: self.has_room)
            elif now - self._yielded_at > SLICE_SECONDS:
                await asyncio.sleep(0)
            else:
                continue
            began_at = self._yielded_at = self._monotonic()
        if self.live and batch.epoch == self._epochs[batch.topic]:
            self.positions[batch.topic] = max(batch.position, self.positions[batch.topic])
        await self._check_caught_up()  # even after a new seek cut this batch short: perhaps no further batch comes

    async def _step(self, topic: str, records: Sequence[Record], position: int) -> None:
        known = self.positions[topic]
        if records[0].offset < known:
            records = [record for record in records if record.offset >= known]
        try:
            for offset in self.logic.apply(topic, records, self._outbox):
                self.positions[topic] = max(offset, known)
                if not await self._yield_within_step():
                    return
        except Exception as error:  # noqa: BLE001 - a bug in the logic must not move the position past the record
            self.fail(error)
            return
        finally:
            await self._end_step()
        self.positions[topic] = max(position, known)
        if records:
            self.appended_ms[topic] = records[-1].timestamp
        self._after_step()

    async def _yield_within_step(self) -> bool:
        """Let other tasks run if it is time; returns whether the step goes on.

        A cancelled step has changed only part of the state, so the writer must not go on with it.
        """
        if self._monotonic() - self._yielded_at > SLICE_SECONDS:
            self._is_stepping = True
            self._after_step()
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                self.fail(PartitionLostError(partition=self.partition, reason="a step was cut off"))
                raise
            self._yielded_at = self._monotonic()
        return self.live

    async def _end_step(self) -> None:
        if self._is_stepping:
            self._is_stepping = False
            await self._notify()

    def fire(self, now_us: int, limit: int) -> int:
        """Let due timers fire; returns the cost of those handled."""
        try:
            handled = self.logic.fire(now_us, limit, self._outbox)
        except Exception as error:  # noqa: BLE001 - as in _step
            self.fail(error)
            return 0
        self._wake_commits()
        return handled

    async def _check_caught_up(self) -> None:
        if self.caught_up or self._is_stepping or not self._ends or not self.live:
            return
        if any(self.positions[topic] < end for topic, end in self._ends.items()):
            return
        self._yielded_at = self._monotonic()
        try:
            for _ in self.logic.caught_up(self._now_us(), self._outbox):
                if not await self._yield_within_step():
                    return
        except Exception as error:  # noqa: BLE001 - as in _step
            self.fail(error)
            return
        finally:
            await self._end_step()
        self.caught_up = True
        self._after_step()

    def checkpoint(self) -> None:
        """Commit changed positions soon, even if there is nothing else to write."""
        if self.live and not self.settled:
            self._unwritten.begin(self._monotonic())
            self._dirty.set()
            self._urgent.set()

    def probe(self) -> None:
        """Commit soon even if nothing has changed, to learn the brokers' time."""
        if self.live and not self._in_flight:
            self._dirty.set()
            self._urgent.set()

    def keep_alive(self) -> None:
        """Write changed positions, and after a long quiet unchanged ones too. Call it every few seconds."""
        self.checkpoint()
        if self._monotonic() - self._written_at > QUIET_LIMIT_SECONDS:
            self.probe()

    async def flush(self) -> None:
        """Wait until everything applied so far is committed, or the writer has failed."""
        self.checkpoint()
        await self._wait_for(lambda: self.settled)

    def _after_step(self) -> None:
        """Wake the task that commits, and let due timers fire."""
        self._wake_commits()
        if self._outbox:
            self._on_step(self)

    def _wake_commits(self) -> None:
        outbox = self._outbox
        if outbox:
            if self._unwritten.since is None:
                self._unwritten.begin(self._monotonic())
            self._dirty.set()
            if not self.has_room:
                self._full.set()
                self._urgent.set()
            elif outbox.messages:
                self._urgent.set()

    async def _wait_for(self, condition: Callable[[], bool]) -> None:
        if condition() or not self.live:
            return
        async with self._changed:
            await self._changed.wait_for(lambda: condition() or not self.live)

    async def _run(self) -> None:
        try:
            while await self._something_to_write():
                began_at = self._monotonic()
                await self._commit()
                # Collect until the spacing is over: many small transactions cost more time than they save.
                await self._wait_until_full(began_at + self._spacing_seconds() - self._monotonic())
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it was, this state must not be used again
            self.fail(error)

    async def _something_to_write(self) -> bool:
        """Wait until the outbox has something, then up to the linger time for more.

        Returns False if the writer has failed: its outbox is gone, so committing the positions would skip records.
        """
        await self._dirty.wait()
        if not self._urgent.is_set():
            await set_within(self._config.linger_seconds, self._urgent)
        return self.live

    async def _wait_until_full(self, seconds: float) -> None:
        if seconds > 0 and not self._full.is_set():
            await set_within(seconds, self._full)

    async def _commit(self) -> None:
        was_full = not self.has_room
        outbox = self._outbox.take()
        positions = dict(self.positions)
        began_at = self._monotonic()
        self._committing.begin(began_at if self._unwritten.since is None else self._unwritten.since)
        self._unwritten.end()
        self._in_flight = True
        self._dirty.clear()
        self._urgent.clear()
        self._full.clear()
        if was_full:
            self._on_step(self)  # due timers have waited for room
        await self._notify()
        self.last_commit = await self._producer.commit(outbox, {POSITIONS_KEY: encode_positions(positions)})
        self._written_at = self.last_commit.acked_at
        self.transactions += 1
        self._transaction_seconds.observe(self._monotonic() - began_at)
        self._committing.end()
        self._in_flight = False
        self.durable = positions
        await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        """Drop what is unwritten, wake tasks that wait, and call `on_failure`; only the first call counts."""
        if not self.live:
            return
        self.state = WriterState.FAILED
        self._outbox.take()
        self._wake = asyncio.ensure_future(self._notify())
        self._on_failure(self, error)

    async def close(self) -> None:
        """Stop writing and disconnect. What is unwritten is dropped; the partition's next owner reads it again."""
        if self.live:
            self.state = WriterState.CLOSED
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._notify()
        await self._producer.close()
