"""Reads the commands of one cluster from its partition, as long as the group assigns it.

One thread, the caller's, runs all of it. `CommandAnswers` does what follows from each command.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import structlog
from kafka import TopicPartition
from kafka.errors import FencedInstanceIdError, KafkaError

from evictstream.models.messages.command import EvictionCommand, decode_command
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.broker.clients import as_our_error
from evictstream.streams.broker.group_commits import GroupCommits
from evictstream.streams.broker.group_membership import GroupConsumer, finish_joining, subscribe
from evictstream.streams.broker.group_watch import GroupWatch
from evictstream.streams.broker.open_transactions import OpenTransactions
from evictstream.streams.errors import InstanceReplacedError
from evictstream.streams.executor.cluster_assignor import ClusterAssignor
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.command_answers import CommandAnswers
from evictstream.streams.executor.commands_partition import CommandsPartition
from evictstream.streams.executor.partition_moves import PartitionMoves
from evictstream.streams.executor.partition_starts import PartitionStarts
from evictstream.streams.member_beats import UNSURE_SECONDS
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

POLL_MS: Final = 250
"""How long a poll waits for commands, and so how late a result may be. A command ends the wait. It keeps a hundred idle
clusters cheap, and results of a storm are sent together, while a join is still noticed soon."""

_DRAIN_LOOK_SECONDS: Final = 0.1
"""Between two looks at a stop whether evictions still run."""

_MOST_WAITING: Final = 20_000
"""Evictions of the cluster that wait, some 40 MB; beyond it the cluster's commands are not read. The service repeats
them meanwhile, so they are worth some memory."""

RESUME_AT: Final = 15_000
"""Reading continues when so few wait."""

SWEEP_SECONDS: Final = 2.0
"""Between two looks at all evictions: for reports, time limits and open transactions."""

DRAIN_SECONDS: Final = 5.0
"""How long a stop waits for evictions that are being carried out."""

_RETRY_SECONDS: Final = 0.5
"""After an error of Kafka that may pass."""

STALL_SECONDS: Final = 6.0
"""After so long it reads its partition again before an eviction begins: a `Cancel` may have come meanwhile."""


class CommandConsumer:
    """Reads the commands topic for one cluster, with a consumer that is in its group and not subscribed yet.

    Attributes:
        commands: how many were read, by action.
        passed_over: records of other clusters.
        unreadable: records that are not commands.
        polled_at: monotonic second of the last poll's end.
        open_transactions: where an open transaction keeps commands from being read.
        starts: of the partition.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        consumer: GroupConsumer,
        assignor: ClusterAssignor,
        cluster: ClusterExecutor,
        answers: CommandAnswers,
        commits: GroupCommits,
        watch: GroupWatch,
        starts: PartitionStarts,
    ) -> None:
        self.commands: Counter[Action] = Counter()
        self.passed_over = 0
        self.unreadable = 0
        self.polled_at = time.monotonic()
        self.open_transactions = OpenTransactions(settings.commands_topic)
        self.starts = starts
        self._settings = settings
        self._consumer = consumer
        self._cluster = cluster
        self._key = cluster.name.encode()
        self._answers = answers
        self._commits = commits
        self._watch = watch
        self._moves = PartitionMoves(assignor, cluster.remove_all)
        self._sweep_at = 0.0

    @property
    def is_active(self) -> bool:
        """Whether it has the partition of its cluster; else it stands by."""
        return self._answers.partition is not None

    @property
    def left_out(self) -> int:
        """Count the records of batches that could not be used."""
        return self._consumer.left_out

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Read until stopped; then wait for evictions that run, send their results, and commit.

        Raises:
            BrokerError: Kafka refuses permanently.
            TopicsDifferError: the topic is missing.
            InstanceReplacedError: another executor runs with the same `--instance`.
        """
        subscribe(self._consumer, self._settings.commands_topic, self._moves)
        is_available = True
        while not is_stopped():
            try:
                self._turn()
                is_available = True
            except FencedInstanceIdError as error:
                raise InstanceReplacedError(given=f"--instance {self._consumer.config['group_instance_id']}") from error
            except KafkaError as error:
                if not getattr(error, "retriable", False):
                    raise as_our_error(error, self._settings, f"read {self._settings.commands_topic}") from error
                if is_available:
                    log.warning("Kafka request failed", error=str(error) or type(error).__name__)
                is_available = False
                time.sleep(_RETRY_SECONDS)
        self._cluster.stop()
        self._drain()

    def _turn(self) -> None:
        finish_joining(self._consumer)
        try:
            batches = self._consumer.poll(timeout_ms=POLL_MS)
        finally:
            now = self._note_poll()
        for evictions in self._moves.lost():
            self._answers.abandon(evictions)
            self._answers.drop()
        # From here on nothing may raise before the batch has been read: it is not polled again.
        self._take_over(batches, now)
        partition = self._answers.partition
        if partition is not None and partition.place in batches:
            self._read(partition, batches[partition.place], now)
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_SECONDS
            self._look_for_open_transactions(now)
            self._answers.sweep(now)
        self._answers.answer_held()
        self._answers.send()
        self._queue_pending(now)
        self._answers.commit(now)
        self._watch.is_acting = self.is_active

    def _note_poll(self) -> float:
        """Let workers begin evictions for a while, after a stall only when Kafka has confirmed that they may."""
        now = time.monotonic()
        stalled = now - self.polled_at
        self.polled_at = now
        if stalled > UNSURE_SECONDS and self.is_active:
            self._commits.doubt(now)
            if stalled > STALL_SECONDS:
                log.warning("process stalled; reading its partition again", seconds=round(stalled, 1))
                self._answers.drop()
        if not self._commits.is_in_doubt(now):
            self._cluster.permit(now + UNSURE_SECONDS)
        return now

    def _take_over(self, batches: dict[TopicPartition, Any], now: float) -> None:
        for assigned in self._consumer.assignment():
            if not self.is_active:
                batches.pop(assigned, None)  # it is read again from where it has to begin
                with contextlib.suppress(KafkaError):  # the next turn tries again
                    self._answers.partition = self.starts.begin(assigned, now)

    def _read(self, partition: CommandsPartition, records: Iterable[Any], now: float) -> None:
        for record in records:
            if record.offset < partition.position:
                self.starts.note_reset(partition.place, partition.position, record.offset)
                self._answers.drop()
                return
            partition.advance_to(record.offset)
            command = self._command_in(record)
            if command is None:
                partition.skip(record.offset)
                continue
            partition.note_read(record.offset)
            if record.offset in partition.answered:
                self._answers.note_answered(command, partition)
            else:
                self.commands[command.action] += 1
                self._answers.take(command, partition, record.offset, now)
        with contextlib.suppress(KafkaError):  # it may have been taken away just now
            partition.advance_to(self._consumer.position(partition.place))

    def _command_in(self, record: Any) -> EvictionCommand | None:
        """Return a command of this cluster; None if the record is something else, which is counted."""
        if record.key is not None and record.key != self._key:
            self.passed_over += 1
            return None
        try:
            command = decode_command(record.value or b"")
        except Unreadable as error:
            self.unreadable += 1
            if self.unreadable.bit_count() == 1:  # the 1st, 2nd, 4th, 8th: a broken writer must not fill the log
                log.warning(
                    "record is not a command", partition=record.partition, offset=record.offset, reason=str(error)
                )
            return None
        if command.cluster != self._cluster.name:
            self.passed_over += 1
            return None
        return command

    def _look_for_open_transactions(self, now: float) -> None:
        partition = self._answers.partition
        numbers = [partition.place.partition] if partition is not None and not partition.is_paused else []
        self.open_transactions.look(self._consumer, numbers, now)

    def _queue_pending(self, now: float) -> None:
        """Queue evictions once the partition has caught up, and pause reading while too many wait."""
        partition = self._answers.partition
        if partition is None:
            return
        for eviction in partition.take_pending(now):
            self._cluster.put(eviction)
        waiting = len(self._cluster) + len(partition.pending)
        is_full = waiting >= (RESUME_AT if partition.is_paused else _MOST_WAITING) or partition.answered.is_far()
        if is_full == partition.is_paused:
            return
        partition.is_paused = is_full
        with contextlib.suppress(KafkaError):  # it may have been taken away just now
            if is_full:
                self._consumer.pause(partition.place)
            else:
                self._consumer.resume(partition.place)

    def _drain(self) -> None:
        """Wait for evictions that run, send their results, and commit; what takes longer is done again."""
        self._answers.abandon(self._cluster.remove_all())
        end_at = time.monotonic() + DRAIN_SECONDS
        while self._cluster.is_running and time.monotonic() < end_at:
            time.sleep(_DRAIN_LOOK_SECONDS)
        self._answers.finish(DRAIN_SECONDS)
