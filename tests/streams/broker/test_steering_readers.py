"""Every process that acts on evictions knows the newest brakes, or knows that it does not."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from evictstream.models.instants import MILLISECOND_US, SECOND_US
from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.broker.steering_readers import BrakesReader
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import own_settings
from tests.models.steering.test_brakes import record


@pytest.fixture
def write(settings: Settings) -> Iterator[Callable[[str, bytes | None], Any]]:
    declare_topics(settings)
    with open_producer(settings, delivery_seconds=30.0) as producer:

        def send(brake_id: str, value: bytes | None) -> Any:
            return producer.send(settings.brakes_topic, key=brake_id.encode(), value=value).get(30)

        yield send


def wait_for(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_brakes_are_known_once_the_topic_is_read(settings: Settings, write: Callable[[str, bytes | None], Any]) -> None:
    write("b1", record("b1"))
    write("b2", record("b2"))
    with BrakesReader(settings) as reader:
        assert reader.brakes is NO_BRAKES
        assert reader.objection() is not None
        wait_for(lambda: reader.objection() is None)
        assert reader.brakes.standing.keys() == {"b1", "b2"}
        write("b1", None)
        wait_for(lambda: reader.brakes.standing.keys() == {"b2"})
        write("b3", b"{")
        wait_for(lambda: reader.objection() is not None)
        written = write("b3", None)
        wait_for(lambda: reader.objection() is None)
        least_us = written.timestamp * MILLISECOND_US
        assert least_us <= reader.kafka_time.earlier(least_us + 3_600 * SECOND_US) < least_us + 60 * SECOND_US


@pytest.mark.kafka
@pytest.mark.kit
def test_brakes_stay_known_when_their_leader_moves() -> None:
    with contextlib.ExitStack() as stack:
        servers = stack.enter_context(EmbeddedBroker(nodes=3)).bootstrap_servers
        settings = own_settings(servers, replication_factor=3)
        place = TopicPartition(settings.brakes_topic, 0)
        admin = stack.enter_context(contextlib.closing(KafkaAdminClient(bootstrap_servers=servers)))
        reader = stack.enter_context(BrakesReader(settings))

        def described() -> Any:
            return admin.describe_topics([place.topic])[0]["partitions"][0]

        wait_for(lambda: reader.objection() is None)
        first, *others = described()["replica_nodes"]
        admin.alter_partition_reassignments({place: [*others, first]})
        admin.elect_leaders(0, {place.topic: [0]}, raise_errors=False)  # the preferred ones
        wait_for(lambda: described()["leader_id"] == others[0])
        moved_at = time.monotonic()
        wait_for(lambda: reader.age_seconds() < time.monotonic() - moved_at)
        assert reader.objection() is None
