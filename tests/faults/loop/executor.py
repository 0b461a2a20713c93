"""Executors of the model cluster with the product's own decisions: slow, killed, two by mistake, and observers."""

from __future__ import annotations

import json
from random import Random

from evictstream.models.execution.command_log import CommandAnswer, CommandLog, Reading
from evictstream.models.execution.last_look import last_look, read_seen_node, read_seen_pod
from evictstream.models.execution.work_queue import QueuedEviction, WorkQueue
from evictstream.models.instants import FIRST_INSTANT_US, instant_us, moment_at
from evictstream.models.messages.codec import encode
from evictstream.models.messages.command import EvictionCommand, decode_command
from evictstream.models.messages.executor_report import REPORT_KIND, ExecutorReport
from evictstream.models.messages.vocabulary import API_VERSION, Action, Outcome
from evictstream.models.steering.holds import Hold, Subject, longest_hold
from evictstream.streams.executor.answered_offsets import AnsweredOffsets
from evictstream.streams.executor.results import as_observed, result_text
from tests.faults.loop.cluster import ModelCluster
from tests.faults.loop.feed import CLUSTER
from tests.faults.loop.service import Topics

OLDEST_SECONDS = 3_600.0
REPORT_SECONDS = 10.0
MOST_AT_ONCE = 16


class ModelExecutor:
    """One executor that acts, in a group of its own. One that observes does everything but the write."""

    def __init__(self, cluster: ModelCluster, topics: Topics, draw: Random, *, observes: bool = False) -> None:
        self.observes = observes
        self._cluster = cluster
        self._topics = topics
        self._draw = draw
        self._commit = (0, "")
        self.start()

    def start(self) -> None:
        """Begin from the commit, as after a kill."""
        self._answered = AnsweredOffsets(*self._commit)
        self._position = self._answered.first_open
        self._log = CommandLog(oldest_seconds=OLDEST_SECONDS)
        self._queue = WorkQueue()
        self._read_to_us = FIRST_INSTANT_US
        self._report_at = 0.0
        while self.read(1_000):
            pass  # nothing is done before all that is there has been read
        if not self.observes:
            self._say_what_waits()

    def read(self, most: int) -> int:
        """Read some commands; returns how many there were."""
        records = self._topics.read("commands", self._position, most)
        for record in records:
            self._position = record.offset + 1
            command = decode_command(record.value or b"")
            if command.action is Action.EVICT:
                self._read_to_us = max(self._read_to_us, instant_us(command.issued_at))
            if record.offset in self._answered:
                self._log.note_answered(command)
            else:
                self._take(command, record.offset)
        return len(records)

    def _take(self, command: EvictionCommand, offset: int) -> None:
        now = self._cluster.now_us / 1e6
        queued = QueuedEviction(
            command=command,
            reading=1,
            offset=offset,
            queued_at=now,
            seen_at=now,
        )
        reading = self._log.read(command, self._cluster.now_us)
        if isinstance(reading, CommandAnswer):
            self._say(queued, reading)
            return
        if reading is not Reading.IGNORE:
            earlier = self._queue.withdraw(command.eviction_id)
            if earlier is not None:
                self._end(earlier, CommandAnswer(Outcome.OBSOLETE, "a newer command"))
        if reading is Reading.EVICT:
            self._queue.put(queued)
        else:
            self._answered.add(offset)

    def work(self, *, is_raced: bool = False, is_lost: bool = False) -> None:
        """Do one eviction. `is_raced`: something happens between look and write; `is_lost`: killed right after it."""
        now = self._cluster.now_us / 1e6
        queued = self._queue.take(now, MOST_AT_ONCE)
        if queued is None:
            return
        command = queued.command
        text, node = self._cluster.read("Pod", command.pod), self._cluster.read("Node", command.node)
        pod = None if text is None else read_seen_pod(text)
        veto = last_look(
            command,
            pod,
            None if node is None else read_seen_node(node),
            now_us=self._cluster.now_us,
            comparison_operators=False,
        )
        if is_raced:
            self._cluster.act()
        answer = None if veto is None else CommandAnswer(veto.outcome, veto.reason)
        if answer is None and self.observes:
            answer = CommandAnswer(Outcome.OBSERVED, "observes only")
        if answer is None and (hold := self._hold(command)) is not None:
            answer = CommandAnswer(Outcome.HELD, "a person asked for it", hold.by)
        if answer is None:
            assert pod is not None
            seen = None if node is None else json.loads(node)
            status = self._cluster.delete(command.pod, command.pod_uid, pod.resource_version, seen)
            if status == 409:
                self._queue.put_off(queued, now + 1)
                return
            answer = CommandAnswer(Outcome.SUCCEEDED if status == 200 else Outcome.GONE, "")
        if is_lost:
            self.start()
            return
        self._queue.finish(queued)
        self._end(queued, answer)

    def _hold(self, command: EvictionCommand) -> Hold | None:
        due_us = max(instant_us(command.deadline), instant_us(command.issued_at))
        subject = Subject(command.namespace, command.pod_uid, command.reason.taint.key, due_us, zone="a")
        now_us = self._cluster.now_us
        return longest_hold(self._topics.known.of_cluster(command.cluster, now_us), subject, now_us)

    def report(self) -> None:
        """Report what still waits; an observer says nothing but what it has observed."""
        if not self.observes and self._cluster.now_us / 1e6 >= self._report_at and len(self._queue):
            self._say_what_waits()

    def _say_what_waits(self) -> None:
        self._report_at = self._cluster.now_us / 1e6 + REPORT_SECONDS
        report = ExecutorReport(
            api_version=API_VERSION,
            kind=REPORT_KIND,
            cluster=CLUSTER,
            executor="model",
            waiting=len(self._queue),
            read_to=moment_at(self._read_to_us),
        )
        self._topics.send("results", report.cluster.encode(), encode(report))

    def commit(self) -> None:
        """Keep what was answered."""
        self._commit = (self._answered.first_open, self._answered.metadata())

    def _end(self, queued: QueuedEviction, answer: CommandAnswer) -> None:
        self._log.answer(queued.command, answer)
        self._say(queued, answer)

    def _say(self, queued: QueuedEviction, answer: CommandAnswer) -> None:
        self._send(queued.command, answer)
        self._answered.add(queued.offset)

    def _send(self, command: EvictionCommand, answer: CommandAnswer) -> None:
        answer = as_observed(answer) if self.observes else answer
        # `observedAt` is the wall clock's: without it the append time counts, which is the model's.
        text = result_text(command, answer)
        value = text[: text.rindex(b',"observedAt"')] + b"}"
        self._topics.send("results", command.cluster.encode(), value)
