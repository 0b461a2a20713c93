"""Commands behind a transaction that somebody leaves open are not read: that is said, and over when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from kafka import KafkaProducer, TopicPartition

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.consumers import open_consumer
from evictstream.streams.broker.open_transactions import HELD_SECONDS, OpenTransactions
from evictstream.streams.settings import Settings

PATIENCE_SECONDS = 30.0


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until


@pytest.mark.kafka
def test_an_open_transaction_is_noticed_and_its_end_too(settings: Settings) -> None:
    declare_topics(settings)
    topic = settings.commands_topic
    stranger = KafkaProducer(bootstrap_servers=settings.bootstrap_servers, transactional_id=settings.application_id)
    writer = KafkaProducer(bootstrap_servers=settings.bootstrap_servers)
    consumer = open_consumer(settings, group_id=None, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(topic, 0)])
        watch = OpenTransactions(topic)
        stranger.init_transactions()
        stranger.begin_transaction()
        stranger.send(topic, b"open", partition=0).get(PATIENCE_SECONDS)
        writer.send(topic, b"behind", partition=0).get(PATIENCE_SECONDS)

        def looked(now: float) -> bool:
            consumer.poll(timeout_ms=200)
            watch.look(consumer, [0], now)
            return watch.seconds(now + 1) > 0

        wait_until(lambda: looked(100.0))
        assert watch.held(100.0 + HELD_SECONDS - 1) == {}
        assert watch.held(100.0 + HELD_SECONDS) == {0: HELD_SECONDS}
        stranger.abort_transaction()
        wait_until(lambda: not looked(200.0))
        assert watch.held(500.0) == {}
    finally:
        consumer.close()
        writer.close()
        stranger.close()
