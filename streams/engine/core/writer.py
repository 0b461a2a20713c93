"""The partition writer. Only it changes the state of its partition number, and only it writes that state to Kafka.

Input: batches of the partition's input topics (`PartitionWriter.apply`) and turns of the timer service
(`PartitionWriter.fire`). Both step the logic synchronously: state, positions and outbox change together, with no
`await` in between. Output: transactions, which its `Committer` makes of the outbox.

Other tasks run between two parts of what the logic does (`Part`), as soon as the loop was held for 2 ms. Where the step
is not whole, no other input is stepped meanwhile; timers fire, and transactions begin.

A writer that has failed is never used again: its state may be ahead of the log. It calls `on_failure` once and ignores
everything after. Nothing is repaired in place.
"""

from __future__ import annotations

import asyncio
import bisect
import enum
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic

from evictstream.streams.engine.core.logic import SLICE_COST, Logic
from evictstream.streams.errors import PartitionLostError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evictstream.streams.engine.core.batches import Batch
    from evictstream.streams.engine.core.committer import Committer
    from evictstream.streams.engine.core.logic import Part
    from evictstream.streams.engine.core.ports import Clock, Committed

SLICE_SECONDS = 0.002  # longest time without letting other tasks run; of n busy partitions each waits for n - 1 of them

_OFFSET = operator.attrgetter("offset")


class WriterState(enum.Enum):
    """Where a writer is in its life. It begins live; failed and closed are final."""

    LIVE = "live"
    FAILED = "failed"
    CLOSED = "closed"


