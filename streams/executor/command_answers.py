"""Queues, answers and commits the commands of one cluster. A command is done when Kafka has confirmed its result."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final

from kafka.errors import KafkaError

from evictstream.models.execution.command_log import CommandAnswer, CommandLog, Reading
from evictstream.models.execution.eviction_requests import request_key
from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.models.instants import instant_us, moment_at
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.executor_report import REPORT_KIND, ExecutorReport
from evictstream.models.messages.vocabulary import API_VERSION, Action, Outcome
from evictstream.streams.broker.group_commits import GroupCommits
from evictstream.streams.deed_log import DeedLog
from evictstream.streams.executor.answer_lines import log_answer
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.commands_partition import CommandsPartition
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.open_requests import OpenRequests
from evictstream.streams.executor.results import ResultWriter, as_observed

REPORT_SECONDS: Final = 10.0
"""Between two reports of what waits. The service believes each for 30 s, so two may be lost."""

HOLDING_SECONDS: Final = 0.2
"""The longest look at what waits after a change of the brakes, before the next poll. To answer 20,000 evictions takes
0.6 s of processor time."""

UNREPORTED_SECONDS: Final = 10.0
"""A queue is reported once something has waited in it for longer. The service repeats an eviction after 27 s."""

GIVEN_BACK_OFFSETS: Final = 1_000
"""Offsets from the first one without an answer on, whose evictions are given back where reading waits for them."""

_NO_POSITION: Final = (-1, -1)
"""Of a result that answers no command for good: no reading has this number."""

Notify = Callable[[EvictionCommand, CommandAnswer | None], None]
"""Called for each command that is read for the first time (without an answer), and for each answer of an eviction."""


class CommandAnswers:
    """Decides what follows from each command, and keeps track of it until its result and its offset are in Kafka.

    Used by the thread of the consumer; workers only append to the deque of outcomes.

    Attributes:
        outcomes: answers so far, by outcome, as they are sent: also of what was never tried.
        partition: that of the cluster; None while this executor stands by. The consumer sets it, `drop` takes it away.
    """

    def __init__(
        self,
        *,
        cluster: ClusterExecutor,
        command_log: CommandLog,
        results: ResultWriter,
        commits: GroupCommits,
        outcomes: deque[tuple[QueuedEviction, CommandAnswer]],
        notify: Notify,
        deeds: DeedLog,
        requests: OpenRequests | None = None,
    ) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self.partition: CommandsPartition | None = None
        self._name = uuid.uuid4().hex
        self._report_at = 0.0
        self._reported: int | None = None  # the newest reading of which a report was sent
        self._looked_for = cluster.brakes.all  # those for which all that waits was looked at, but for the next
        self._unlooked: deque[QueuedEviction] = deque()
        self._cluster = cluster
        self._command_log = command_log
        self._results = results
        self._commits = commits
        self._carried_out = outcomes
        self._notify = notify
        self._deeds = deeds
        self._requests = requests

    def note_answered(self, command: EvictionCommand, partition: CommandsPartition) -> None:
        """Record a command that was answered before this executor got its partition."""
        self._command_log.note_answered(command)
        if command.action is Action.EVICT:
            partition.note_evict(instant_us(command.issued_at))

    def take(self, command: EvictionCommand, partition: CommandsPartition, offset: int, now: float) -> None:
        """Queue or answer a command of this cluster, or withdraw its eviction.

        Args:
            command: at `offset` of the partition.
            partition: that of the cluster.
            offset: not answered yet.
            now: monotonic seconds.
        """
        if command.action is Action.EVICT:
            partition.note_evict(instant_us(command.issued_at))
        eviction = QueuedEviction(
            command=command,
            reading=partition.reading,
            offset=offset,
            queued_at=now,
            seen_at=now,
        )
        reading = self._command_log.read(command, time.time_ns() // 1_000)
        if isinstance(reading, CommandAnswer):
            self._answer(eviction, reading)
            return
        if reading is not Reading.IGNORE:
            earlier = partition.withdraw(command.eviction_id) or self._cluster.withdraw(command.eviction_id)
            if earlier is not None:
                self._end(earlier, CommandAnswer(Outcome.OBSOLETE, f"{command.action} came at {command.issued_at}"))
            self._notify(command, None)
        if reading is Reading.WITHDRAW and self._requests is not None:
            self._requests.release(request_key(command))
        if reading is not Reading.EVICT:
            partition.answered.add(offset)
            return
        if (held := self._cluster.hold(eviction)) is not None:
            self._end(eviction, held)
            return
        eviction.seen_at = self._command_log.first_seen(command, now)
        if partition.is_caught_up(now):
            self._cluster.put(eviction)
        else:
            partition.pending[command.eviction_id] = eviction

    def answer_held(self) -> None:
        """Answer what waits and is held since the brakes have changed, for `HOLDING_SECONDS` at most.

        What a later call looks at is safe until then: it is looked at before each write.
        """
        if self._looked_for is not self._cluster.brakes.all:
            self._looked_for = self._cluster.brakes.all
            self._unlooked = deque(self._waiting())
        end_at = time.monotonic() + HOLDING_SECONDS
        while self._unlooked and time.monotonic() < end_at:
            eviction = self._unlooked.popleft()
            held = self._cluster.hold(eviction)
            if held is not None:
                if self.partition is not None:
                    self.partition.withdraw(eviction.command.eviction_id)
                self._end(eviction, held)

    def _waiting(self) -> list[QueuedEviction]:
        pending = () if self.partition is None else self.partition.pending.values()
        return [*self._cluster.unanswered(), *pending]

    def abandon(self, evictions: Iterable[QueuedEviction]) -> None:
        """Drop evictions without an answer; each is queued again if its command is read again."""
        for eviction in evictions:
            self._command_log.abandon(eviction.command)

    def send(self) -> None:
        """Send the answers of workers, and note which results Kafka has confirmed."""
        self._take_outcomes()
        self._results.send()
        self._note_confirmed()

    def _take_outcomes(self) -> None:
        while self._carried_out:
            eviction, answer = self._carried_out.popleft()
            if answer.outcome is Outcome.ACCEPTED:  # another outcome follows
                self._results.add(eviction.command, answer, _NO_POSITION)
            else:
                self._end(eviction, answer)

    def sweep(self, now: float) -> None:
        """Answer what has waited for too long, and report what else waits; looks at all evictions."""
        self._deeds.tell()
        for eviction, answer in self._cluster.expire(now):
            self._end(eviction, answer)
        if self._requests is not None and self.partition is not None and self.partition.is_caught_up(now):
            self._give_back(self.partition)
            self._release_requests(self._requests)
        if self.partition is not None and self._cluster.mode is not ExecutorMode.OBSERVE and now >= self._report_at:
            self._report(self.partition, now)

    def _give_back(self, partition: CommandsPartition) -> None:
        """Fail the evictions with the oldest open EvictionRequests, if reading has to wait for their answers.

        These last for hours, and a `Cancel` may be among what is not read.
        """
        if not partition.answered.is_far():
            return
        end = partition.answered.first_open + GIVEN_BACK_OFFSETS
        for one in self._cluster.unanswered():
            is_in_the_way = one.is_open and one.reading == partition.reading and one.offset < end
            if is_in_the_way and self._cluster.withdraw(one.command.eviction_id) is one:
                self._end(one, CommandAnswer(Outcome.FAILED, "too many later commands have an answer"))

    def _release_requests(self, requests: OpenRequests) -> None:
        """Have all EvictionRequests withdrawn whose eviction is not carried out here, or is held, however briefly."""
        known = requests.known()
        if not known:
            return
        now_us, brakes = time.time_ns() // 1_000, self._cluster.brakes
        wanted = {
            key
            for one in self._waiting()
            if brakes.held(one.command, now_us, zone=known.get(key := request_key(one.command))) is None
        }
        requests.release_others(known, wanted)

    def _report(self, partition: CommandsPartition, now: float) -> None:
        """Report the queue, if something has waited for long and Kafka has the report before.

        The first report of a reading comes in any case, once the partition has caught up, and another one after a
        result that Kafka has not taken: what was only observed is issued again after it.
        """
        waiting = [eviction for eviction in self._waiting() if eviction.reading == partition.reading]
        is_due = self._results.has_lost or any(now - one.queued_at > UNREPORTED_SECONDS for one in waiting)
        is_due |= self._reported != partition.reading and partition.is_caught_up(now)
        if self._results.is_reporting or not is_due:
            return
        self._take_outcomes()  # what has left the queue is answered before the report
        self._report_at = now + REPORT_SECONDS
        self._reported = partition.reading
        report = ExecutorReport(
            api_version=API_VERSION,
            kind=REPORT_KIND,
            cluster=self._cluster.name,
            executor=f"{self._name}-{partition.reading}",
            waiting=len(waiting),
            read_to=moment_at(partition.read_to_us),
            reported_at=dt.datetime.now(dt.UTC),
        )
        self._results.add_report(report)

    def commit(self, now: float) -> None:
        """Commit what is answered, if that is due."""
        if self.partition is not None:
            self._commits.send(self.partition, now)

    def drop(self) -> None:
        """Forget the partition; its open commands are done when it is read again."""
        self._unlooked.clear()
        if self._requests is not None:
            self._requests.abandon()
        self.abandon(self._cluster.remove_all())
        if self.partition is not None:
            self.abandon(self.partition.pending.values())
            self.partition = None

    def finish(self, timeout_seconds: float) -> None:
        """Send all answers, wait until Kafka has them, and commit."""
        self.send()
        self._deeds.end()
        with contextlib.suppress(KafkaError):
            self._results.flush(timeout_seconds)
            self._note_confirmed()
            if self.partition is not None:
                self._commits.finish(self.partition, timeout_seconds)

    def _end(self, eviction: QueuedEviction, answer: CommandAnswer) -> None:
        self._command_log.answer(eviction.command, answer)
        self._notify(eviction.command, answer)
        self._answer(eviction, answer)

    def _answer(self, eviction: QueuedEviction, answer: CommandAnswer) -> None:
        if self._cluster.mode is ExecutorMode.OBSERVE:
            answer = as_observed(answer)
        self.outcomes[answer.outcome] += 1
        log_answer(self._deeds, self._cluster.mode, eviction.command, answer)
        if self.partition is not None and eviction.reading == self.partition.reading:
            self.partition.unconfirmed.add(eviction.offset)
        self._results.add(eviction.command, answer, (eviction.reading, eviction.offset))

    def _note_confirmed(self) -> None:
        """Count commands as done; not those of an earlier reading, whose offsets may be those of other commands now."""
        for reading, offset in self._results.confirmed():
            if self.partition is not None and reading == self.partition.reading:
                self.partition.unconfirmed.discard(offset)
                self.partition.answered.add(offset)
