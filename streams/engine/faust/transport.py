"""Faust's transport, changed to pass whole batches, seek to the writers' positions, and write nothing.

Faust's own transport takes a fetched batch apart, creates several tasks for each record, acks each, and commits what
was acked whether or not its effects were written. Here, by subclass:

- the consumer's thread hands over whole batches with their position and seek epoch;
- the drain loop delivers one Faust message for each batch, through Faust's channels, flow control and agents;
- the committed group offsets are the positions of committed transactions, never acks;
- seeks go to the writers' positions, never to group offsets;
- the producer sends nothing: only partition writers write.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any, cast

from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from evictstream.streams.engine.core.ports import KafkaClientError
from evictstream.streams.engine.faust.host import host_of
from evictstream.streams.engine.kafka.group_member import POSITION_ERRORS, UNREADABLE_ERRORS, GroupMember
from evictstream.streams.errors import (
    EvictstreamError,
    InputTruncatedError,
    InputUnreadableError,
    InstanceReplacedError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evictstream.streams.engine.core.batches import Batch
    from evictstream.streams.engine.core.ports import Place

_LOG = logging.getLogger(
    "faust.engine"
)  # for what Faust logs through these classes: its level is that of Faust's own loggers

# How long an idle poll waits; a position without records, and a new partition to poll, are seen that late.
_POLL_SECONDS = 0.2
COMMIT_TIMEOUT_SECONDS = 5.0
END_OFFSETS_TIMEOUT_SECONDS = 5.0


class EngineConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread of aiokafka's group member: it joins, sends heartbeats and fetches beside the worker's event loop."""

    logger = _LOG

    def __post_init__(self) -> None:
        """Set what `__init__` would set; Faust calls this at its end."""
        super().__post_init__()
        self._is_joining = False  # from the end of a revocation to the assignment
        self._commit_limit: asyncio.Timeout | None = None
        self._close_thread_loop_on_stop = True  # mode closes by itself only a loop that it has made

    def _create_worker_consumer(self, transport: driver.Transport) -> GroupMember:
        del transport  # its URL is our configuration's
        self._assignor = self.app.assignor
        member = host_of(self.app).clients.group_member(self._assignor)
        member.on_replaced = self._replaced
        member.on_failed = self._failed
        return member

    def _replaced(self) -> None:
        """End the worker: another one has joined under its instance id, and has its partitions."""
        self._failed(
            InstanceReplacedError(given=f"EVICTSTREAM_GROUP_INSTANCE_ID={host_of(self.app).config.instance_id}")
        )

    def _failed(self, error: EvictstreamError) -> None:
        asyncio.run_coroutine_threadsafe(self.app.crash(error), self.parent_loop)

    @property
    def _member(self) -> GroupMember:
        return cast("GroupMember", self._ensure_consumer())

    def leave_group(self) -> None:
        """Begin to leave the group at once, from any thread: it does not need the event loop of the worker."""
        member = cast("GroupMember | None", self._consumer)
        if member is not None:
            with contextlib.suppress(RuntimeError):  # this thread has ended, and so has left the group
                self.thread_loop.call_soon_threadsafe(member.begin_to_leave)

    async def seek_inputs(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """Seek in the consumer's thread; returns the new epoch of each partition.

        Raises:
            PartitionLostError: a partition is no longer assigned; the event loop does not know of the rebalance yet.
        """
        return cast("dict[Place, int]", await self.call_thread(self._seek_inputs, positions))

    async def _seek_inputs(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        return await self._member.seek_to(positions)

    async def _fetch_records(  # type: ignore[override]  # batches where Faust has lists; only our drain loop sees them
        self,
        consumer: GroupMember,
        active_partitions: set[TP],
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is Faust's
        max_records: int | None = None,
    ) -> dict[TP, Batch]:
        # Faust changes this set from the other thread while we wait; what was asked for is what must be delivered.
        wanted = set(active_partitions)
        waiting = host_of(self.app).partitions.waits.fetch
        if not (wanted and self.consumer.flow_active):
            waiting.end()  # nothing is asked for
            return {}
        waiting.begin(time.monotonic())
        try:
            fetched = await super()._fetch_records(consumer, wanted, timeout, max_records)
        except POSITION_ERRORS as error:
            consumer.check_position(error)
            return {}
        except UNREADABLE_ERRORS as error:  # this consumer may have passed over records: it reads no further
            raise InputUnreadableError(reason=str(error)) from error
        batches, has_answered = consumer.batches(wanted, fetched)
        if has_answered:
            waiting.end()
        return batches

    async def end_offsets(self, places: Sequence[Place]) -> dict[Place, int]:
        """Ask the brokers where partitions end. Raises `KafkaClientError` or `TimeoutError` without an answer."""
        return cast("dict[Place, int]", await self.call_thread(self._end_offsets, places))

    async def _end_offsets(self, places: Sequence[Place]) -> dict[Place, int]:
        # Timed in this thread: a time-out of the caller would leave the thread busy, and it has commits to carry out.
        async with asyncio.timeout(END_OFFSETS_TIMEOUT_SECONDS):
            return await self._member.ends(places)

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit group offsets; `False` when the group does not take this worker for the owner (any more)."""
        assigned = self.assignment()
        wanted = {(tp.topic, tp.partition): offset for tp, offset in offsets.items() if tp in assigned}
        if not wanted or self._is_joining:
            return False
        try:
            async with asyncio.timeout(COMMIT_TIMEOUT_SECONDS) as self._commit_limit:
                await self._member.commit_positions(wanted)
        except (KafkaClientError, TimeoutError) as error:
            self.log.info("group offsets not committed: %s", str(error) or repr(error))
            return False
        return True

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Let the partitions hold back, and commit nothing from then on until the group has assigned.

        A broker answers the requests of a connection one after another. It would handle a commit behind a JoinGroup in
        the next generation and refuse it; aiokafka then joins once more, and all members wait for another rebalance.
        """
        await super().on_partitions_revoked(revoked)
        self._is_joining = True
        if self._commit_limit is not None:
            with contextlib.suppress(RuntimeError):  # it is over
                self._commit_limit.reschedule(0)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Start the takeover, and commit again."""
        self._is_joining = False
        self._member.assigned((tp.topic, tp.partition) for tp in assigned)
        await super().on_partitions_assigned(assigned, generation_id)

    async def check_membership(self) -> float:
        """Return when the group has last confirmed the member, or raise the error that the member has failed with.

        Fetches and commits raise it too, but a worker without partitions makes none.
        """
        return cast("float", await self.call_thread(self._check_membership))

    async def _check_membership(self) -> float:
        return self._member.last_confirmation()

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Nothing: Faust's check looks at acks and commits by record, which do not exist here."""

    def verify_recovery_event_path(self, now: float, tp: TP) -> None:
        """Nothing, for the same reason."""


class EngineConsumer(driver.Consumer):
    """Delivers whole batches and commits what transactions made durable."""

    logger = _LOG

    _thread: EngineConsumerThread

    def _new_consumer_thread(self) -> EngineConsumerThread:
        # Its loop is of the kind of the worker's, which the settings choose.
        return EngineConsumerThread(self, loop=self.loop, thread_loop=type(self.loop)(), beacon=self.beacon)

    @property
    def thread(self) -> EngineConsumerThread:
        """The consumer's thread, for seeks and end offsets."""
        return self._thread

    def _to_message(self, tp: TP, batch: Batch) -> ConsumerMessage:
        """Wrap a batch as one Faust message, which agents get as their value."""
        return ConsumerMessage(
            topic=tp.topic,
            partition=tp.partition,
            offset=batch.position - 1,
            timestamp=0.0,
            timestamp_type=0,
            headers={},
            key=None,
            value=cast("bytes", batch),  # Faust types values as bytes; BatchSchema passes this one through
            checksum=None,
            tp=tp,
            generation_id=self.app.consumer_generation_id,
        )

    async def _poll(self) -> dict[TP, Batch]:
        """Fetch from active partitions. Without any, Faust would sleep a second: longer than most rebalances."""
        if not self.flow_active:
            await self.wait(self.can_resume_flow)  # type: ignore[arg-type]  # asyncio's Event works
        active = self._get_active_partitions()
        if active:
            fetched = await self._getmany(active_partitions=active, timeout=_POLL_SECONDS)
            return cast("dict[TP, Batch]", fetched or {})
        confirmed_at = await self._thread.check_membership()
        host_of(self.app).partitions.waits.confirmed_in_reserve(time.monotonic(), confirmed_at)
        await self.sleep(_POLL_SECONDS)
        return {}

    async def _drain_messages(self, fetcher: Any) -> None:
        try:
            while not (self.should_stop or fetcher.should_stop):
                for tp, batch in (await self._poll()).items():
                    if not self.flow_active:
                        # The batch is kept over a rebalance: it may have been read after the seek that ends it. If
                        # it was read before, its epoch is over and the writer ignores it.
                        await self.wait(self.can_resume_flow)  # type: ignore[arg-type]  # asyncio's Event works
                    host_of(self.app).partitions.waits.handed_over(time.monotonic())
                    await self.wait_first(self.callback(self._to_message(tp, batch)), self.suspend_flow.wait())
        except self.consumer_stopped_errors:
            if not self.app.should_stop:
                raise
        except asyncio.CancelledError:
            if not self.app.should_stop:
                raise
        except (InputTruncatedError, InputUnreadableError) as error:
            await self.app.crash(error)

    async def perform_seek(self) -> None:
        """Seek every live partition to its writer's position; Faust calls this after a recovery."""
        await host_of(self.app).partitions.seek_all()

    async def force_commit(self, topics: object = None, start_new_transaction: bool = True) -> bool:  # noqa: FBT001, FBT002, ARG002
        """Commit the positions of committed transactions to the group; a success renews the lease."""
        return await host_of(self.app).ownership.confirm(
            lambda positions: self._commit({TP(*place): offset for place, offset in positions.items()})
        )

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Nothing: see the thread's method of this name."""


class EngineProducer(driver.Producer):
    """The producer that Faust requires. It never connects, because only partition writers write."""

    logger = _LOG

    async def on_start(self) -> None:
        """Do not connect."""

    async def on_stop(self) -> None:
        """Nothing to close."""

    async def flush(self) -> None:
        """Wait until all partition writers have committed what they have applied; Faust calls this at revocation."""
        await host_of(self.app).partitions.flush()

    def supports_headers(self) -> bool:
        """Say yes: all brokers that know transactions know headers."""
        return True


class EngineTransport(driver.Transport):
    """Faust's aiokafka transport with the three classes above."""

    Consumer = EngineConsumer
    Producer = EngineProducer
