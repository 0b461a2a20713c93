"""Reads the commands of one cluster, says what was done with them, and commits what has an outcome.

One thread does all of it, the caller's: workers only leave their answers in a queue. A command counts as done when
Kafka has its result; then its offset goes into the next commit.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import structlog
from kafka import TopicPartition
from kafka.errors import FencedInstanceIdError, KafkaError

from evictstream.models.execution.command_log import CommandAnswer, CommandLog, Reading
from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.models.messages.command import EvictionCommand, decode_command
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.vocabulary import Action, Outcome
from evictstream.streams.broker.clients import as_our_error
from evictstream.streams.broker.group_membership import GroupConsumer, finish_joining, subscribe
from evictstream.streams.broker.open_transactions import OpenTransactions
from evictstream.streams.errors import InstanceReplacedError
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.commands_partition import CommandsPartition
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.group_commits import GroupCommits
from evictstream.streams.executor.partition_moves import PartitionMoves
from evictstream.streams.executor.partition_starts import PartitionStarts
from evictstream.streams.executor.results import ResultWriter, as_observed
from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

POLL_MS: Final = 50
"""How long a poll waits for commands while some wait or run, and so how late a result may be."""

IDLE_POLL_MS: Final = 250
"""The same while nothing waits or runs: a command ends the wait. A hundred idle clusters are to cost little, and a join
is to be noticed soon."""

MOST_WAITING: Final = 20_000
"""Evictions of the cluster that wait, some 40 MB; beyond it nothing more of it is read. The service repeats what stays
unread, so it is worth some memory."""

RESUME_AT: Final = 15_000
"""Reading goes on when so few wait."""

ACCEPTED_SECONDS: Final = 20.0
"""Between two `Accepted` for what waits; the service repeats an eviction after 60 s without one."""

FIRST_ACCEPTED_SECONDS: Final = 10.0
"""An eviction that waits for so long is `Accepted` for the first time. The service waits 30 s for it."""

SWEEP_SECONDS: Final = 2.0
"""Between two searches for what has to be `Accepted` again."""

DRAIN_SECONDS: Final = 5.0
"""How long a stop waits for evictions that are being carried out."""

COMMIT_TIMEOUT_SECONDS: Final = 0.5
"""For the commit before a partition goes; it takes some milliseconds."""

RETRY_SECONDS: Final = 1.0
"""After an error of Kafka that may pass."""

STALL_SECONDS: Final = 12.0
"""A reader that stood still for so long may have lost its partitions meanwhile, as its process was frozen: that is the
session less a heartbeat's interval. Another executor may have read a `Cancel`, so nothing begins before they are read
anew."""

Tell = Callable[[EvictionCommand, CommandAnswer | None], None]
"""Hears of each command that was read for the first time (without an answer) and of each answer."""


class CommandConsumer:
    """Reads the commands topic for one cluster.

    Attributes:
        commands: how many were read, by action.
        passed_over: records of other clusters.
        unreadable: records that are no commands.
        looked_at: when it last went round, monotonic seconds.
        partitions: by number.
        held: where a transaction that is left open keeps commands from being read.
        starts: of these.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        consumer: GroupConsumer,
        producer: Any,
        cluster: ClusterExecutor,
        start_us: int | None,
        oldest_seconds: float,
        answers: deque[tuple[QueuedEviction, CommandAnswer]],
        tell: Tell,
    ) -> None:
        """Take clients and the cluster as they are.

        Args:
            settings: which topics.
            consumer: in its group, without a subscription.
            producer: of results.
            cluster: carries out its commands; those of others are passed over.
            start_us: as for `PartitionStarts`.
            oldest_seconds: commands that were issued longer ago are obsolete.
            answers: where its workers leave theirs.
            tell: hears of commands and answers.
        """
        self.commands: Counter[Action] = Counter()
        self.passed_over = 0
        self.unreadable = 0
        self.looked_at = time.monotonic()
        self.partitions: dict[int, CommandsPartition] = {}
        self.held = OpenTransactions(settings.commands_topic)
        self._settings = settings
        self._consumer = consumer
        self._results = ResultWriter(producer, settings.results_topic)
        self._cluster = cluster
        self._key = cluster.name.encode()
        self._log = CommandLog(oldest_seconds=oldest_seconds)
        self._answers = answers
        self._tell = tell
        self.starts = PartitionStarts(consumer, start_us=start_us, oldest_seconds=oldest_seconds)
        self._moves = PartitionMoves(consumer, self._give_up)
        self._commits = GroupCommits(consumer, settings.commands_topic, self.partitions)
        self._sweep_at = 0.0
        self._is_in_trouble = False

    @property
    def left_out(self) -> int:
        """Count the records of batches that could not be used."""
        return self._consumer.left_out

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Read until stopped; then have what runs ended, said and committed.

        Raises:
            BrokerError: Kafka refuses for good.
            TopicsDifferError: the topic is missing.
            InstanceReplacedError: another executor runs with the same `--instance`.
        """
        subscribe(self._consumer, self._settings.commands_topic, self._moves)
        while not is_stopped():
            try:
                self._turn()
                self._is_in_trouble = False
            except FencedInstanceIdError as error:
                raise InstanceReplacedError(given=f"--instance {self._consumer.config['group_instance_id']}") from error
            except KafkaError as error:
                if not getattr(error, "retriable", False):
                    raise as_our_error(error, self._settings, f"read {self._settings.commands_topic}") from error
                if not self._is_in_trouble:
                    log.warning("Kafka does not serve", error=str(error) or type(error).__name__)
                self._is_in_trouble = True
                time.sleep(RETRY_SECONDS)
        self._cluster.stop()
        self._drain(self.partitions)
        self._moves.end()

    def _turn(self) -> None:
        finish_joining(self._consumer)
        batches = self._consumer.poll(timeout_ms=IDLE_POLL_MS if self._is_idle() else POLL_MS)
        now = self._look_around()
        for numbers, given_up in self._moves.lost():
            self._let_go(numbers, given_up)
        self._hand_over(now)
        # From here on nothing may raise before all that was polled has been read: it is not polled again.
        self._take_over_new(batches, now)
        self._read_all(batches, now)
        self._say_answers()
        if now >= self._sweep_at:
            self._sweep_at = now + SWEEP_SECONDS
            self.held.look(self._consumer, [n for n, each in self.partitions.items() if not each.is_paused], now)
            self._give_back(now)
            self._say_accepted(now)
        self._results.send()
        self._note_delivered()
        waiting = len(self._cluster) + sum(len(each.held) for each in self.partitions.values())
        for number, found in self.partitions.items():
            if number not in self._moves:
                self._release(found, now)
                self._pause_or_resume(number, found, waiting)
        self._commits.send(now)

    def _is_idle(self) -> bool:
        is_open = any(found.held or found.unsaid for found in self.partitions.values())
        return not (is_open or self._answers or len(self._cluster) or self._moves.leaving())

    def _look_around(self) -> float:
        """Let workers begin evictions for a while; after a stall only what is read anew. Returns the time."""
        now = time.monotonic()
        stalled = now - self.looked_at
        if stalled > STALL_SECONDS and self.partitions:
            log.warning("stood still: reads its partitions anew", seconds=round(stalled, 1))
            self._let_go(tuple(self.partitions))
        self.looked_at = now
        self._cluster.permit(now + STALL_SECONDS)
        return now

    def _hand_over(self, now: float) -> None:
        """Begin nothing more of revoked partitions, and let each go when what ran of it is answered and committed."""
        for numbers in self._moves.begin(self.partitions, now):
            for waiting in self._give_up(numbers):
                self._log.give_up(waiting.command)
        still = {number for number, until in self._moves.leaving() if now < until and self._cluster.runs(number)}
        self._say_answers()
        self._results.send()
        for number, until in self._moves.leaving():
            found = self.partitions.get(number)
            if number in still or (found is not None and found.unsaid and now < until):
                continue
            with contextlib.suppress(KafkaError):
                self._commits.finish((number,) if found is not None else (), COMMIT_TIMEOUT_SECONDS)
            self._moves.let_go(number)
            self._let_go((number,))
        self._moves.settle()

    def _take_over_new(self, batches: dict[TopicPartition, Any], now: float) -> None:
        for partition in self._consumer.assignment():
            if partition.partition not in self.partitions:
                batches.pop(partition, None)  # it is read again from where it has to begin
                with contextlib.suppress(KafkaError):  # the next turn tries again
                    self.partitions[partition.partition] = self.starts.begin(partition, now)

    def _read_all(self, batches: Mapping[TopicPartition, Any], now: float) -> None:
        for partition, records in batches.items():
            if partition.partition in self.partitions and partition.partition not in self._moves:
                self._read(self.partitions[partition.partition], partition, records, now)

    def _read(self, found: CommandsPartition, partition: TopicPartition, records: Iterable[Any], now: float) -> None:
        now_us = time.time_ns() // 1_000
        for record in records:
            if record.offset < found.position:
                self.starts.note_reset(partition, found.position, record.offset)
                self._let_go((partition.partition,))
                return
            found.reach(record.offset)
            if record.key is not None and record.key.partition(b"/")[0] != self._key:
                self.passed_over += 1
                found.pass_over(record.offset)
                continue
            try:
                command = decode_command(record.value or b"")
            except Unreadable as error:
                self.unreadable += 1
                if (
                    self.unreadable.bit_count() == 1
                ):  # the 1st, 2nd, 4th, 8th: whoever writes them must not fill the log
                    log.warning("no command", partition=record.partition, offset=record.offset, reason=str(error))
                found.pass_over(record.offset)
                continue
            if command.cluster != self._cluster.name:
                self.passed_over += 1
                found.pass_over(record.offset)
                continue
            found.has_read(record.offset)
            if record.offset in found.answered:
                self._log.note_answered(command)
            else:
                self._read_command(found, command, record, now, now_us)
        with contextlib.suppress(KafkaError):  # it may have been given away just now
            found.reach(self._consumer.position(partition))

    def _read_command(
        self, found: CommandsPartition, command: EvictionCommand, record: Any, now: float, now_us: int
    ) -> None:
        self.commands[command.action] += 1
        waiting = QueuedEviction(
            command=command,
            partition=record.partition,
            offset=record.offset,
            queued_at=now,
            said_at=now + FIRST_ACCEPTED_SECONDS - ACCEPTED_SECONDS,
            seen_at=now,
        )
        reading = self._log.read(command, now_us)
        if isinstance(reading, CommandAnswer):
            self._say(waiting, reading, is_final=True)
            return
        if reading is not Reading.IGNORE:
            earlier = found.held.pop(command.eviction_id, None) or self._cluster.withdraw(command.eviction_id)
            if earlier is not None:
                self._end(earlier, CommandAnswer(Outcome.OBSOLETE, f"{command.action} came at {command.issued_at}"))
            self._tell(command, None)
        if reading is Reading.EVICT:
            waiting.seen_at = self._log.first_seen(command, now)
            if found.is_caught_up(now):
                self._cluster.put(waiting)
            else:
                found.held[command.eviction_id] = waiting
        else:
            found.answered.add(record.offset)

    def _release(self, found: CommandsPartition, now: float) -> None:
        """Queue what was held, once the partition has been read to where it ended at its assignment."""
        if found.held and found.is_caught_up(now):
            for waiting in found.held.values():
                self._cluster.put(waiting)
            found.held.clear()

    def _pause_or_resume(self, number: int, found: CommandsPartition, waiting: int) -> None:
        is_full = waiting >= (RESUME_AT if found.is_paused else MOST_WAITING) or found.answered.is_far()
        if is_full == found.is_paused:
            return
        found.is_paused = is_full
        partition = TopicPartition(self._settings.commands_topic, number)
        with contextlib.suppress(KafkaError):  # it may have been given away just now
            if is_full:
                self._consumer.pause(partition)
            else:
                self._consumer.resume(partition)

    def _say_answers(self) -> None:
        while self._answers:
            self._end(*self._answers.popleft())

    def _end(self, waiting: QueuedEviction, answer: CommandAnswer) -> None:
        self._log.answer(waiting.command, answer)
        self._tell(waiting.command, answer)
        self._say(waiting, answer, is_final=True)

    def _give_back(self, now: float) -> None:
        for waiting, answer in self._cluster.give_back(now):
            self._end(waiting, answer)

    def _say_accepted(self, now: float) -> None:
        for waiting in self._cluster.unsaid(now - ACCEPTED_SECONDS):
            if self._results.is_full:
                return
            waiting.said_at = now
            self._say(waiting, CommandAnswer(Outcome.ACCEPTED, "queued"), is_final=False)

    def _say(self, waiting: QueuedEviction, answer: CommandAnswer, *, is_final: bool) -> None:
        if self._cluster.mode is ExecutorMode.OBSERVE:
            if not is_final:
                return
            answer = as_observed(answer)
        if is_final and waiting.partition in self.partitions:
            self.partitions[waiting.partition].unsaid.add(waiting.offset)
        self._results.say(waiting.command, answer, (waiting.partition, waiting.offset) if is_final else None)

    def _note_delivered(self) -> None:
        for number, offset in self._results.delivered():
            found = self.partitions.get(number)
            if found is not None:
                found.unsaid.discard(offset)
                found.answered.add(offset)

    def _let_go(self, numbers: Iterable[int], given_up: Iterable[QueuedEviction] = ()) -> None:
        """Forget these partitions; what they had open is done if it is read again."""
        found = [*given_up, *self._give_up(numbers)]
        for number in numbers:
            partition = self.partitions.pop(number, None)
            found += () if partition is None else partition.held.values()
        for waiting in found:
            self._log.give_up(waiting.command)

    def _give_up(self, numbers: Iterable[int]) -> list[QueuedEviction]:
        """Begin nothing more of these partitions; returns what waited or runs."""
        return [waiting for number in numbers for waiting in self._cluster.remove_partition(number)]

    def _drain(self, numbers: Iterable[int]) -> None:
        """Wait for what runs of these partitions, say it, and commit; what takes longer is done again."""
        numbers = tuple(numbers)
        for waiting in self._give_up(numbers):
            self._log.give_up(waiting.command)
        end_at = time.monotonic() + DRAIN_SECONDS
        while any(map(self._cluster.runs, numbers)) and time.monotonic() < end_at:
            time.sleep(POLL_MS / 1000)
        self._say_answers()
        self._results.send()
        with contextlib.suppress(KafkaError):
            self._results.flush(DRAIN_SECONDS)
            self._note_delivered()
            self._commits.finish(numbers, DRAIN_SECONDS)
