"""Answers are kept while Kafka takes none, in order, and what it never takes is left to the service to repeat."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import msgspec
from kafka.errors import KafkaConnectionError, KafkaTimeoutError

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.instants import moment_at
from evictstream.models.messages.executor_report import REPORT_KIND, ExecutorReport
from evictstream.models.messages.vocabulary import API_VERSION, Outcome
from evictstream.streams.executor.results import ResultWriter
from tests.models.execution.samples import command

DONE = CommandAnswer(Outcome.SUCCEEDED, "")
REPORT = ExecutorReport(
    api_version=API_VERSION,
    kind=REPORT_KIND,
    cluster="c1",
    executor="x",
    waiting=1,
    read_to=moment_at(1),
)


class Sent:
    """A record that Kafka has, or has not, some day."""

    def __init__(self) -> None:
        self.fail: Callable[[BaseException], None]
        self._succeed: Callable[[object], None]

    def confirm(self, *, offset: int = 0, appended_ms: int = 0) -> None:
        self._succeed(SimpleNamespace(offset=offset, timestamp=appended_ms))

    def add_callback(self, call: Callable[[object], None]) -> None:
        self._succeed = call

    def add_errback(self, call: Callable[[BaseException], None]) -> None:
        self.fail = call


class FakeProducer:
    """Takes records unless it is down; nothing is delivered by itself."""

    def __init__(self) -> None:
        self.is_down = False
        self.values: list[bytes] = []
        self.sent: list[Sent] = []

    def send(self, _topic: str, *, key: bytes, value: bytes) -> Sent:
        if self.is_down:
            raise KafkaConnectionError
        assert key == b"c1"
        self.values.append(value)
        self.sent.append(Sent())
        return self.sent[-1]


def test_answers_are_kept_in_order_while_a_producer_takes_none() -> None:
    producer = FakeProducer()
    writer = ResultWriter(producer, "results")
    producer.is_down = True
    for number in range(1_000):
        writer.add(command(pod=f"p-{number}"), DONE, (0, number))
        writer.send()
    assert not list(writer.confirmed())
    producer.is_down = False
    writer.send()
    assert [msgspec.json.decode(value)["pod"] for value in producer.values] == [
        f"p-{number}" for number in range(1_000)
    ]
    for one in producer.sent:
        one.confirm()
    assert list(writer.confirmed()) == [(0, number) for number in range(1_000)]


def test_an_answer_that_kafka_never_took_counts_as_confirmed() -> None:
    producer = FakeProducer()
    writer = ResultWriter(producer, "results")
    writer.add(command(), DONE, (0, 7))
    writer.send()
    producer.sent[0].fail(KafkaTimeoutError())
    assert list(writer.confirmed()) == [(0, 7)]


def test_a_report_is_on_its_way_until_kafka_has_it() -> None:
    producer = FakeProducer()
    writer = ResultWriter(producer, "results")
    writer.add(command(), DONE, (0, 7))
    writer.add_report(REPORT)
    writer.send()
    assert [msgspec.json.decode(value)["kind"] for value in producer.values] == ["EvictionResult", "ExecutorReport"]
    assert list(writer.confirmed()) == []
    assert writer.is_reporting
    producer.sent[1].confirm()
    assert list(writer.confirmed()) == []
    assert not writer.is_reporting


def test_kafkas_time_is_told_unless_it_is_not_known() -> None:
    producer, told = FakeProducer(), list[int]()
    writer = ResultWriter(producer, "results", note_time=told.append)
    for number in range(2):
        writer.add(command(), DONE, (0, number))
    writer.send()
    producer.sent[0].confirm(offset=-1, appended_ms=7)
    producer.sent[1].confirm(offset=12, appended_ms=8)
    assert told == [8]
