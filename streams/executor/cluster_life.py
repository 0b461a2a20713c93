"""One cluster of an executor's process, in a thread of its own, so that no other cluster waits for it.

It has its own connection, consumer, consumer group, queue and limits. A failure of one cluster is reported and tried
again here, and the other clusters continue. They share only the producer of results, which is safe for threads.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import structlog

from evictstream.models.execution.command_log import CommandAnswer, CommandLog
from evictstream.models.execution.concurrency import MOST_AT_ONCE
from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Action, Outcome
from evictstream.streams.broker.clients import may_pass, our_errors
from evictstream.streams.broker.consumers import open_as
from evictstream.streams.broker.group_commits import GroupCommits
from evictstream.streams.broker.group_membership import GroupConsumer
from evictstream.streams.broker.group_requests import GroupRequests
from evictstream.streams.broker.group_watch import GroupWatch
from evictstream.streams.deed_log import DeedLog
from evictstream.streams.errors import (
    ApiRefusedError,
    ApiUnreachableError,
    BrokerError,
    CredentialsError,
    EvictstreamError,
)
from evictstream.streams.executor.cluster_assignor import ClusterAssignor
from evictstream.streams.executor.cluster_brakes import UNBRAKED, ClusterBrakes, KnownBrakes
from evictstream.streams.executor.cluster_check import check_cluster
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.cluster_identity import ClusterIdentity, IdentifiedEvictor
from evictstream.streams.executor.cluster_proof import ClusterProof
from evictstream.streams.executor.command_answers import CommandAnswers
from evictstream.streams.executor.command_consumer import CommandConsumer
from evictstream.streams.executor.eviction import CREDENTIALS_SECONDS, ExecutorMode, PodEvictor
from evictstream.streams.executor.node_looks import NodeLooks
from evictstream.streams.executor.open_requests import OpenRequests
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions, group_of
from evictstream.streams.executor.partition_starts import PartitionStarts
from evictstream.streams.executor.pod_events import PodEvents
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.executor.request_calls import RequestCalls
from evictstream.streams.executor.request_keeper import KEEPERS, RequestKeeper
from evictstream.streams.executor.request_watch import RequestWatch
from evictstream.streams.executor.results import ResultWriter
from evictstream.streams.kubernetes.backoff import Backoff
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

OLDEST_SECONDS: Final = 3_600.0
"""An `Evict` that was issued longer ago is obsolete. The service repeats what is owed after 900 s at the latest."""

GROUP_SESSION_SECONDS: Final = 6.0
"""A member without heartbeats for so long is out of the group, whoever watches. No broker takes less by default
(`group.min.session.timeout.ms`)."""

HEARTBEAT_SECONDS: Final = 0.5
"""The answer to a heartbeat tells a member that another one joins or leaves, so a takeover waits for up to one."""

REFUSED_SECONDS: Final = 10.0
"""Between two tries of a cluster that needs a change first: a right has to be granted, or a file edited."""

_TOLD: Final = frozenset({Outcome.SUCCEEDED, Outcome.OBSERVED})
"""Outcomes of evictions that get a Kubernetes Event."""

_STOP_SECONDS: Final = 10.0
"""For evictions that are being carried out at a stop; Kubernetes gives a container 30 s."""

OTHER_REQUESTS: Final = 3 + KEEPERS
"""Connections besides those of evictions: for Events, the check of the cluster's UID, and of EvictionRequests the watch
and what withdraws them."""

FETCH_BYTES: Final = 1_048_576
"""Bytes of one fetch: some thousand commands. The library's default of 50 MiB would count for each cluster."""

PARTITION_FETCH_BYTES: Final = 262_144
RECORDS_AT_ONCE: Final = 500


