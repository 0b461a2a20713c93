from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable

import pytest
from kafka.errors import KafkaError, MessageSizeTooLargeError, TopicAuthorizationFailedError

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.errors import BrokerRefusedError, BrokerUnreachableError, TopicsDifferError
from evictstream.streams.feed import publisher as publisher_module
from evictstream.streams.feed.publisher import Publisher, open_publisher
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.streams.feed.reading import read_one

PARTITIONS = 7

# From the tests of Kafka's own client (UtilsTest.testMurmur2); there they are signed.
MURMUR2 = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


class TestOnKafka:
    def test_partitions_are_those_of_kafkas_default_partitioner(self, make_settings: MakeSettings) -> None:
        settings = make_settings(partitions=PARTITIONS)
        declare_topics(settings)
        keys = {key: (hashed & 0x7FFFFFFF) % PARTITIONS for key, hashed in MURMUR2.items()}
        keys |= {f"lab-{n}".encode(): partition_of(f"lab-{n}".encode(), PARTITIONS) for n in range(20)}
        with open_publisher(settings) as publisher:
            for key in keys:
                publisher.send(settings.nodes_topic, key, b"{}")
            publisher.flush()
            assert publisher.acknowledged == {settings.nodes_topic: len(keys)}
            assert publisher.partitions == tuple(range(PARTITIONS))
        assert {record.key: record.partition for record in read_one(settings, settings.nodes_topic)} == keys

    def test_the_order_of_a_key_is_kept(self, settings: Settings) -> None:
        declare_topics(settings)
        with open_publisher(settings) as publisher:
            for number in range(2_000):
                publisher.send(settings.pods_topic, b"lab-%d" % (number % 3), b"%d" % number)
            publisher.flush()
        found: dict[bytes | None, list[int]] = {}
        for record in sorted(read_one(settings, settings.pods_topic), key=lambda record: record.offset):
            found.setdefault(record.key, []).append(int(record.value or b""))
        assert found == {b"lab-%d" % cluster: list(range(cluster, 2_000, 3)) for cluster in range(3)}

    def test_the_largest_object_passes(self, settings: Settings) -> None:
        declare_topics(settings)
        with open_publisher(settings) as publisher:
            publisher.send(settings.nodes_topic, b"lab", b"x" * settings.max_object_bytes)
            publisher.flush()
        assert [len(record.value or b"") for record in read_one(settings, settings.nodes_topic)] == [
            settings.max_object_bytes
        ]

    def test_what_kafka_refuses_is_an_error(self, settings: Settings) -> None:
        declare_topics(settings)
        with pytest.raises(BrokerRefusedError, match=settings.pods_topic), open_publisher(settings) as publisher:
            publisher.send(settings.pods_topic, b"lab", b"x" * (settings.max_message_bytes + 1))

    def test_missing_topics_are_reported_before_anything_is_sent(self, settings: Settings) -> None:
        declare_topics(settings, [spec for spec in topic_specs(settings) if spec.name != settings.pods_topic])
        with pytest.raises(TopicsDifferError, match=rf"{settings.pods_topic} is missing"), open_publisher(settings):
            pass

    def test_a_topic_stamped_by_clients_is_refused(self, settings: Settings) -> None:
        nodes, *others = topic_specs(settings)
        wrong = dataclasses.replace(nodes, configs={**nodes.configs, "message.timestamp.type": "CreateTime"})
        declare_topics(settings, [wrong, *others])
        with pytest.raises(TopicsDifferError, match=r"message\.timestamp\.type"), open_publisher(settings):
            pass

    def test_the_number_of_partitions_is_the_topics_affair(self, make_settings: MakeSettings) -> None:
        declare_topics(make_settings(partitions=3))
        with open_publisher(make_settings(partitions=8)) as publisher:
            assert publisher.partitions == (0, 1, 2)

    def test_but_both_must_have_the_same(self, settings: Settings) -> None:
        nodes, pods, *_ = topic_specs(settings)
        declare_topics(settings, [nodes, dataclasses.replace(pods, partitions=5)])
        with pytest.raises(TopicsDifferError, match=r"has 2 partitions, .* has 5"), open_publisher(settings):
            pass

    def test_no_thread_is_left(self, settings: Settings) -> None:
        declare_topics(settings)
        before = set(threading.enumerate())
        with open_publisher(settings):
            pass
        with contextlib.suppress(RuntimeError), open_publisher(settings) as publisher:
            publisher.send(settings.nodes_topic, b"lab", b"{}")
            raise RuntimeError
        for thread in set(threading.enumerate()) - before:
            thread.join(timeout=10)
            assert not thread.is_alive()


