"""One cluster of an executor's process: a thread with all that it needs, so that no other cluster waits for it.

It has its own connection, consumer, consumer group, queue and bounds. What is wrong with it is tried again here, and
shown; the others run on. They share the producer of results alone, which takes records of any number of threads.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import structlog
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action, Outcome
from evictstream.streams.broker.clients import may_pass, our_errors
from evictstream.streams.broker.consumers import open_as
from evictstream.streams.broker.group_membership import GroupConsumer
from evictstream.streams.errors import (
    ApiRefusedError,
    ApiUnreachableError,
    BrokerError,
    CredentialsError,
    EvictstreamError,
)
from evictstream.streams.executor.cluster_check import check_cluster
from evictstream.streams.executor.cluster_executor import ClusterExecutor, most_at_once
from evictstream.streams.executor.cluster_identity import ClusterIdentity, IdentifiedEvictor
from evictstream.streams.executor.command_consumer import CommandConsumer
from evictstream.streams.executor.eviction import CREDENTIALS_SECONDS, ExecutorMode, PodEvictor
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions, group_of
from evictstream.streams.executor.pod_events import PodEvents
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.kubernetes.backoff import Backoff
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

OLDEST_SECONDS: Final = 3_600.0
"""An `Evict` that was issued longer ago is obsolete. The service repeats what is owed after 900 s at the latest."""

SESSION_SECONDS: Final = 15.0
"""An executor that is silent for so long has lost its partitions to the others."""

HEARTBEAT_SECONDS: Final = 0.5
"""With an answer to it a member learns that another one joins or leaves; what moves waits for up to one of them."""

REFUSED_SECONDS: Final = 10.0
"""Between two tries of a cluster that cannot be served as it is: somebody has to grant a right, or change a file."""

STOP_SECONDS: Final = 10.0
"""For evictions that are being carried out at a stop; Kubernetes gives a container 30 s."""

OTHER_REQUESTS: Final = 2
"""Beside those of evictions: Events, and which cluster it is."""

FETCH_BYTES: Final = 1_048_576
"""Commands fetched at once: some thousand. The library's 50 MiB would be there for each cluster."""

PARTITION_FETCH_BYTES: Final = 262_144
RECORDS_AT_ONCE: Final = 500