class ClusterLife(threading.Thread):
    """Serves one cluster until it is stopped.

    Attributes:
        order: cluster, access and mode.
        problem: why the cluster is not served now; None while it is served.
        refusal: the error that needs a change before it can be served; None while it is served, or may be soon.
        executor: of its evictions; None before it is served for the first time.
        reader: of its commands; None before it is served for the first time.
        answers: to its commands; None before it is served for the first time.
        events: of its pods; None without Events.
        requests: its EvictionRequests; None but in the mode `request`.
        brakes: what holds its evictions; nothing does where they are only observed.
    """

    def __init__(
        self, order: ClusterOrder, options: ExecutionOptions, *, settings: Settings, producer: Any, brakes: KnownBrakes
    ) -> None:
        super().__init__(name=f"{order.name} executor", daemon=True)
        self.order = order
        self.problem: str | None = "being checked"
        self.refusal: Exception | None = None
        self.executor: ClusterExecutor | None = None
        self.reader: CommandConsumer | None = None
        self.answers: CommandAnswers | None = None
        self.events: PodEvents | None = None
        self.requests: OpenRequests | None = None
        self.brakes = ClusterBrakes(UNBRAKED if order.mode is ExecutorMode.OBSERVE else brakes, order.name)
        # One for the life of the process: it keeps the address that it has found first.
        self._access = dataclasses.replace(order.access, connections=MOST_AT_ONCE + OTHER_REQUESTS)
        self._options = options
        self._settings = settings
        self._producer = producer
        self._stopped = threading.Event()

    @property
    def is_served(self) -> bool:
        """Whether its commands are being read."""
        return self.problem is None

    def stop(self) -> None:
        """Let running evictions end, send results, commit, and leave the group."""
        self._stopped.set()

    def run(self) -> None:
        """Check the cluster and serve it; try again after a pause when that fails."""
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
            except Exception as error:  # of any kind: it must not end the other clusters
                log.exception("cluster failed", cluster=self.order.name)
                self._refuse(error)

    def _wait(self, error: Exception, seconds: float, *, needs_a_change: bool = False) -> None:
        self.refusal = error if needs_a_change else None
        if self.problem != str(error):
            log.warning("cluster unavailable", cluster=self.order.name, error=str(error))
        self.problem = str(error)
        self._stopped.wait(seconds)

    def _refuse(self, error: Exception) -> None:
        self._wait(error, REFUSED_SECONDS, needs_a_change=True)

    def _live(self, backoff: Backoff) -> None:
        connection = Connection(self._access)
        assignor = ClusterAssignor(self._settings.commands_topic, self.order.name.encode())
        try:
            # The watch begins before the check: a process that was killed and is back need not wait for it afterwards.
            with self._consumer(assignor) as consumer, GroupWatch(consumer, GroupRequests(consumer)) as watch:
                uid = check_cluster(
                    self.order, self._options, connection, settings=self._settings, is_stopped=self._stopped.is_set
                )
                log.info("executor started", cluster=self.order.name, mode=str(self.order.mode), host=connection.host)
                backoff.reset()
                self._serve(connection, uid, assignor=assignor, consumer=consumer, watch=watch)
        except CredentialsError as error:  # the context exists: a plugin that signs in may fail for seconds
            self._wait(error, max(backoff.next_seconds(), CREDENTIALS_SECONDS))
        finally:
            connection.close()

    def _serve(
        self, connection: Connection, uid: str, *, assignor: ClusterAssignor, consumer: GroupConsumer, watch: GroupWatch
    ) -> None:
        outcomes: deque[tuple[QueuedEviction, CommandAnswer]] = deque()
        requests = PodRequests(connection)
        open_requests: OpenRequests | None = None
        if self.order.mode is ExecutorMode.REQUEST:
            open_requests = OpenRequests(self.order.name, RequestCalls(connection, self.order.name))
        evictor = PodEvictor(
            requests=requests,
            looks=NodeLooks(requests, lists=self.order.mode is not ExecutorMode.EVICT),
            mode=self.order.mode,
            brakes=self.brakes,
            delete_after_seconds=self._options.delete_after_seconds,
            comparison_operators=self._settings.comparison_operators,
            open_requests=open_requests,
        )
        identity = ClusterIdentity(self.order.name, uid, connection=connection, settings=self._settings)
        executor = ClusterExecutor(
            self.order.name,
            IdentifiedEvictor(evictor, identity),
            brakes=self.brakes,
            rate=self._options.rate,
            burst=self._options.burst,
            respond=lambda eviction, answer: outcomes.append((eviction, answer)),
        )
        events: PodEvents | None = None
        if self._options.events != "none":
            events = PodEvents(self.order.name, connection, observes=self.order.mode is ExecutorMode.OBSERVE)
        commits = GroupCommits(consumer, GroupRequests(consumer))
        answers = CommandAnswers(
            cluster=executor,
            command_log=CommandLog(oldest_seconds=OLDEST_SECONDS),
            results=ResultWriter(self._producer, self._settings.results_topic, note_time=self.brakes.note_answer),
            commits=commits,
            outcomes=outcomes,
            notify=self._notify,
            deeds=DeedLog(self._settings.log_lines_limit),
            requests=open_requests,
        )
        reader = CommandConsumer(
            settings=self._settings,
            consumer=consumer,
            assignor=assignor,
            cluster=executor,
            answers=answers,
            commits=commits,
            watch=watch,
            starts=PartitionStarts(consumer, start_us=self._options.start_us, oldest_seconds=OLDEST_SECONDS),
        )
        helpers: list[ClusterProof | PodEvents | RequestKeeper | RequestWatch] = [ClusterProof(executor, identity)]
        if events is not None:
            helpers.append(events)
        if open_requests is not None:
            open_requests.wake = executor.wake
            keepers = [
                RequestKeeper(self.order.name, open_requests, executor, number=number) for number in range(KEEPERS)
            ]
            helpers += [open_requests.watch, *keepers]
        for helper in helpers:
            helper.start()
        self.executor, self.reader, self.answers, self.events = executor, reader, answers, events
        self.requests = open_requests
        self.problem = self.refusal = None
        try:
            reader.run(self._stopped.is_set)
        finally:
            executor.stop()
            executor.join(_STOP_SECONDS)
            for helper in helpers:
                helper.stop()

    def _notify(self, command: EvictionCommand, answer: CommandAnswer | None) -> None:
        """Write a Kubernetes Event, if the options ask for one."""
        is_eviction = answer is not None and answer.outcome in _TOLD
        is_ahead = answer is None and command.action is not Action.EVICT and self._options.events == "all"
        if self.events is not None and (is_eviction or is_ahead):
            self.events.add(command)

    @contextlib.contextmanager
    def _consumer(self, assignor: ClusterAssignor) -> Iterator[GroupConsumer]:
        static: dict[str, Any] = {} if self._options.instance is None else {"group_instance_id": self._options.instance}
        with our_errors(self._settings, "open a consumer"):
            consumer = open_as(
                GroupConsumer,
                self._settings,
                isolation="read_committed",
                **static,
                group_id=group_of(self.order, self._options),
                partition_assignment_strategy=[assignor],
                auto_offset_reset="earliest",
                session_timeout_ms=int(GROUP_SESSION_SECONDS * 1000),
                heartbeat_interval_ms=int(HEARTBEAT_SECONDS * 1000),
                max_poll_records=RECORDS_AT_ONCE,
                fetch_max_bytes=FETCH_BYTES,
                max_partition_fetch_bytes=PARTITION_FETCH_BYTES,
            )
        try:
            yield consumer
        finally:
            consumer.close()
