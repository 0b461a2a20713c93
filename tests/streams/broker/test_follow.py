from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator

import pytest
from kafka import KafkaProducer

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.clients import client_arguments
from evictstream.streams.broker.follow import FollowedRecord, Start, follow
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.errors import BrokerUnreachableError, TopicsDifferError
from evictstream.streams.settings import Settings

IDLE_SECONDS = 0.6
PATIENCE_SECONDS = 20.0


def never() -> bool:
    return False


@pytest.fixture
def topic(settings: Settings) -> str:
    declare_topics(settings)
    return settings.commands_topic


def write(settings: Settings, *values: bytes, at_ms: int | None = None) -> None:
    producer = KafkaProducer(**client_arguments(settings))
    try:
        for number, value in enumerate(values):
            sent = producer.send(
                settings.commands_topic, value, partition=number % settings.partitions, timestamp_ms=at_ms
            )
            sent.get(timeout=PATIENCE_SECONDS)
    finally:
        producer.close()


def values_of(batches: Iterator[list[FollowedRecord]]) -> list[bytes | None]:
    return [record.value for batch in batches for record in batch]


def read(settings: Settings, topic: str, start: Start) -> list[bytes | None]:
    with follow(settings, topic, start, is_stopped=never, idle_seconds=IDLE_SECONDS) as batches:
        return values_of(batches)


def test_from_the_beginning_all_partitions(settings: Settings, topic: str) -> None:
    write(settings, b"a", b"b", b"c")
    assert sorted(read(settings, topic, "beginning")) == [b"a", b"b", b"c"]  # type: ignore[type-var] # none is None


def test_from_now_what_comes_after_it_was_opened(settings: Settings, topic: str) -> None:
    write(settings, b"before")
    with follow(settings, topic, "now", is_stopped=never, idle_seconds=IDLE_SECONDS) as batches:
        write(settings, b"after")
        assert values_of(batches) == [b"after"]


def test_from_an_instant(settings: Settings, topic: str) -> None:
    instant = dt.datetime(2026, 9, 21, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    at_ms = int(instant.timestamp() * 1000)
    write(settings, b"old", b"old", at_ms=at_ms - 1)
    write(settings, b"at", at_ms=at_ms)  # in the first partition; the second has nothing so late
    assert read(settings, topic, instant) == [b"at"]
    assert read(settings, topic, instant + dt.timedelta(milliseconds=1)) == []


def test_a_slow_broker_is_no_idle_topic(settings: Settings, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evictstream.streams.broker.follow._POLL_SECONDS", 0.001)  # no broker answers within that
    write(settings, b"a", b"b")
    with follow(settings, topic, "beginning", is_stopped=never, idle_seconds=0.0) as batches:
        assert sorted(values_of(batches)) == [b"a", b"b"]  # type: ignore[type-var] # none is None


def test_batches_are_in_order_of_time(settings: Settings, topic: str) -> None:
    for number in (3, 1, 2):
        write(settings, b"%d" % number, b"%d" % (number + 5), at_ms=number * 1_000)
    with follow(settings, topic, "beginning", is_stopped=never, idle_seconds=IDLE_SECONDS) as batches:
        for batch in batches:
            assert [r.timestamp_ms for r in batch] == sorted(r.timestamp_ms for r in batch)


def test_only_what_is_committed_is_seen(settings: Settings, topic: str) -> None:
    producer = KafkaProducer(**client_arguments(settings), transactional_id=settings.application_id)
    try:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"aborted", partition=0)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"committed", partition=0)
        producer.flush()
        assert read(settings, topic, "beginning") == []
        with follow(settings, topic, "now", is_stopped=never, idle_seconds=IDLE_SECONDS) as batches:
            producer.commit_transaction()
            assert values_of(batches) == [b"committed"]  # sent before, committed after: still to come
        assert read(settings, topic, "beginning") == [b"committed"]
    finally:
        producer.close()


def test_it_ends_when_asked(settings: Settings, topic: str) -> None:
    begun_at = time.monotonic()
    with follow(settings, topic, "now", is_stopped=lambda: time.monotonic() > begun_at + 1) as batches:
        assert values_of(batches) == []
    assert time.monotonic() < begun_at + PATIENCE_SECONDS


def test_the_largest_command_passes(settings: Settings, topic: str) -> None:
    largest = b"x" * settings.max_record_bytes
    producer = KafkaProducer(**client_arguments(settings), max_request_size=settings.max_message_bytes)
    try:
        producer.send(topic, largest, partition=0).get(timeout=PATIENCE_SECONDS)
    finally:
        producer.close()
    assert read(settings, topic, "beginning") == [largest]


def test_a_missing_topic(settings: Settings) -> None:
    with pytest.raises(TopicsDifferError, match="is missing"), follow(settings, "nowhere", "now", is_stopped=never):
        pass


def test_nobody_there() -> None:
    (port,) = free_ports(1)
    settings = Settings(bootstrap_servers=f"127.0.0.1:{port}", admin_timeout_seconds=0.5)
    with pytest.raises(BrokerUnreachableError), follow(settings, "t", "now", is_stopped=never):
        pass