class PartitionWriter(Generic[Logic]):
    """Steps the logic of one partition number.

    Its mutable state is how far the inputs are applied, after which seek they are read, and whether a step is in its
    middle. That of the logic changes with it.

    Attributes:
        partition: which partition number.
        logic: has loaded all rows.
        committer: commits what the logic writes.
        state: whether it steps and writes.
        positions: next offset to apply, by input topic; in step with the state in memory.
        appended_ms: append time (ms) of the newest applied record, by input topic; a topic without one is missing.
        caught_up: whether the inputs have been read to the end that they had at takeover.
        ends_asked_at: before the brokers were asked for these ends, monotonic seconds.
    """

    def __init__(
        self,
        partition: int,
        *,
        logic: Logic,
        committer: Committer,
        clock: Clock,
        on_failure: Callable[[PartitionWriter[Logic], BaseException], None],
        on_step: Callable[[PartitionWriter[Logic]], None],
    ) -> None:
        """Start to commit.

        Args:
            partition: which partition number.
            logic: has loaded all rows.
            committer: has the positions after these rows, and is not started.
            clock: the worker's.
            on_failure: called at most once.
            on_step: called after each step that has something to write, and when a full outbox has room again, so that
                due timers can fire; not after `fire`.
        """
        self.partition = partition
        self.logic = logic
        self.committer = committer
        self._monotonic = clock.monotonic
        self._now_us = clock.now_us
        self._on_failure = on_failure
        self._on_step = on_step

        self.positions = committer.positions
        self.appended_ms: dict[str, int] = {}
        self.caught_up = False
        self.ends_asked_at = float("-inf")
        self._ends: Mapping[str, int] = {}
        self._epochs: dict[str, int] = dict.fromkeys(self.positions, -1)

        self.state = WriterState.LIVE
        self._is_whole = asyncio.Event()  # no step has let other tasks run before its last part
        self._is_whole.set()
        committer.start(f"writer-{partition}", on_room=lambda: on_step(self), on_failure=self.fail)

    @property
    def live(self) -> bool:
        """Whether this writer may step and write."""
        return self.state is WriterState.LIVE

    @property
    def has_room(self) -> bool:
        """Whether the outbox has room for more."""
        return self.committer.has_room

    @property
    def last_commit(self) -> Committed | None:
        """The newest committed transaction, as the broker confirmed it."""
        return self.committer.last_commit

    async def expect_ends(self, ends: Mapping[str, int], asked_at: float) -> None:
        """Count as caught up once positions have reached these ends, which the inputs had after `asked_at`."""
        self._ends, self.ends_asked_at = dict(ends), asked_at
        await self._check_caught_up()

    def begin_epochs(self, epochs: Mapping[str, int]) -> None:
        """From now on ignore batches read before these seeks; `epochs` has the seek epoch of each input topic."""
        self._epochs.update(epochs)

    async def apply(self, batch: Batch) -> None:
        """Apply a batch, and wait while the outbox is full. Returns early when the writer fails."""
        topic = batch.topic
        if batch.epoch != self._epochs.get(topic):
            return
        if batch.start > self.positions[topic]:
            self.fail(PartitionLostError(partition=self.partition, reason=f"a batch of {topic} went missing"))
            return
        await self._step_is_whole()
        if self._is_wanted(batch):
            position = self.positions[topic]
            if batch.records and batch.records[0].offset < position:
                batch = batch._replace(records=[record for record in batch.records if record.offset >= position])
            if await self._run(self.logic.apply(topic, batch.records, self.committer.outbox), batch):
                self._applied(batch, max(batch.position, position))
                self._stepped()
        await self._check_caught_up()  # even after a new seek cut this batch short: perhaps no further batch comes

    async def _check_caught_up(self) -> None:
        if self.caught_up or not self._is_whole.is_set() or not self._ends or not self.live:
            return
        if any(self.positions[topic] < end for topic, end in self._ends.items()):
            return
        if await self._run(self.logic.caught_up(self._now_us(), self.committer.outbox)):
            self.caught_up = True
            self._stepped()

    def fire(self, now_us: int, limit: int) -> int:
        """Let due timers fire; returns the cost of those handled."""
        try:
            handled = self.logic.fire(now_us, limit, self.committer.outbox)
        except Exception as error:  # noqa: BLE001 - as in _run
            self.fail(error)
            return 0
        self.committer.wake()
        return handled

    async def _run(self, parts: Iterable[Part], batch: Batch | None = None) -> bool:
        """Run steps, with pauses between their parts; returns whether all of them were run.

        They are cut short when the writer fails and, between two steps, after a new seek of the batch's input.
        """
        cost, resumed_at = 0, self._monotonic()
        try:
            for part in parts:
                cost += part.cost
                if cost < SLICE_COST and self._is_whole.is_set():
                    continue
                cost = 0
                if batch is not None:
                    self._applied(batch, part.position)
                pause = self._pause_between_steps if part.is_last else self._pause_within_step
                if await pause(resumed_at):
                    resumed_at = self._monotonic()
                if not self.live or (part.is_last and batch is not None and not self._is_wanted(batch)):
                    return False
        except Exception as error:  # noqa: BLE001 - a bug in the logic must not move the position past the record
            self.fail(error)
        self._is_whole.set()
        return self.live

    async def _pause_within_step(self, resumed_at: float) -> bool:
        """Let other tasks run if it is time; returns whether they did.

        A cancelled step has changed only part of the state, so the writer must not go on with it.
        """
        if self._monotonic() - resumed_at <= SLICE_SECONDS:
            return False
        self._is_whole.clear()
        self._stepped()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.fail(PartitionLostError(partition=self.partition, reason="a step was cut off"))
            raise
        return True

    async def _pause_between_steps(self, resumed_at: float) -> bool:
        """Let other tasks run if it is time, or others wait for the end of this step; returns whether they did.

        They may apply another input; then its step is whole too.
        """
        have_waited = not self._is_whole.is_set()
        self._is_whole.set()
        self._stepped()
        if not self.has_room:
            await self.committer.room()
        elif have_waited or self._monotonic() - resumed_at > SLICE_SECONDS:
            await asyncio.sleep(0)
        else:
            return False
        await self._step_is_whole()
        return True

    async def _step_is_whole(self) -> None:
        """Wait until no other step is in its middle."""
        while not self._is_whole.is_set():
            await self._is_whole.wait()

    def _is_wanted(self, batch: Batch) -> bool:
        return self.live and batch.epoch == self._epochs[batch.topic]

    def _applied(self, batch: Batch, position: int) -> None:
        self.positions[batch.topic] = position
        place = bisect.bisect_left(batch.records, position, key=_OFFSET)
        if place:
            self.appended_ms[batch.topic] = batch.records[place - 1].timestamp

    def _stepped(self) -> None:
        """Wake the task that commits, and let due timers fire."""
        self.committer.wake()
        if self.committer.outbox:
            self._on_step(self)

    def fail(self, error: BaseException) -> None:
        """Drop what is unwritten, let tasks go on that wait, and call `on_failure`; only the first call counts."""
        if self.live:
            self._end(WriterState.FAILED)
            self._on_failure(self, error)

    async def close(self) -> None:
        """Stop writing and disconnect. What is unwritten is dropped; the partition's next owner reads it again."""
        if self.live:
            self._end(WriterState.CLOSED)
        await self.committer.close()

    def _end(self, state: WriterState) -> None:
        self.state = state
        self._is_whole.set()
        self.committer.stop()