class ClusterLife(threading.Thread):
    """Serves one cluster until it is stopped.

    Attributes:
        order: what to do.
        problem: why nothing is done for the cluster now; None while it is served.
        refusal: what has to be changed before it can be served; None while it is served, or may be soon.
        executor: what waits and runs; None before it is served for the first time.
        reader: of its commands; the same.
        events: of its pods; None without.
    """

    def __init__(self, order: ClusterOrder, options: ExecutionOptions, *, settings: Settings, producer: Any) -> None:
        super().__init__(name=f"{order.name} executor", daemon=True)
        self.order = order
        self.problem: str | None = "it is being checked"
        self.refusal: Exception | None = None
        self.executor: ClusterExecutor | None = None
        self.reader: CommandConsumer | None = None
        self.events: PodEvents | None = None
        # One for the life of the process: it keeps to the place that it has found first.
        self._access = dataclasses.replace(order.access, connections=most_at_once(options.rate) + OTHER_REQUESTS)
        self._options = options
        self._settings = settings
        self._producer = producer
        self._stopped = threading.Event()

    @property
    def is_served(self) -> bool:
        """Whether its commands are being read."""
        return self.problem is None

    def stop(self) -> None:
        """End what runs, answer, commit, and leave the group."""
        self._stopped.set()

    def run(self) -> None:
        """Check the cluster and serve it; again after a while where that ends."""
        backoff = Backoff()
        while not self._stopped.is_set():
            try:
                self._live(backoff)
            except (ApiUnreachableError, ApiRefusedError) as error:
                self._wait(error, backoff.next_seconds())
            except BrokerError as error:
                if may_pass(error):
                    self._wait(error, backoff.next_seconds())
                else:
                    self._refuse(error)
            except EvictstreamError as error:
                self._refuse(error)
            except Exception as error:  # of whatever kind: it must not end the other clusters
                log.exception("a cluster cannot be served", cluster=self.order.name)
                self._refuse(error)

    def _wait(self, error: Exception, seconds: float, *, needs_a_change: bool = False) -> None:
        self.refusal = error if needs_a_change else None
        if self.problem != str(error):
            log.warning("the cluster is not served", cluster=self.order.name, error=str(error))
        self.problem = str(error)
        self._stopped.wait(seconds)

    def _refuse(self, error: Exception) -> None:
        self._wait(error, REFUSED_SECONDS, needs_a_change=True)

    def _live(self, backoff: Backoff) -> None:
        connection = Connection(self._access)
        try:
            uid = check_cluster(
                self.order, self._options, connection, settings=self._settings, is_stopped=self._stopped.is_set
            )
            log.info("executes", cluster=self.order.name, mode=str(self.order.mode), host=connection.host)
            backoff.reset()
            self._serve(connection, uid)
        except CredentialsError as error:  # the context is there: what signs in may be away for seconds
            self._wait(error, max(backoff.next_seconds(), CREDENTIALS_SECONDS))
        finally:
            connection.close()

    def _serve(self, connection: Connection, uid: str) -> None:
        answers: deque[tuple[QueuedEviction, CommandAnswer]] = deque()
        evictor = PodEvictor(
            requests=PodRequests(connection),
            mode=self.order.mode,
            delete_after_seconds=self._options.delete_after_seconds,
            comparison_operators=self._settings.comparison_operators,
        )
        identity = ClusterIdentity(self.order.name, uid, connection=connection, settings=self._settings)
        executor = ClusterExecutor(
            self.order.name,
            IdentifiedEvictor(evictor, identity),
            rate=self._options.rate,
            burst=self._options.burst,
            respond=lambda waiting, answer: answers.append((waiting, answer)),
        )
        events: PodEvents | None = None
        if self._options.events != "none" and self.order.mode is not ExecutorMode.OBSERVE:
            events = PodEvents(self.order.name, connection)
        with self._consumer() as consumer:
            reader = CommandConsumer(
                settings=self._settings,
                consumer=consumer,
                producer=self._producer,
                cluster=executor,
                start_us=self._options.start_us,
                oldest_seconds=OLDEST_SECONDS,
                answers=answers,
                tell=self._tell,
            )
            if events is not None:
                events.start()
            self.executor, self.reader, self.events = executor, reader, events
            self.problem = self.refusal = None
            try:
                reader.run(self._stopped.is_set)
            finally:
                executor.stop()
                executor.join(STOP_SECONDS)
                if events is not None:
                    events.stop()

    def _tell(self, command: EvictionCommand, answer: CommandAnswer | None) -> None:
        """Write an Event, if this is worth one."""
        is_eviction = answer is not None and answer.outcome is Outcome.SUCCEEDED
        is_ahead = answer is None and command.action is not Action.EVICT and self._options.events == "all"
        if self.events is not None and (is_eviction or is_ahead):
            self.events.tell(command)

    @contextlib.contextmanager
    def _consumer(self) -> Iterator[GroupConsumer]:
        static: dict[str, Any] = {} if self._options.instance is None else {"group_instance_id": self._options.instance}
        with our_errors(self._settings, "open a consumer"):
            consumer = open_as(
                GroupConsumer,
                self._settings,
                isolation="read_committed",
                **static,
                group_id=group_of(self.order, self._options),
                partition_assignment_strategy=[CooperativeStickyAssignor],
                auto_offset_reset="earliest",
                session_timeout_ms=int(SESSION_SECONDS * 1000),
                heartbeat_interval_ms=int(HEARTBEAT_SECONDS * 1000),
                max_poll_records=RECORDS_AT_ONCE,
                fetch_max_bytes=FETCH_BYTES,
                max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
            )
        try:
            yield consumer
        finally:
            consumer.close()
