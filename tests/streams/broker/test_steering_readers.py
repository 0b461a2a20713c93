"""Every process that acts on evictions knows the newest brakes, or knows that it does not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.broker.steering_readers import BrakesReader
from evictstream.streams.settings import Settings
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
        write("b3", None)
        wait_for(lambda: reader.objection() is None)
