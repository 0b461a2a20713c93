"""The member of the consumer group: aiokafka's consumer, which also exposes seek epochs, positions and membership.

It lives in the thread that Faust has for it, `engine.faust.transport`, so it goes on sending heartbeats while the
worker's event loop is busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors
from aiokafka.protocol.group import JoinGroupRequest, LeaveGroupRequest

from evictstream.streams.engine.core.batches import Batch, Record
from evictstream.streams.engine.kafka.consumer import StoppableConsumer
from evictstream.streams.engine.kafka.errors import translated_errors
from evictstream.streams.engine.kafka.group_beats import GroupBeats
from evictstream.streams.errors import (
    BrokerUnreachableError,
    InputTruncatedError,
    InternalFailureError,
    PartitionLostError,
)
from evictstream.streams.machine_clock import clock_name

if TYPE_CHECKING:
    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.permit import Permit
    from evictstream.streams.engine.core.ports import Place

P = TypeVar("P", bound="Place")

# How long a fetch may wait. A partition sought meanwhile is read only by the next one, so this delays takeovers too.
FETCH_MAX_WAIT_MS = 100
# How many full partition fetches one answer may hold: 8 MiB are 20 ms of work, and Python hardly returns used memory.
_FETCHES_IN_ANSWER = 2
# aiokafka leaves the group if no fetch is requested for five minutes, and rejoins only at the next request. A worker
# without partitions, or in a long takeover, requests none. So the limit is off; the watchdog watches both cases.
POLL_INTERVAL_MS = 2**31 - 1
# Longer than a rebalance takes: the coordinator answers a JoinGroup only when all members have come.
_REQUEST_SECONDS = 40.0

# A broker restarts within some seconds; after that the supervisor starts the worker again, which checks first.
START_PATIENCE_SECONDS = 15.0
START_PAUSE_SECONDS = 0.25

# What a broker answers when another member has joined with the same `group.instance.id`; aiokafka does not know it.
FENCED_INSTANCE_ID = 82
# Between two requests of a member that was replaced, until its worker has ended.
REPLACED_PAUSE_SECONDS = 1.0

POSITION_ERRORS = (kafka_errors.NoOffsetForPartitionError, kafka_errors.OffsetOutOfRangeError)
UNREADABLE_ERRORS = (kafka_errors.CorruptRecordException, kafka_errors.TopicAuthorizationFailedError)


class GroupMember(StoppableConsumer):
    """A group consumer that joins only with a permit, whose commits can be cancelled, and that knows a namesake.

    aiokafka 0.14.0 continues a commit whose caller was cancelled. If the connection then ends, nothing retrieves the
    error and asyncio logs it, perhaps after the worker's last line.

    A static member whose id the group does not know any more was expected back for too long, or another member has
    joined with its `group.instance.id`. aiokafka joins without an id in both cases, which throws that other one out,
    and so on without end. Joining with the id that it had makes the broker say which it is.

    Attributes:
        confirmed_at: send time, monotonic seconds, of the newest heartbeat that the group confirmed.
        on_replaced: called in the consumer's thread when another member has this one's instance id, perhaps often.
        on_failed: called in that thread when the member cannot go on.
    """

    confirmed_at = float("-inf")
    _leaving: asyncio.Task[None] | None = None
    _beating: asyncio.Task[None] | None = None
    _beats: GroupBeats

    def __init__(self, permit: Permit, *, beat_places: Iterable[Place], **arguments: Any) -> None:
        """Join with the permit; `beat_places` are those partitions of which each has one owner in the group."""
        super().__init__(**arguments)
        self._permit = permit
        self._beat_places = beat_places
        self.on_replaced: Callable[[], None] = lambda: None
        self.on_failed: Callable[[InternalFailureError], None] = lambda _: None
        self._member_id = ""  # that the group knew last; kept for a static member only
        self._epochs: dict[Place, int] = {}
        self._seen: dict[Place, int] = {}
        self._answered_ms = 0  # when a broker last answered a fetch, by the wall clock: only its changes count

    async def _connect(self) -> None:
        began_at = time.monotonic()
        while True:
            try:
                await super().start()
            except kafka_errors.KafkaConnectionError as error:
                waited_seconds = time.monotonic() - began_at
                if waited_seconds > START_PATIENCE_SECONDS:
                    servers = str(self._client._bootstrap_servers)  # noqa: SLF001 - there is no public way
                    raise BrokerUnreachableError(servers, waited_seconds=waited_seconds, reason=str(error)) from error
                await asyncio.sleep(START_PAUSE_SECONDS)
            else:
                return

    async def start(self) -> None:
        """Connect, begin to beat, and wrap three methods of aiokafka's coordinator.

        A broker that restarts just then is waited for, as the checks before the start wait for one.


        Joining waits for the permit and names the id that the group knew last, the error of a commit is always read,
        a heartbeat's send time is kept.
        """
        await self._connect()
        coordinator = self._coordinator
        beats = self._beats = GroupBeats(self._client, coordinator, self._beat_places, clock=clock_name())
        self._beating = asyncio.create_task(beats.run(), name="beats")
        self._beating.add_done_callback(self._beats_ended)
        send = coordinator._send_req  # noqa: SLF001 - there is no public way

        async def send_permitted(request: object) -> object:
            if isinstance(request, JoinGroupRequest):
                await self._permit.granted()
                request._member_id = request._member_id or self._member_id  # noqa: SLF001
            answer = await beats.noting(request, send)
            code = getattr(answer, "error_code", 0)
            if code == FENCED_INSTANCE_ID:
                self.on_replaced()
                await asyncio.sleep(REPLACED_PAUSE_SECONDS)
                raise kafka_errors.KafkaError("another member has joined with this group.instance.id")
            if isinstance(request, JoinGroupRequest) and self._group_instance_id is not None:
                if code == 0:
                    self._member_id = answer.member_id
                elif code == kafka_errors.UnknownMemberIdError.errno:
                    self._member_id = ""
            return answer

        coordinator._send_req = send_permitted  # noqa: SLF001
        commit = coordinator._do_commit_offsets  # noqa: SLF001 - there is no public way

        def commit_seen(*arguments: object) -> asyncio.Task[None]:
            task: asyncio.Task[None] = asyncio.ensure_future(commit(*arguments))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            return task

        coordinator._do_commit_offsets = commit_seen  # noqa: SLF001
        heartbeat = coordinator._do_heartbeat  # noqa: SLF001

        async def heartbeat_noted() -> bool:
            asked_at = time.monotonic()
            is_confirmed: bool = await heartbeat()
            if is_confirmed:
                self.confirmed_at = asked_at
            return is_confirmed

        coordinator._do_heartbeat = heartbeat_noted  # noqa: SLF001

    async def seek_to(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        """Read on from these offsets; returns the new seek epoch of each partition.

        Raises:
            PartitionLostError: a partition is no longer assigned: a rebalance has begun of which only this thread
                knows yet.
        """
        for (topic, number), offset in positions.items():
            key = (topic, number)
            self._epochs[key] = self._epochs.get(key, 0) + 1
            self._seen[key] = offset
            try:
                self.seek(TopicPartition(topic, number), offset)
            except kafka_errors.IllegalStateError as error:
                raise PartitionLostError(partition=number, reason=repr(error)) from error
        return {key: self._epochs[key] for key in positions}

    def batches(self, wanted: Iterable[P], fetched: Mapping[P, Sequence[Record]]) -> tuple[dict[P, Batch], bool]:
        """Make batches of what a fetch has just returned, and tell whether a broker has answered since the last fetch.

        Nothing may be awaited between the fetch and this: epoch and position belong to exactly these records.
        """
        assignment = self._fetcher._subscriptions.subscription.assignment  # noqa: SLF001 - no public way in
        batches: dict[P, Batch] = {}
        answered_ms = 0  # compared for change, not for growth: the wall clock may be set back
        for key in wanted if assignment is not None else ():
            topic, number = key
            state = assignment.state_value(TopicPartition(topic, number))
            if state is None or not state.has_valid_position or key not in self._epochs:
                continue
            answered_ms = max(answered_ms, state.timestamp or 0)
            records = fetched.get(key, ())
            start, position = self._seen[key], state.position
            if records or position != start:
                self._seen[key] = position
                batches[key] = Batch(
                    topic=topic,
                    partition=number,
                    records=records,
                    start=start,
                    position=position,
                    epoch=self._epochs[key],
                )
        has_answered = bool(batches) or answered_ms != self._answered_ms
        if has_answered:
            self._answered_ms = answered_ms
        return batches, has_answered

    def check_position(self, error: Exception) -> None:
        """Tell an input that expired unread from an error that is left over from before the first seek.

        Raises:
            InputTruncatedError: a position that was sought, or read up to, is not in the log any more.
        """
        if not isinstance(error, kafka_errors.OffsetOutOfRangeError):
            return
        assignment = self._fetcher._subscriptions.subscription.assignment  # noqa: SLF001 - no public way in
        for partition, offset in dict(error.args[0]).items():
            state = assignment.state_value(partition) if assignment is not None else None
            sought = (partition.topic, partition.partition) in self._epochs
            if sought and state is not None and state.has_valid_position and state.position == offset:
                raise InputTruncatedError(
                    topic=partition.topic, partition=partition.partition, position=offset
                ) from error

    async def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """Ask the brokers where partitions end, whatever transaction is open there. Raises `KafkaClientError`."""
        with translated_errors():
            ends = await self.end_offsets([TopicPartition(*place) for place in places])
        return {(p.topic, p.partition): offset for p, offset in ends.items()}

    def assigned(self, places: Iterable[Place]) -> None:
        """Let the beats say that these are this member's."""
        self._beats.assigned(places)

    async def commit_positions(self, positions: Mapping[Place, int]) -> None:
        """Commit group offsets. Raises `KafkaClientError`."""
        with translated_errors():
            commit = self._beats.in_commit(positions)
            await self.commit({TopicPartition(*place): said for place, said in commit.items()})

    def last_confirmation(self) -> float:
        """Tell when the group has last confirmed this member; raises the error that the member has failed with.

        aiokafka raises it from fetches and commits, which a member without partitions does not make.
        """
        self._coordinator.check_errors()
        return self.confirmed_at

    def _beats_ended(self, beating: asyncio.Task[None]) -> None:
        """Fail, unless `stop` has ended them: the others would remove this member each time that it gets partitions."""
        if beating is self._beating:
            cause = None if beating.cancelled() else beating.exception()
            self.on_failed(InternalFailureError(f"the member of the group beats no more: {cause!r}"))

    async def stop(self) -> None:
        """Leave the group, as a static member too, and disconnect."""
        beating, self._beating = self._beating, None
        if beating is not None:
            beating.cancel()
            if self._group_instance_id is not None:
                await self._leave()
        await super().stop()

    def begin_to_leave(self) -> None:
        """Leave the group from within the consumer's loop, even as a static member and even during a rebalance.

        aiokafka waits for a running rebalance and never leaves for a static member, which is expected back. Brokers
        accept the member id in both cases. A member without an id, or already removed, needs no LeaveGroup.
        """
        self._leaving = asyncio.ensure_future(self._leave())

    async def _leave(self) -> None:
        coordinator = self._coordinator
        with contextlib.suppress(kafka_errors.KafkaError):  # the session times out instead
            await coordinator.ensure_coordinator_known()
            # On another connection: a broker answers those of one connection in order, and a JoinGroup may wait there.
            await self._client.send(
                coordinator.coordinator_id, LeaveGroupRequest(coordinator.group_id, coordinator.member_id)
            )


