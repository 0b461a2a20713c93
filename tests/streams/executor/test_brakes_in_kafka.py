"""A brake between a real Kafka and a fake API server: it holds what is issued, and its release lets it go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.admin_client import admin_client
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.errors import TopicsDifferError
from evictstream.streams.executor.cluster_life import ClusterLife
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from tests.harness.executing import CommandWriter
from tests.harness.free_port import free_port, ready
from tests.harness.reading import TopicReader
from tests.models.steering.test_brakes import record
from tests.streams.executor.serving import PATIENCE_SECONDS, command, results_in, run, wait_for

pytestmark = pytest.mark.kafka

WriteBrake = Callable[[str, bytes | None], Any]


@pytest.fixture
def write_brake(declared: Settings) -> Iterator[WriteBrake]:
    with open_producer(declared, delivery_seconds=30.0) as producer:
        yield lambda name, value: producer.send(declared.brakes_topic, key=name.encode(), value=value).get(30)


def test_a_brake_holds_what_is_issued_until_its_release(
    declared: Settings,
    api: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
    write_brake: WriteBrake,
) -> None:
    def answered(count: int) -> list[tuple[str, str, str | None]]:
        seen = results.wait_for(lambda seen: len(results_in(seen)) >= count, f"{count} results", PATIENCE_SECONDS)
        return [(one.value["pod"], one.value["outcome"], one.value.get("heldBy")) for one in results_in(seen)]

    settings = declared.model_copy(update={"health_port": free_port()})
    write_brake("b1", record("b1", namespaces=["shop"], spreadSeconds=0))
    with run(settings, access):
        writer.write(command(pod="a"), command(pod="b", namespace="default"))
        assert sorted(answered(2)) == [("a", "Accepted", "b1"), ("b", "Gone", None)]
        assert ready(settings.health_port)["brakes"] == {"c1": ["b1"]}
        assert not api.removals("a")
        (life,) = (thread for thread in threading.enumerate() if isinstance(thread, ClusterLife))
        wait_for(lambda: life.brakes._known.kafka_time.is_near)  # its results tell it Kafka's clock

        write_brake("b2", b"no brake")
        wait_for(lambda: "'b2' cannot be read" in ready(settings.health_port)["hindered"].get("c1", ""))
        write_brake("b1", record("b1", namespaces=["shop"], spreadSeconds=0, releasedBy="anna"))
        wait_for(lambda: life.brakes._known.brakes.all["b1"].brake.is_released)
        writer.write(command(pod="a", attempt=2))
        assert len(results_in(results.quiet(1))) == 2
        write_brake("b2", None)
        assert answered(3)[2] == ("a", "Succeeded", None)
    assert len(api.removals("a")) == 1


def test_an_observer_needs_no_brakes(
    declared: Settings, access: ClusterAccess, writer: CommandWriter, results: TopicReader, write_brake: WriteBrake
) -> None:
    write_brake("b1", b"no brake")
    with run(declared, access, ExecutorMode.OBSERVE):
        writer.write(command(pod="a"))
        (found,) = results_in(results.wait_for(lambda seen: bool(results_in(seen)), "a result", PATIENCE_SECONDS))
    assert found.value["outcome"] == "Observed"


def test_who_acts_does_not_start_without_the_topic(declared: Settings, access: ClusterAccess) -> None:
    with admin_client(declared, "delete a topic") as client:
        client.delete_topics([declared.brakes_topic])
        wait_for(lambda: declared.brakes_topic not in client.list_topics())
    settings = declared.model_copy(update={"topics_wait_seconds": 0.0})
    with pytest.raises(TopicsDifferError, match="brakes is missing"), run(settings, access):
        pass
