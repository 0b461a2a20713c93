"""Faust's transport with whole batches in, our positions for seeks, and nothing else going out.

Stock Faust takes a fetched batch apart, creates several tasks for each record, acks each, and commits
what was acked whether or not its effects were written. Here, by subclass:

- the consumer's thread hands over whole batches with their position and seek epoch;
- the drain loop delivers one Faust message for each batch, through the ordinary conductor, channels, flow
  control and agents;
- group offsets that are committed are the positions of committed transactions, never acks;
- seeks go to the writers' positions, never to group offsets;
- the producer sends nothing: every write belongs to a partition writer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any, cast

from aiokafka import errors as kafka_errors
from aiokafka.structs import TopicPartition
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from evictstream.streams.engine.core.batches import Batch
from evictstream.streams.engine.kafka.consumer import StoppableConsumer
from evictstream.streams.errors import InputTruncatedError, PartitionLostError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evictstream.streams.engine.faust.app import EngineApp

LOG = logging.getLogger("faust.engine")  # what Faust says through these classes: as quiet as Faust's own

# How long an idle poll waits; also how late a position without records is seen, and that there is something to poll.
POLL_SECONDS = 0.2
FETCH_MAX_WAIT_MS = 100  # a partition sought meanwhile joins the next fetch, so this bounds take-over too
FETCHES_IN_ANSWER = 2  # full partitions in one: 8 MiB are 20 ms of work, and memory once used is hardly given back
COMMIT_TIMEOUT_SECONDS = 5.0
# aiokafka leaves the group for who asks for no records for five minutes, and does not come back before it does. A
# worker in reserve asks for none, nor does one that takes over for long; that they live is watched by us.
POLL_INTERVAL_MS = 2**31 - 1
END_OFFSETS_TIMEOUT_SECONDS = 5.0


class EngineConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread that runs aiokafka's group member: joins, heartbeats and fetches beside our event loop."""

    logger = LOG

    def __post_init__(self) -> None:
        """Begin without seeks."""
        super().__post_init__()
        self._epochs: dict[tuple[str, int], int] = {}
        self._seen: dict[tuple[str, int], int] = {}
        self._is_joining = False  # from the end of a revocation to the assignment
        self._commit_limit: asyncio.Timeout | None = None
        self._answered_ms = 0  # when a broker last answered a fetch, by the wall clock: only its changes count

    def _create_worker_consumer(self, transport: driver.Transport) -> StoppableConsumer:
        del transport  # its URL is our configuration's
        app = cast("EngineApp", self.app)
        config = app.config
        self._assignor = app.assignor
        consumer = StoppableConsumer(
            bootstrap_servers=config.bootstrap_servers,
            client_id=config.application,
            group_id=config.application,
            group_instance_id=config.instance_id,
            partition_assignment_strategy=[self._assignor],
            enable_auto_commit=False,
            # Positions are always sought explicitly: a position outside the log must never move by itself.
            auto_offset_reset="none",
            isolation_level="read_committed",
            max_poll_records=config.max_poll_records,
            max_partition_fetch_bytes=config.max_fetch_bytes,
            fetch_max_bytes=FETCHES_IN_ANSWER * config.max_fetch_bytes,
            fetch_max_wait_ms=FETCH_MAX_WAIT_MS,
            session_timeout_ms=int(config.session_timeout_seconds * 1000),
            heartbeat_interval_ms=int(config.heartbeat_seconds * 1000),
            rebalance_timeout_ms=int(config.rebalance_timeout_seconds * 1000),
            max_poll_interval_ms=POLL_INTERVAL_MS,
            request_timeout_ms=int(max(config.session_timeout_seconds * 4, 40.0) * 1000),
            **config.security,
        )
        consumer.permit = app.partitions.permit
        return consumer

    def leave_group(self) -> None:
        """Begin to leave the group at once, from any thread: it does not need the event loop of the worker."""
        consumer = cast("StoppableConsumer | None", self._consumer)
        if consumer is not None:
            with contextlib.suppress(RuntimeError):  # this thread has ended, and the group was left by that
                self.thread_loop.call_soon_threadsafe(consumer.begin_to_leave)

    async def seek_inputs(self, positions: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
        """Seek in the consumer's thread; returns the new epoch of each partition.

        Raises:
            PartitionLostError: one is not ours any more: the group assigns anew, which we are not told yet.

        """
        return cast("dict[tuple[str, int], int]", await self.call_thread(self._seek_inputs, positions))

    async def _seek_inputs(self, positions: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
        consumer = self._ensure_consumer()
        for (topic, number), offset in positions.items():
            key = (topic, number)
            self._epochs[key] = self._epochs.get(key, 0) + 1
            self._seen[key] = offset
            try:
                consumer.seek(TopicPartition(topic, number), offset)
            except kafka_errors.IllegalStateError as error:
                raise PartitionLostError(partition=number, reason=repr(error)) from error
        return {key: self._epochs[key] for key in positions}

    async def _fetch_records(  # type: ignore[override]  # batches where Faust has lists; only our drain loop sees them
        self,
        consumer: StoppableConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is Faust's
        max_records: int | None = None,
    ) -> dict[TP, Batch]:
        # Faust changes this set from the other thread while we wait; what was asked for is what must be delivered.
        wanted = set(active_partitions)
        waiting = cast("EngineApp", self.app).partitions.waits.fetch
        if not (wanted and self.consumer.flow_active):
            waiting.end()  # nothing is asked for
            return {}
        waiting.begin(time.monotonic())
        try:
            fetched = await super()._fetch_records(consumer, wanted, timeout, max_records)
        except (kafka_errors.NoOffsetForPartitionError, kafka_errors.OffsetOutOfRangeError) as error:
            self._check_position(consumer, error)
            return {}
        # From here to the end nothing awaits: epoch and position belong to exactly these records.
        assignment = consumer._fetcher._subscriptions.subscription.assignment  # noqa: SLF001 - no public way in
        batches: dict[TP, Batch] = {}
        answered_ms = 0  # not the greatest so far: the clock may have been set back
        for key in wanted if assignment is not None else ():
            state = assignment.state_value(TopicPartition(*key))
            if state is None or not state.has_valid_position or key not in self._epochs:
                continue
            answered_ms = max(answered_ms, state.timestamp or 0)
            records = fetched.get(key, ())
            start, position = self._seen[key], state.position
            if records or position != start:
                self._seen[key] = position
                batches[key] = Batch(key.topic, key.partition, records, start, position, self._epochs[key])
        if batches or answered_ms != self._answered_ms:
            self._answered_ms = answered_ms
            waiting.end()
        return batches

    def _check_position(self, consumer: StoppableConsumer, error: Exception) -> None:
        """Tell an input that expired under us from a leftover of the time before the first seek."""
        if not isinstance(error, kafka_errors.OffsetOutOfRangeError):
            return
        assignment = consumer._fetcher._subscriptions.subscription.assignment  # noqa: SLF001 - no public way in
        for partition, offset in dict(error.args[0]).items():
            state = assignment.state_value(partition) if assignment is not None else None
            sought = (partition.topic, partition.partition) in self._epochs
            if sought and state is not None and state.has_valid_position and state.position == offset:
                raise InputTruncatedError(
                    topic=partition.topic, partition=partition.partition, position=offset
                ) from error

    async def end_offsets(self, partitions: list[TP]) -> dict[tuple[str, int], int]:
        """Last stable offsets, asked of the brokers now. Raises ``KafkaError`` or ``TimeoutError`` without answer."""
        return cast("dict[tuple[str, int], int]", await self.call_thread(self._end_offsets, partitions))

    async def _end_offsets(self, partitions: list[TP]) -> dict[tuple[str, int], int]:
        # Timed here: who gives up waiting for this thread leaves it busy, and it has commits to carry out.
        async with asyncio.timeout(END_OFFSETS_TIMEOUT_SECONDS):
            ends = await self._ensure_consumer().end_offsets([TopicPartition(*p) for p in partitions])
        return {(p.topic, p.partition): offset for p, offset in ends.items()}

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit group offsets; ``False`` when the group does not know us as the owner (any more)."""
        assigned = self.assignment()
        wanted = {TopicPartition(*tp): offset for tp, offset in offsets.items() if tp in assigned}
        if not wanted or self._is_joining:
            return False
        try:
            async with asyncio.timeout(COMMIT_TIMEOUT_SECONDS) as self._commit_limit:
                await self._ensure_consumer().commit(wanted)
        except (kafka_errors.KafkaError, TimeoutError) as error:
            self.log.info("group offsets not committed: %r", error)
            return False
        return True

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Let what owns them hold back; commit nothing from then on until the group has assigned.

        A broker answers the requests of a connection one after another: a commit that is sent while we wait to join is
        looked at in the next generation and refused, for which aiokafka joins once more, which makes others wait.
        """
        await super().on_partitions_revoked(revoked)
        self._is_joining = True
        if self._commit_limit is not None:
            with contextlib.suppress(RuntimeError):  # it is over
                self._commit_limit.reschedule(0)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Let what is to own them take over, and commit again."""
        self._is_joining = False
        await super().on_partitions_assigned(assigned, generation_id)

    async def check_membership(self) -> float:
        """Raise what the member has failed of, or return when the group has last confirmed it.

        Who fetches is told by that; who owns nothing does not fetch, nor commit.
        """
        return cast("float", await self.call_thread(self._check_membership))

    async def _check_membership(self) -> float:
        consumer = self._ensure_consumer()
        consumer._coordinator.check_errors()  # noqa: SLF001 - there is no public way
        return cast("StoppableConsumer", consumer).confirmed_at

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Nothing: Faust's check looks at acks and commits by record, which do not exist here."""

    def verify_recovery_event_path(self, now: float, tp: TP) -> None:
        """Nothing, for the same reason."""


class EngineConsumer(driver.Consumer):
    """Delivers whole batches and commits what transactions made durable."""

    logger = LOG

    _thread: EngineConsumerThread

    def _new_consumer_thread(self) -> EngineConsumerThread:
        return EngineConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @property
    def thread(self) -> EngineConsumerThread:
        """The consumer's thread, for seeks and end offsets."""
        return self._thread

    def _to_message(self, tp: TP, batch: Batch) -> ConsumerMessage:
        """Wrap a batch as one Faust message, which agents get as their value."""
        return ConsumerMessage(
            tp.topic,
            tp.partition,
            batch.position - 1,
            0.0,
            0,
            {},
            None,
            cast("bytes", batch),  # Faust types values as bytes; our schema hands this one through
            None,
            None,
            None,
            tp,
            generation_id=self.app.consumer_generation_id,
        )

    async def _poll(self) -> dict[TP, Batch]:
        """Fetch from what may be read now. Where that is nothing Faust sleeps a second: longer than most rebalances."""
        if not self.flow_active:
            await self.wait(self.can_resume_flow)  # type: ignore[arg-type]  # asyncio's Event works
        active = self._get_active_partitions()
        if active:
            fetched = await self._getmany(active_partitions=active, timeout=POLL_SECONDS)
            return cast("dict[TP, Batch]", fetched or {})
        confirmed_at = await self._thread.check_membership()
        cast("EngineApp", self.app).partitions.waits.confirmed_in_reserve(time.monotonic(), confirmed_at)
        await self.sleep(POLL_SECONDS)
        return {}

    async def _drain_messages(self, fetcher: Any) -> None:
        try:
            while not (self.should_stop or fetcher.should_stop):
                for tp, batch in (await self._poll()).items():
                    if not self.flow_active:
                        # Kept over a rebalance, not dropped: it may have been read after the seek that ends it. If it
                        # was read before, its epoch is over and the writer ignores it.
                        await self.wait(self.can_resume_flow)  # type: ignore[arg-type]  # asyncio's Event works
                    cast("EngineApp", self.app).partitions.waits.handed_over(time.monotonic())
                    await self.wait_first(self.callback(self._to_message(tp, batch)), self.suspend_flow.wait())
        except self.consumer_stopped_errors:
            if not self.app.should_stop:
                raise
        except asyncio.CancelledError:
            if not self.app.should_stop:
                raise
        except InputTruncatedError as error:
            await self.app.crash(error)

    async def perform_seek(self) -> None:
        """Seek every live partition to its writer's position (Faust asks for this after a recovery)."""
        await cast("EngineApp", self.app).partitions.seek_all()

    async def force_commit(self, topics: object = None, start_new_transaction: bool = True) -> bool:  # noqa: FBT001, FBT002, ARG002
        """Commit the positions of committed transactions to the group; a success renews the lease."""
        partitions = cast("EngineApp", self.app).partitions
        asked_at = time.monotonic()
        offsets = {TP(topic, number): offset for (topic, number), offset in partitions.durable_positions().items()}
        if not offsets or not await self._commit(offsets):
            return False
        partitions.lease.renew(asked_at)
        partitions.waits.heartbeat.progress(asked_at)
        return True

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Nothing: see the thread's method of this name."""


class EngineProducer(driver.Producer):
    """Stands where Faust wants a producer; it never connects, because only partition writers write."""

    logger = LOG

    async def on_start(self) -> None:
        """Do not connect."""

    async def on_stop(self) -> None:
        """Have nothing to close."""

    async def flush(self) -> None:
        """Wait until all partition writers have committed what they stepped (Faust asks at revocation)."""
        await cast("EngineApp", self.app).partitions.flush()

    def supports_headers(self) -> bool:
        """Say yes: all brokers that know transactions know headers."""
        return True


class EngineTransport(driver.Transport):
    """Faust's aiokafka transport with the three classes above."""

    Consumer = EngineConsumer
    Producer = EngineProducer
