"""What follows from commands: pending until the partition has caught up, done when Kafka has the result."""

from __future__ import annotations

import datetime as dt
import time
from collections import deque
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from kafka import TopicPartition
from kafka.errors import KafkaTimeoutError

from evictstream.models.execution.command_log import CommandAnswer, CommandLog
from evictstream.models.execution.eviction_requests import RequestKey, request_key
from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.messages.executor_report import ExecutorReport, decode_report, is_report
from evictstream.models.messages.result import decode_result
from evictstream.models.messages.vocabulary import Action, Outcome
from evictstream.streams.broker.group_commits import GroupCommits
from evictstream.streams.deed_log import DeedLog
from evictstream.streams.executor import answered_offsets
from evictstream.streams.executor.answered_offsets import AnsweredOffsets
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.command_answers import REPORT_SECONDS, UNREPORTED_SECONDS, CommandAnswers
from evictstream.streams.executor.commands_partition import CATCH_UP_SECONDS, CommandsPartition
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.results import ResultWriter
from tests.models.execution import samples
from tests.streams.executor.braking import SetBrakes
from tests.streams.executor.conftest import command_now
from tests.streams.executor.test_results import FakeProducer

PLACE = TopicPartition("commands", 0)
AN_HOUR = 3_600.0
EARLIER, LATER = (instant_text(time.time_ns() // 1_000 - seconds * SECOND_US) for seconds in (8, 7))


class Answering:
    """The parts around `CommandAnswers` for one partition, whose cluster begins no eviction."""

    def __init__(self, mode: ExecutorMode = ExecutorMode.DELETE, *, end: int = 0, requests: Any = None) -> None:
        self.now = time.monotonic()
        self.producer = FakeProducer()
        self.outcomes: deque[tuple[QueuedEviction, CommandAnswer]] = deque()
        self.partition = self.reading(1, end=end)
        evictor: Any = SimpleNamespace(mode=mode)
        self.brakes = SetBrakes()
        self.cluster = ClusterExecutor(
            "c1", evictor, brakes=self.brakes.of_cluster(), rate=1, burst=1, respond=lambda *_: None
        )
        consumer: Any = None  # nothing is committed here
        self.answers = CommandAnswers(
            cluster=self.cluster,
            command_log=CommandLog(oldest_seconds=AN_HOUR),
            results=ResultWriter(self.producer, "results"),
            commits=GroupCommits(consumer, consumer),
            outcomes=self.outcomes,
            notify=lambda *_: None,
            deeds=DeedLog(100),
            requests=requests,
        )
        self.answers.partition = self.partition

    def reading(self, number: int, *, end: int = 0) -> CommandsPartition:
        return CommandsPartition(PLACE, reading=number, start=0, answered=AnsweredOffsets(0), end=end, now=self.now)

    def take(self, *commands: Any) -> None:
        for command in commands:
            offset = self.partition.position
            self.partition.note_read(offset)
            self.answers.take(command, self.partition, offset, self.now)

    def results(self) -> list[tuple[str, str]]:
        """Pod and outcome of each result so far."""
        self.answers.send()
        found = [decode_result(value) for value in self.producer.values if not is_report(value)]
        return [(each.pod, each.outcome) for each in found]

    def reports(self) -> list[ExecutorReport]:
        self.answers.send()
        return [decode_report(value) for value in self.producer.values if is_report(value)]

    def begin(self) -> None:
        """Let the first report of the reading be over."""
        self.answers.sweep(self.now)
        self.confirm()
        self.producer.values.clear()

    def confirm(self) -> None:
        """Kafka has all that was sent."""
        self.answers.send()
        for sent in self.producer.sent:
            sent.confirm()
        self.answers.send()


def test_a_command_counts_as_done_when_kafka_has_its_result() -> None:
    answering = Answering()
    answering.take(samples.command())  # so old that it is obsolete
    assert answering.results() == [("a", "Obsolete")]
    assert answering.partition.to_commit() == (0, "")
    answering.producer.sent[0].confirm()
    answering.answers.send()
    assert answering.partition.to_commit() == (1, "")


def test_what_was_read_before_a_loss_counts_no_more() -> None:
    """A restored Kafka has other commands at the same offsets."""
    answering = Answering()
    answering.take(samples.command())
    answering.answers.send()
    answering.answers.drop()
    answering.answers.partition = later = answering.reading(2)
    later.note_read(0)
    answering.producer.sent[0].confirm()
    answering.answers.send()
    assert later.to_commit() == (0, "")


def test_what_waits_is_dropped_and_done_when_read_again() -> None:
    answering = Answering(end=2)
    answering.take(command_now("a"))
    answering.answers.drop()
    answering.partition = answering.answers.partition = answering.reading(2)
    answering.take(command_now("a"))
    assert len(answering.cluster) == 1
    assert answering.results() == []


def test_a_cancel_ends_an_eviction_that_is_pending() -> None:
    answering = Answering(end=3)
    answering.take(command_now("a"), command_now("b"), command_now("a", Action.CANCEL))
    assert answering.results() == [("a", "Obsolete")]
    assert [each.command.pod for each in answering.partition.take_pending(answering.now)] == ["b"]
    assert len(answering.cluster) == 0


def test_pending_evictions_wait_for_a_limited_time() -> None:
    answering = Answering(end=1_000)
    answering.take(command_now("a"))
    assert answering.partition.take_pending(answering.now + CATCH_UP_SECONDS) == ()
    late = answering.now + CATCH_UP_SECONDS + 1
    assert [each.command.pod for each in answering.partition.take_pending(late)] == ["a"]
    assert answering.partition.take_pending(late) == ()


def test_what_waits_is_reported_once_for_all_of_it() -> None:
    answering = Answering()
    answering.begin()
    first, second = (command_now(pod, issued_at=issued_at) for pod, issued_at in (("a", EARLIER), ("b", LATER)))
    answering.take(second, first)
    answering.answers.sweep(answering.now + UNREPORTED_SECONDS)
    assert answering.reports() == []
    for seconds in (1, 2, REPORT_SECONDS, REPORT_SECONDS + 1.5, REPORT_SECONDS + 3):
        answering.answers.sweep(answering.now + UNREPORTED_SECONDS + seconds)
        answering.confirm()
    reports = answering.reports()
    assert [(report.cluster, report.waiting) for report in reports] == [("c1", 2)] * 2
    assert reports[0].read_to == dt.datetime.fromisoformat(LATER)
    assert answering.results() == []


def test_each_reading_reports_once_it_has_caught_up() -> None:
    answering = Answering(end=1)
    answering.answers.sweep(answering.now)
    assert answering.reports() == [], "a command may be there that it has not read"
    answering.take(command_now("a", issued_at=LATER))
    for seconds in (2, 4, 6):
        answering.answers.sweep(answering.now + seconds)
        answering.confirm()
    assert [(report.waiting, report.read_to) for report in answering.reports()] == [
        (1, dt.datetime.fromisoformat(LATER))
    ]
    answering.answers.drop()
    answering.answers.partition = answering.reading(2)
    answering.answers.sweep(answering.now + REPORT_SECONDS + 3)
    assert [report.waiting for report in answering.reports()] == [1, 0]


def test_a_lost_result_is_followed_by_a_report() -> None:
    """An observer may have answered; the service repeats what is unanswered after the report."""
    answering = Answering()
    answering.begin()
    answering.take(samples.command())  # so old that it is obsolete
    answering.answers.send()
    answering.producer.sent[-1].fail(KafkaTimeoutError())
    answering.answers.sweep(answering.now + REPORT_SECONDS + 1)
    assert [report.waiting for report in answering.reports()] == [0]
    answering.confirm()
    answering.answers.sweep(answering.now + 2 * REPORT_SECONDS + 2)
    assert len(answering.reports()) == 1


def test_no_observer_reports_what_waits() -> None:
    answering = Answering(ExecutorMode.OBSERVE)
    answering.take(command_now("a"))
    answering.answers.sweep(answering.now + UNREPORTED_SECONDS + 1)
    assert answering.reports() == []


def test_what_waits_until_the_partition_has_caught_up_is_reported() -> None:
    answering = Answering(end=2)
    answering.take(command_now("a"))
    answering.answers.sweep(answering.now + UNREPORTED_SECONDS + 1)
    assert [report.waiting for report in answering.reports()] == [1]


def test_what_has_left_the_queue_is_answered_before_the_report() -> None:
    answering = Answering()
    answering.take(command_now("a"), command_now("b"))
    done = answering.cluster.withdraw(command_now("a").eviction_id)
    assert done is not None
    answering.outcomes.append((done, CommandAnswer(Outcome.SUCCEEDED, "")))
    answering.answers.sweep(answering.now + UNREPORTED_SECONDS + 1)
    assert answering.results() == [("a", "Succeeded")]
    assert [msgspec.json.decode(value)["kind"] for value in answering.producer.values] == [
        "EvictionResult",
        "ExecutorReport",
    ]


def test_a_new_reading_reports_by_another_name() -> None:
    answering = Answering()
    answering.take(command_now("a"))
    answering.answers.sweep(answering.now + UNREPORTED_SECONDS + 1)
    answering.confirm()
    answering.answers.drop()
    answering.partition = answering.answers.partition = answering.reading(2)
    answering.take(command_now("a"))
    answering.answers.sweep(answering.now + UNREPORTED_SECONDS + REPORT_SECONDS + 2)
    assert len({report.executor for report in answering.reports()}) == 2


def test_only_what_an_executor_has_read_itself_is_reported() -> None:
    answering = Answering()
    answering.take(command_now("a", issued_at=LATER))
    answering.answers.drop()
    answering.partition = answering.answers.partition = answering.reading(2)
    answering.answers.note_answered(command_now("b", issued_at=EARLIER), answering.partition)
    answering.take(command_now("c", issued_at=EARLIER))
    answering.answers.sweep(answering.now + UNREPORTED_SECONDS + 1)
    assert [report.read_to for report in answering.reports()] == [dt.datetime.fromisoformat(EARLIER)]


def test_what_a_brake_holds_is_answered_when_it_comes() -> None:
    answering = Answering(end=3)
    answering.take(command_now("a", namespace="shop"), command_now("b", namespace="bank"))
    answering.brakes.set(namespaces=["shop"])
    answering.take(command_now("c", namespace="shop"))
    answering.cluster.put(answering.partition.pending.pop(command_now("a").eviction_id))
    answering.answers.answer_held()
    assert sorted(answering.results()) == [("a", "Accepted"), ("c", "Accepted")]
    assert [decode_result(value).held_by for value in answering.producer.values] == ["b1", "b1"]
    assert [one.command.pod for one in answering.partition.take_pending(answering.now)] == ["b"]
    assert len(answering.cluster) == 0
    assert answering.answers.outcomes == {Outcome.HELD: 2}


def test_what_is_pending_is_held_too() -> None:
    answering = Answering(end=2)
    answering.take(command_now("a"))
    answering.brakes.set()
    answering.answers.answer_held()
    assert answering.results() == [("a", "Accepted")]
    assert not answering.partition.pending


def test_a_budget_is_asked_anew_after_a_hold() -> None:
    answering = Answering()
    answering.take(command_now("a"))
    answering.brakes.set()
    answering.answers.answer_held()
    answering.brakes.remove()
    answering.now += AN_HOUR
    answering.take(command_now("a", attempt=2))
    assert [one.seen_at for one in answering.cluster.unanswered()] == [answering.now]


def test_an_observer_answers_nothing_but_observed() -> None:
    answering = Answering(ExecutorMode.OBSERVE)
    answering.take(samples.command())  # so old that an executor that acts answers Obsolete
    assert answering.results() == [("a", "Observed")]
    assert answering.answers.outcomes == {Outcome.OBSERVED: 1}


def test_what_was_never_tried_is_counted_as_answered() -> None:
    answering = Answering(end=4)
    answering.take(samples.command(), command_now("b"), command_now("c"), command_now("c", Action.CANCEL))
    assert answering.results() == [("a", "Obsolete"), ("c", "Obsolete")]
    assert answering.answers.outcomes == {Outcome.OBSOLETE: 2}


class NotedRequests:
    """What is released."""

    def __init__(self, *known: RequestKey) -> None:
        self.keys = dict.fromkeys(known)
        self.released: list[RequestKey] = []

    def known(self) -> dict[RequestKey, str | None]:
        return dict(self.keys)

    def release(self, key: RequestKey) -> None:
        self.released.append(key)

    def release_others(self, known: dict[RequestKey, str | None], wanted: set[RequestKey]) -> None:
        self.released += [key for key in known if key not in wanted]


def test_requests_without_an_eviction_are_released() -> None:
    wanted, held = request_key(command_now("a")), request_key(command_now("b", namespace="held"))
    orphan, stray = RequestKey("shop", "orphan"), RequestKey("elsewhere", wanted.name)
    requests = NotedRequests(wanted, held, orphan, stray)
    answering = Answering(ExecutorMode.REQUEST, requests=requests)
    answering.take(command_now("a"), command_now("b", namespace="held"))
    in_a_moment = instant_text(time.time_ns() // 1_000 + 30 * SECOND_US)
    answering.brakes.set(namespaces=["held"], endsAt=in_a_moment)

    answering.answers.sweep(answering.now)
    assert sorted(requests.released) == sorted([held, orphan, stray])
    requests.released.clear()
    answering.take(command_now("a", Action.CANCEL))
    assert requests.released == [wanted]


def test_no_request_is_released_before_all_is_read() -> None:
    requests = NotedRequests(RequestKey("shop", "of-a-command-that-is-read-next"))
    answering = Answering(ExecutorMode.REQUEST, end=5, requests=requests)
    answering.answers.sweep(answering.now)
    assert not requests.released


def test_the_oldest_requests_are_given_back_where_reading_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answered_offsets, "MOST_AHEAD", 3)
    answering = Answering(ExecutorMode.REQUEST, requests=NotedRequests())
    answering.take(command_now("a"), command_now("b"))
    for one in answering.cluster.unanswered():
        one.is_open = one.command.pod == "a"
    answering.take(*(samples.command(pod=f"old-{number}") for number in range(3)))
    answering.begin()
    answering.answers.sweep(answering.now)

    assert ("a", "Failed") in answering.results()
    assert [one.command.pod for one in answering.cluster.unanswered()] == ["b"]
