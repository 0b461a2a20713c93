"""The time of the newest record of each partition, asked of a real broker: what lag in seconds is made of."""

from __future__ import annotations

import pytest
from kafka import KafkaProducer

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.clients import client_arguments
from evictstream.streams.broker.newest_times import newest_times_us
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.errors import BrokerUnreachableError
from evictstream.streams.settings import Settings

PATIENCE_SECONDS = 20.0


def test_newest_times_of_partitions_that_have_records(settings: Settings) -> None:
    declare_topics(settings).raise_if_breaking()
    producer = KafkaProducer(**client_arguments(settings))
    try:
        sent = [producer.send(settings.nodes_topic, value, partition=0) for value in (b"{1", b"{2")]
        appended_ms = [one.get(timeout=PATIENCE_SECONDS).timestamp for one in sent]
    finally:
        producer.close()
    found = newest_times_us(settings, [(settings.nodes_topic, 0), (settings.nodes_topic, 1)])
    assert found == {(settings.nodes_topic, 0): max(appended_ms) * 1000}


def test_newest_times_of_nobody() -> None:
    (port,) = free_ports(1)
    settings = Settings(bootstrap_servers=f"127.0.0.1:{port}", admin_timeout_seconds=0.5)
    with pytest.raises(BrokerUnreachableError):
        newest_times_us(settings, [("nodes", 0)])
