"""The committing half of a partition's writer: one Kafka transaction after another.

Each has everything that the outbox held when it began, and the positions of that moment. While one is on its way the
outbox fills again, so a busy partition writes few large transactions and a quiet one writes at once. Changed rows, and
messages that only people read, wait up to 100 ms for others, and in a steady flow until 500 ms after the transaction
before; positions alone are written every few seconds. An urgent message starts a transaction when the previous one has
committed and the spacing is over. The spacing limits a worker to 200 transactions a second: with 4 partitions, one
begins at least 20 ms after the one before.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from evictstream.streams.engine.core.engine_rows import POSITIONS_KEY, encode_positions
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.waits import Wait, set_within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.histogram import Histogram
    from evictstream.streams.engine.core.ports import Clock, Committed, Producer

# An outbox of this many bytes is full, however few entries it has. About 4,000 usual entries.
FULL_BYTES = 4 * 1024 * 1024
# Brokers forget a transactional id that was not used for a week (`transactional.id.expiration.ms`): the next
# transaction would fail, and the partition be taken over again. Also, only a transaction shows how far the clocks of
# worker and brokers differ; at a drift of 50 ppm that is 0.03 s in ten minutes.
QUIET_LIMIT_SECONDS = 600.0
# In a steady flow without urgent messages, transactions begin so many linger times apart. In a storm the deletions of
# pods would fill ten transactions a second, each as dear to worker and Kafka as an eviction.
STEADY_LINGERS = 5


class Committer:
    """Commits what the writer of one partition puts into the outbox.

    Its mutable state is the outbox and the positions, which the writer moves on together; the transaction on its way,
    if there is one; and what the newest committed one has shown. Events wake its task.

    Attributes:
        outbox: gets what the next transaction writes.
        positions: next offset to apply, by input topic; in step with the state in memory.
        durable: the positions of the last committed transaction.
        last_commit: the newest committed transaction, as the broker confirmed it.
        transactions: how many this writer has committed.
    """

    def __init__(
        self,
        *,
        config: EngineConfig,
        clock: Clock,
        producer: Producer,
        positions: Mapping[str, int],
        last_commit: Committed | None = None,
        spacing_seconds: Callable[[], float],
        transaction_seconds: Histogram,
    ) -> None:
        """Commit nothing before `start`.

        Args:
            config: limits and times.
            clock: the worker's.
            producer: has fenced the previous owner.
            positions: next offset to apply, by input topic, as the takeover has written them.
            last_commit: what is known of the takeover's transaction.
            spacing_seconds: tells how long after the beginning of a transaction the next one may begin.
            transaction_seconds: gets the duration of each committed transaction.
        """
        self._config = config
        self._monotonic = clock.monotonic
        self._producer = producer
        self._spacing_seconds = spacing_seconds
        self._transaction_seconds = transaction_seconds
        self._on_room: Callable[[], None] = lambda: None
        self._on_failure: Callable[[BaseException], None] = lambda _: None

        self.outbox = Outbox()
        self.positions = dict(positions)
        self._unwritten = Wait()
        self._committing = Wait()  # for the transaction on its way

        self.durable: Mapping[str, int] = dict(positions)
        self.last_commit = last_commit
        self.transactions = 0
        self._written_at = clock.monotonic()
        self._began_at = float("-inf")

        self._dirty = asyncio.Event()
        self._urgent = asyncio.Event()
        self._full = asyncio.Event()
        self._changed = asyncio.Event()  # since somebody has waited for room, or to be settled
        self._is_stopped = False

    def start(self, name: str, on_room: Callable[[], None], on_failure: Callable[[BaseException], None]) -> None:
        """Start the task that commits.

        Args:
            name: of the task.
            on_room: called when a full outbox has room again.
            on_failure: called when a transaction has failed; has to call `stop`.
        """
        self._on_room, self._on_failure = on_room, on_failure
        self._task = asyncio.create_task(self._run(), name=name)

    @property
    def has_room(self) -> bool:
        """Whether the outbox has room. What the running transaction holds does not count."""
        outbox = self.outbox
        return outbox.entries < self._config.max_rows_per_transaction and outbox.size_bytes < FULL_BYTES

    @property
    def is_settled(self) -> bool:
        """Whether everything applied so far is committed."""
        return not self.outbox and self._committing.since is None and self.durable == self.positions

    def uncommitted_seconds(self, now: float) -> float:
        """How long the oldest uncommitted change has been waiting."""
        return max(self._committing.age_seconds(now), self._unwritten.age_seconds(now))

    def unacknowledged_seconds(self, now: float) -> float:
        """How long records that were sent have waited to be acknowledged."""
        return self._producer.unacknowledged_seconds(now)

    def wake(self) -> None:
        """Commit soon if the outbox has something: at once if some of it is urgent, or it is full."""
        outbox = self.outbox
        if outbox:
            if self._unwritten.since is None:
                self._unwritten.begin(self._monotonic())
            self._dirty.set()
            if not self.has_room:
                self._full.set()
                self._urgent.set()
            elif outbox.is_urgent:
                self._urgent.set()

    def checkpoint(self) -> None:
        """Commit changed positions soon, even if there is nothing else to write."""
        if not self._is_stopped and not self.is_settled:
            self._unwritten.begin(self._monotonic())
            self._dirty.set()
            self._urgent.set()

    def probe(self) -> None:
        """Commit soon even if nothing has changed, to learn the brokers' time."""
        if not self._is_stopped and self._committing.since is None:
            self._dirty.set()
            self._urgent.set()

    def keep_alive(self) -> None:
        """Write changed positions, and after a long quiet unchanged ones too. Call it every few seconds."""
        self.checkpoint()
        if self._monotonic() - self._written_at > QUIET_LIMIT_SECONDS:
            self.probe()

    async def room(self) -> None:
        """Wait until the outbox has room, or nothing is committed any more."""
        await self._wait_for(lambda: self.has_room)

    async def flush(self) -> None:
        """Wait until everything applied so far is committed, or nothing is any more."""
        self.checkpoint()
        await self._wait_for(lambda: self.is_settled)

    async def _wait_for(self, condition: Callable[[], bool]) -> None:
        while not (condition() or self._is_stopped):
            self._changed.clear()
            await self._changed.wait()

    async def _run(self) -> None:
        try:
            while await self._something_to_write():
                self._began_at = self._monotonic()
                await self._commit()
                # Collect until the spacing is over: many small transactions cost more time than they save.
                await self._wait_until_full(self._began_at + self._spacing_seconds() - self._monotonic())
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it was, this state must not be used again
            self._on_failure(error)

    async def _something_to_write(self) -> bool:
        """Wait until the outbox has something, then for more: for the linger time, or longer in a steady flow.

        Returns False once stopped: the outbox is gone, so committing the positions would skip records.
        """
        await self._dirty.wait()
        if not self._urgent.is_set():
            linger = self._config.linger_seconds
            steady = self._began_at + STEADY_LINGERS * linger - self._monotonic()
            await set_within(max(linger, steady), self._urgent)
        return not self._is_stopped

    async def _wait_until_full(self, seconds: float) -> None:
        if seconds > 0 and not self._full.is_set():
            await set_within(seconds, self._full)

    async def _commit(self) -> None:
        was_full = not self.has_room
        outbox = self.outbox.take()
        positions = dict(self.positions)
        began_at = self._monotonic()
        self._committing.begin(began_at if self._unwritten.since is None else self._unwritten.since)
        self._unwritten.end()
        self._dirty.clear()
        self._urgent.clear()
        self._full.clear()
        if was_full:
            self._on_room()
        self._changed.set()
        self.last_commit = await self._producer.commit(outbox, {POSITIONS_KEY: encode_positions(positions)})
        self._written_at = self.last_commit.acked_at
        self.transactions += 1
        self._transaction_seconds.observe(self._monotonic() - began_at)
        self._committing.end()
        self.durable = positions
        self._changed.set()

    def stop(self) -> None:
        """Drop what is unwritten, begin no transaction any more, and let tasks go on that wait."""
        self._is_stopped = True
        self.outbox.take()
        self._changed.set()

    async def close(self) -> None:
        """Stop, cut the transaction off that is on its way, and disconnect."""
        self.stop()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        await self._producer.close()