def group_member(config: EngineConfig, permit: Permit, assignor: Any) -> GroupMember:
    """Make the member of the application's consumer group."""
    return GroupMember(
        permit,
        bootstrap_servers=config.bootstrap_servers,
        client_id=config.application,
        group_id=config.application,
        group_instance_id=config.instance_id,
        beat_places=[(config.inputs[0], number) for number in range(config.partitions)],
        partition_assignment_strategy=[assignor],
        enable_auto_commit=False,
        # Positions are always sought explicitly: a position outside the log must never move by itself.
        auto_offset_reset="none",
        # Inputs are read to their very ends: an open transaction there must delay no record.
        isolation_level="read_uncommitted",
        refuses_transactions=True,
        largest_batch_bytes=config.largest_batch_bytes,
        max_poll_records=config.max_poll_records,
        max_partition_fetch_bytes=config.max_fetch_bytes,
        fetch_max_bytes=_FETCHES_IN_ANSWER * config.max_fetch_bytes,
        fetch_max_wait_ms=FETCH_MAX_WAIT_MS,
        session_timeout_ms=int(config.session_timeout_seconds * 1000),
        heartbeat_interval_ms=int(config.heartbeat_seconds * 1000),
        rebalance_timeout_ms=int(config.rebalance_timeout_seconds * 1000),
        max_poll_interval_ms=POLL_INTERVAL_MS,
        request_timeout_ms=int(max(config.session_timeout_seconds * 4, _REQUEST_SECONDS) * 1000),
        **config.security,
    )
