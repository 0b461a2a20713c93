"""Runs the executors of several clusters in one process, which share a consumer and a producer."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

import structlog
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action, Outcome
from evictstream.streams.broker.admin import check_topics
from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.consumers import BoundedConsumer, open_consumer
from evictstream.streams.broker.feed_states import read_state
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.errors import (
    ApiRefusedError,
    ApiUnreachableError,
    ClusterNameTakenError,
    MissingRightsError,
    TopicsDifferError,
)
from evictstream.streams.executor.access_review import check_rights
from evictstream.streams.executor.cluster_executor import WORKERS, ClusterExecutor
from evictstream.streams.executor.command_consumer import CommandConsumer
from evictstream.streams.executor.eviction import ExecutorMode, PodEvictor
from evictstream.streams.executor.executor_health import ExecutorHealth
from evictstream.streams.executor.pod_events import PodEvents
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.health.endpoint import Endpoint
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

OLDEST_SECONDS: Final = 3_600.0
"""An `Evict` that was issued longer ago is obsolete. The service repeats what is owed after 900 s at the latest."""

RIGHTS_SECONDS: Final = 10.0
"""How long missing rights are asked for again: an API server that has just started knows no roles for some seconds."""

RIGHTS_PAUSE_SECONDS: Final = 1.0

SESSION_SECONDS: Final = 15.0
"""An executor that is silent for so long has lost its partitions to the others."""

LONGEST_OUTAGE_SECONDS: Final = 86_400.0
"""How long a result may wait for Kafka."""

STOP_SECONDS: Final = 10.0
"""For evictions that are being carried out at a stop; Kubernetes gives a container 30 s."""

EventsOf = Literal["none", "evictions", "all"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOrder:
    """What to do for one cluster.

    Attributes:
        name: as commands call it.
        access: to its API server.
        mode: what may be done there.
    """

    name: str
    access: ClusterAccess
    mode: ExecutorMode


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOptions:
    """What holds for all clusters of a process.

    Attributes:
        group: of consumers, which share the work.
        instance: name of this process in the group, for static membership; None without.
        rate: evictions a second, for each cluster.
        burst: evictions at once.
        start_us: where to begin, microseconds since 1970; None where the group stopped, or `OLDEST_SECONDS` ago.
        delete_after_seconds: as for `PodEvictor`.
        events: which Kubernetes Events are written.
    """

    group: str
    instance: str | None = None
    rate: float = 100.0
    burst: int = 100
    start_us: int | None = None
    delete_after_seconds: float | None = None
    events: EventsOf = "evictions"


def execute_commands(
    orders: Sequence[ClusterOrder], options: ExecutionOptions, *, settings: Settings, is_stopped: Callable[[], bool]
) -> None:
    """Carry out commands until stopped, then end what runs, and leave the group.

    Args:
        orders: one for each cluster.
        options: for all of them.
        settings: which Kafka and topics, health's address, and `comparison_operators`.
        is_stopped: asked several times a second.

    Raises:
        CredentialsError: there are none for a cluster.
        MissingRightsError: a mode needs more rights.
        ClusterNameTakenError: another cluster is fed under the name.
        AddressTakenError: health cannot be served.
        BrokerError: Kafka is not as needed.
    """
    _check_topics(settings)
    answers: deque[tuple[QueuedEviction, CommandAnswer]] = deque()
    fleet = {order.name: _Cluster(order, options, settings=settings, answers=answers) for order in orders}
    with (
        open_producer(settings, delivery_seconds=LONGEST_OUTAGE_SECONDS) as producer,
        _consumer(settings, options) as consumer,
    ):
        reader = CommandConsumer(
            settings=settings,
            consumer=consumer,
            producer=producer,
            clusters={name: cluster.executor for name, cluster in fleet.items()},
            start_ms=_start_ms(options),
            is_start_forced=options.start_us is not None,
            oldest_seconds=OLDEST_SECONDS,
            answers=answers,
            tell=lambda command, answer: fleet[command.cluster].tell(command, answer),
        )
        events = {name: cluster.events for name, cluster in fleet.items() if cluster.events is not None}
        health = ExecutorHealth(reader, [cluster.executor for cluster in fleet.values()], events)
        endpoint = Endpoint(settings.health_host, settings.health_port, health, health)
        endpoint.start()
        log.info("health is served", host=settings.health_host, port=endpoint.port)
        for cluster in fleet.values():
            cluster.start()
        try:
            reader.run(is_stopped)
        finally:
            end_at = time.monotonic() + STOP_SECONDS
            for cluster in fleet.values():
                cluster.executor.stop()
            for cluster in fleet.values():
                cluster.close(max(0.0, end_at - time.monotonic()))
    counts = {name: {str(k): n for k, n in cluster.executor.outcomes.items()} for name, cluster in fleet.items()}
    log.info("executor ends", outcomes=counts)


class _Cluster:
    """The executor of one cluster with its connection and its Events."""

    def __init__(
        self,
        order: ClusterOrder,
        options: ExecutionOptions,
        *,
        settings: Settings,
        answers: deque[tuple[QueuedEviction, CommandAnswer]],
    ) -> None:
        self._connection = Connection(dataclasses.replace(order.access, connections=WORKERS + 2))
        try:
            _check_cluster(order, options, self._connection, settings)
        except (ApiRefusedError, ApiUnreachableError) as error:  # must not keep the others from being served
            log.warning("the cluster was not checked", cluster=order.name, error=str(error))
        log.info("executes", cluster=order.name, mode=str(order.mode), host=self._connection.host)
        evictor = PodEvictor(
            requests=PodRequests(self._connection),
            mode=order.mode,
            delete_after_seconds=options.delete_after_seconds,
            comparison_operators=settings.comparison_operators,
        )
        self.executor = ClusterExecutor(
            order.name,
            evictor,
            rate=options.rate,
            burst=options.burst,
            respond=lambda waiting, answer: answers.append((waiting, answer)),
        )
        self.events: PodEvents | None = None
        if options.events != "none" and order.mode is not ExecutorMode.OBSERVE:
            self.events = PodEvents(order.name, self._connection)
        self._tells_of_all = options.events == "all"

    def tell(self, command: EvictionCommand, answer: CommandAnswer | None) -> None:
        """Write an Event, if this is worth one."""
        is_eviction = answer is not None and answer.outcome is Outcome.SUCCEEDED
        is_ahead = answer is None and command.action is not Action.EVICT and self._tells_of_all
        if self.events is not None and (is_eviction or is_ahead):
            self.events.tell(command)

    def start(self) -> None:
        """Begin to work."""
        self.executor.start()
        if self.events is not None:
            self.events.start()

    def close(self, timeout_seconds: float) -> None:
        """Wait for what runs, then close the connections."""
        self.executor.join(timeout_seconds)
        if self.events is not None:
            self.events.stop()
        self._connection.close()


def _check_topics(settings: Settings) -> None:
    names = (settings.commands_topic, settings.results_topic, settings.feeds_topic)
    report = check_topics(settings, [spec for spec in topic_specs(settings) if spec.name in names])
    wrong = [str(difference) for difference in report.breaking if difference.what != "partitions"]
    if wrong:
        raise TopicsDifferError(wrong)


def _check_cluster(order: ClusterOrder, options: ExecutionOptions, connection: Connection, settings: Settings) -> None:
    give_up_at = time.monotonic() + RIGHTS_SECONDS
    while True:
        try:
            check_rights(
                order.name,
                connection,
                order.mode,
                writes_events=options.events != "none",
                deletes_late=options.delete_after_seconds is not None,
            )
            break
        except (MissingRightsError, ApiRefusedError):
            if time.monotonic() > give_up_at:
                raise
            time.sleep(RIGHTS_PAUSE_SECONDS)
    uid = connection.cluster_uid()
    kept = read_state(settings, order.name)
    if kept is not None and kept.cluster_uid != uid:
        raise ClusterNameTakenError(cluster=order.name, uid=uid, other_uid=kept.cluster_uid)


@contextlib.contextmanager
def _consumer(settings: Settings, options: ExecutionOptions) -> Iterator[BoundedConsumer]:
    static: dict[str, Any] = {} if options.instance is None else {"group_instance_id": options.instance}
    with our_errors(settings, "open a consumer"):
        consumer = open_consumer(
            settings,
            **static,
            group_id=options.group,
            partition_assignment_strategy=[CooperativeStickyAssignor],
            auto_offset_reset="earliest",
            session_timeout_ms=int(SESSION_SECONDS * 1000),
            heartbeat_interval_ms=int(SESSION_SECONDS * 1000 / 5),
            max_poll_records=500,
        )
    try:
        yield consumer
    finally:
        consumer.close()


def _start_ms(options: ExecutionOptions) -> int:
    if options.start_us is not None:
        return max(options.start_us // 1_000, 0)
    return int((time.time() - OLDEST_SECONDS) * 1000)
