"""What kafka-python 3.0.12 gets wrong, or does not tell, of a consumer's membership in its group."""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple

import structlog
from kafka import KafkaConsumer
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener
from kafka.coordinator.base import MemberState
from kafka.errors import FencedInstanceIdError, InvalidSessionTimeoutError

from evictstream.streams.broker.clients import partitions_of
from evictstream.streams.broker.consumers import BoundedConsumer

log = structlog.get_logger(__name__)


def subscribe(consumer: KafkaConsumer, topic: str, listener: AsyncConsumerRebalanceListener | None = None) -> None:
    """Subscribe to a topic that the consumer knows by then.

    A leader of the group that learns of the topic while it joins assigns nothing, and nobody joins again for five
    minutes, until metadata is refreshed (`_assignment_snapshot` of coordinator/consumer.py).

    Raises:
        TopicsDifferError: the topic is missing.
    """
    partitions_of(consumer, topic)
    consumer.subscribe([topic], listener=listener)


def finish_joining(consumer: KafkaConsumer) -> None:
    """Have the library end a join that it has begun and forgotten. Call it before each `poll`.

    A join that outlasts a `poll` ends between two of them. If only new metadata had asked for it, nothing asks any more
    by then: heartbeats stay off, offsets are not committed, each `poll` returns at once, and after its session the
    consumer is out of the group (`join_group_async` of coordinator/base.py).
    """
    coordinator = consumer._coordinator  # noqa: SLF001 - none is public
    if coordinator.rejoining and not coordinator.need_rejoin():
        coordinator.request_rejoin()


def join_again(consumer: KafkaConsumer) -> None:
    """Have a member join at its next `poll`, as its group asks for: the answer to its next heartbeat would say so."""
    coordinator = consumer._coordinator  # noqa: SLF001 - none is public
    if coordinator.stable():
        coordinator.request_rejoin()


LONGER_SESSION_MS: Final = 30_000
"""For brokers that refuse the session that a consumer asks for (`group.min.session.timeout.ms`)."""

_IDLE_SECONDS: Final = 0.05
"""A consumer that has nothing to fetch looks again after so long; the library's own pause is longer."""

_COUNTS_SECONDS: Final = 1.0
"""A join that ended longer ago is discarded: `Membership` takes the `poll` that completes it as the time of its answer.
A lease ends four seconds before its session, so one second is safe."""


class _EndedJoin(NamedTuple):
    generation: Any
    assignment: Any
    ended_at: float

    def counts_for(self, generation: Any) -> bool:
        return self.generation is generation and time.monotonic() - self.ended_at < _COUNTS_SECONDS


class GroupConsumer(BoundedConsumer):
    """A consumer that reads on during a join, and completes a join that ended between two polls.

    The library's `poll` returns nothing from the begin of a join to its end. As partitions are moved cooperatively,
    what a member has is its own meanwhile.

    If a join has ended by the next `poll`, the library discards it and joins again (`join_group_async` of
    coordinator/base.py). When the group's leader does so, all other members have to join again too.

    Another member that joins with the same instance id takes this one's place. The library logs that, sends no more
    heartbeats, and reads on; here `poll` raises it.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._replaced: FencedInstanceIdError | None = None
        coordinator = self._coordinator
        answered = coordinator._handle_heartbeat_response  # noqa: SLF001 - none is public
        join_and_sync = coordinator._do_join_and_sync_async  # noqa: SLF001
        ended: _EndedJoin | None = None

        def answered_to_whom(*arguments: Any) -> Any:
            try:
                return answered(*arguments)
            except FencedInstanceIdError as error:
                self._replaced = error
                raise

        async def join_unless_ended() -> Any:
            nonlocal ended
            # While it rebalances, no `poll` has completed the join. With another generation, the member was removed.
            if coordinator.rebalance_in_progress() and ended and ended.counts_for(coordinator._generation):  # noqa: SLF001
                return ended.assignment
            ended = None
            assignment = await join_and_sync()
            ended = _EndedJoin(coordinator._generation, assignment, time.monotonic())  # noqa: SLF001
            return assignment

        coordinator._handle_heartbeat_response = answered_to_whom  # noqa: SLF001
        coordinator._do_join_and_sync_async = join_unless_ended  # noqa: SLF001

    def _poll_once(self, timer: Any, max_records: int, update_offsets: bool = True) -> Any:  # noqa: FBT001, FBT002
        """Do one round, as the library's method of this name.

        Raises:
            FencedInstanceIdError: another member has joined with this one's instance id.
        """
        if self._replaced is not None:
            raise self._replaced
        if self._coordinator.need_rejoin() and not self._join(timer):
            return self._fetch(timer, max_records, update_offsets)
        return super()._poll_once(timer, max_records, update_offsets=update_offsets)

    def _join(self, timer: Any) -> bool:
        coordinator = self._coordinator
        try:
            return bool(coordinator.poll(timeout_ms=timer.timeout_ms))
        except InvalidSessionTimeoutError:
            if coordinator.config["session_timeout_ms"] >= LONGER_SESSION_MS:
                raise
        for config in (coordinator.config, coordinator.heartbeat.config):
            config["session_timeout_ms"] = LONGER_SESSION_MS
        log.warning(
            "Kafka refuses so short a session", group=self.config["group_id"], seconds=LONGER_SESSION_MS / 1_000
        )
        return False

    def _fetch(self, timer: Any, max_records: int, update_offsets: bool) -> Any:  # noqa: FBT001
        records, is_idle = self._fetcher.fetch_records(
            max_records, update_offsets=update_offsets, timeout_ms=timer.timeout_ms
        )
        if not records and is_idle:
            time.sleep(min(timer.timeout_ms / 1000, _IDLE_SECONDS))
        return records


class Membership:
    """When the group has confirmed last that it counts a consumer in.

    A consumer that Kafka is gone for, or whose process was frozen, keeps its assignment, and each `poll` returns as if
    nothing were wrong. Only a heartbeat that was answered, or a join, shows that nobody else has its partitions.

    Attributes:
        confirmed_at: monotonic seconds when what was confirmed was asked for: an answer may have waited in a frozen
            process for longer than the session.
    """

    def __init__(self, consumer: KafkaConsumer) -> None:
        self.confirmed_at = float("-inf")
        self._consumer = consumer
        self._generation = -1

    def look(self) -> None:
        """Take note of what the group has confirmed. Call it more often than heartbeats are sent."""
        heartbeat = self._consumer._coordinator.heartbeat  # noqa: SLF001 - none is public
        group = self._consumer.group_metadata()
        if group.state is MemberState.STABLE and group.generation_id != self._generation:
            self._generation = group.generation_id
            self.confirmed_at = time.monotonic()
        elif heartbeat.last_receive >= heartbeat.last_send:
            self.confirmed_at = max(self.confirmed_at, heartbeat.last_send)