def test_nobody_there() -> None:
    (port,) = free_ports(1)
    settings = Settings(bootstrap_servers=f"127.0.0.1:{port}", admin_timeout_seconds=0.5)
    with pytest.raises(BrokerUnreachableError), open_publisher(settings):
        pass


class FakeFuture:
    """What a producer gives for a record; a test says what becomes of it."""

    def __init__(self) -> None:
        self._calls: dict[str, Callable[[object], None]] = {}

    def add_callback(self, call: Callable[..., None], *arguments: object) -> None:
        self._calls["success"] = lambda result: call(*arguments, result)

    def add_errback(self, call: Callable[..., None], *arguments: object) -> None:
        self._calls["failure"] = lambda error: call(*arguments, error)

    def succeed(self) -> None:
        self._calls["success"](None)

    def fail(self, error: Exception) -> None:
        self._calls["failure"](error)


class FakeProducer:
    """Takes records and acknowledges none by itself."""

    def __init__(self) -> None:
        self.sent: list[FakeFuture] = []

    def send(self, *_: object, **__: object) -> FakeFuture:
        self.sent.append(FakeFuture())
        return self.sent[-1]

    def flush(self, timeout: float) -> None: ...


class TestInFlight:
    @pytest.fixture
    def producer(self) -> FakeProducer:
        return FakeProducer()

    @pytest.fixture
    def publisher(self, producer: FakeProducer) -> Publisher:
        return Publisher(producer, Settings(bootstrap_servers="127.0.0.1:1"), (0,))

    def send_apart(self, publisher: Publisher, value: bytes) -> threading.Thread:
        thread = threading.Thread(target=publisher.send, args=("t", b"k", value), daemon=True)
        thread.start()
        thread.join(timeout=0.1)
        return thread

    @pytest.mark.parametrize(
        ("limit", "most", "fit"),
        [("MOST_RECORDS_IN_FLIGHT", 3, 3), ("MOST_BYTES_IN_FLIGHT", 30, 3)],
    )
    def test_is_bounded(
        self,
        limit: str,
        most: int,
        fit: int,
        publisher: Publisher,
        producer: FakeProducer,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(publisher_module, limit, most)
        for _ in range(fit):
            publisher.send("t", b"k", b"x" * 10)
        waiting = self.send_apart(publisher, b"x" * 10)
        assert waiting.is_alive()
        assert len(producer.sent) == fit
        producer.sent[0].succeed()
        waiting.join(timeout=10)
        assert len(producer.sent) == fit + 1

    def test_a_record_that_is_not_taken_takes_no_room(self, publisher: Publisher, producer: FakeProducer) -> None:
        def refuse(*_: object, **__: object) -> FakeFuture:
            raise MessageSizeTooLargeError

        producer.send = refuse  # type: ignore[method-assign]
        with pytest.raises(BrokerRefusedError):
            publisher.send("t", b"k", b"x" * 10)
        assert publisher.in_flight == 0
        assert not publisher.has_failed

    def test_the_first_failure_is_final(self, publisher: Publisher, producer: FakeProducer) -> None:
        for _ in range(3):
            publisher.send("t", b"k", b"x")
        producer.sent[0].succeed()
        producer.sent[1].fail(TopicAuthorizationFailedError("t"))
        producer.sent[2].fail(KafkaError("later"))
        for go_on in (publisher.flush, lambda: publisher.send("t", b"k", b"x")):
            with pytest.raises(BrokerRefusedError, match="refused to write to t: TopicAuthorizationFailedError"):
                go_on()
        assert publisher.acknowledged == {"t": 1}
        assert len(producer.sent) == 3
