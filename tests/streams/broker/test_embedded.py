from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from evictstream.streams.broker import embedded
from evictstream.streams.broker.admin import check_topics, declare_topics
from evictstream.streams.broker.admin_client import probe
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.errors import BrokerFailedError, BrokerUnreachableError, PlaceUnusableError, WrongUseError
from evictstream.streams.settings import Settings


@pytest.fixture(scope="module")
def standing() -> Iterator[EmbeddedBroker]:
    """A broker that each test leaves running."""
    with EmbeddedBroker() as broker:
        yield broker


def settings_of(broker: EmbeddedBroker) -> Settings:
    return Settings(bootstrap_servers=broker.bootstrap_servers, partitions=1, admin_timeout_seconds=2)


def active(broker: EmbeddedBroker) -> int:
    answer = probe(broker.bootstrap_servers)
    return 0 if answer is None else answer.active_brokers


def write(broker: EmbeddedBroker, topic: str, value: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks="all", max_request_size=3_000_000)
    try:
        producer.send(topic, value).get(timeout=20)
    finally:
        producer.close()


def read(broker: EmbeddedBroker, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(topic, 0)])
        values: list[bytes] = []
        give_up_at = time.monotonic() + 20
        while len(values) < count and time.monotonic() < give_up_at:
            for records in consumer.poll(timeout_ms=200).values():
                values += [record.value for record in records]
        return values
    finally:
        consumer.close()


def becomes_true(condition: Callable[[], bool], seconds: float = 20) -> bool:
    give_up_at = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.05)
    return True


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.kafka
def test_kill_and_restart_keep_data_and_address(standing: EmbeddedBroker) -> None:
    settings = settings_of(standing)
    address = standing.bootstrap_servers
    declare_topics(settings, [topic_specs(settings)[0]])
    write(standing, settings.nodes_topic, b"before")

    standing.kill()
    with pytest.raises(BrokerUnreachableError):
        check_topics(settings)
    with pytest.raises(BrokerFailedError, match="ended with code -9"):
        standing.raise_if_ended()

    standing.restart()
    assert standing.bootstrap_servers == address
    write(standing, settings.nodes_topic, b"after")
    assert read(standing, settings.nodes_topic, 2) == [b"before", b"after"]


@pytest.mark.kafka
def test_paused_it_does_not_answer_resumed_it_does(standing: EmbeddedBroker) -> None:
    standing.pause()
    # A signal stops the threads of a busy machine one after another: one may still answer.
    assert becomes_true(lambda: active(standing) == 0)
    standing.resume()
    assert becomes_true(lambda: active(standing) == 1)


def test_stop_ends_a_paused_broker_and_removes_its_folder(own_broker: EmbeddedBroker) -> None:
    (node,) = own_broker.nodes
    pid, folder = node.pid, node.log_file.parent.parent
    assert pid is not None
    own_broker.pause()
    own_broker.stop()
    assert not is_running(pid)
    assert node.pid is None
    assert not folder.exists()
    own_broker.stop()  # again is fine


@pytest.mark.kafka
def test_topics_take_the_largest_object(standing: EmbeddedBroker) -> None:
    settings = settings_of(standing)
    declare_topics(settings)
    largest = b"x" * settings.max_object_bytes
    write(standing, settings.dead_letters_topic, largest)
    assert read(standing, settings.dead_letters_topic, 1) == [largest]


def test_a_port_of_another_program_is_refused_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PlaceUnusableError) as refused:
            EmbeddedBroker(port=port).start()
    assert refused.value.place == f"port {port}"


@pytest.mark.kafka
@pytest.mark.kit
def test_the_next_run_finds_data_in_the_given_folder(tmp_path: Path) -> None:
    with EmbeddedBroker(data=tmp_path / "kafka") as first:
        with pytest.raises(PlaceUnusableError):
            EmbeddedBroker(data=tmp_path / "kafka").start()
        settings = settings_of(first)
        declare_topics(settings)
        write(first, settings.nodes_topic, b"kept")
    with EmbeddedBroker(data=tmp_path / "kafka") as second:
        assert check_topics(settings_of(second)).differences == ()
        assert read(second, settings.nodes_topic, 1) == [b"kept"]


@pytest.mark.kafka
def test_it_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    program = (
        "import time\n"
        "from evictstream.streams.broker.embedded import EmbeddedBroker\n"
        "broker = EmbeddedBroker().start()\n"
        "print(broker.nodes[0].pid, broker.nodes[0].log_file.parent.parent, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().split()
        parent.send_signal(signal.SIGKILL)
    assert becomes_true(lambda: not is_running(int(pid)))
    assert becomes_true(lambda: not Path(folder).exists())


@pytest.mark.kafka
def test_a_process_that_ends_at_once_raises_its_last_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "is_listened_on", lambda _: False)  # it is taken right after the look
    taken = free_ports(1)[0]
    with (
        socket.create_server(("127.0.0.1", taken)),
        pytest.raises(BrokerFailedError, match="ended with code 1") as caught,
    ):
        EmbeddedBroker(port=taken).start()
    assert "Address already in use" in caught.value.log_tail


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.kit
def test_three_nodes_survive_the_loss_of_one() -> None:
    with EmbeddedBroker(nodes=3, heap_megabytes=256) as broker:
        settings = settings_of(broker).model_copy(update={"replication_factor": 3, "min_insync_replicas": 2})
        assert declare_topics(settings).differences == ()
        broker.nodes[0].kill()
        assert becomes_true(lambda: active(broker) == 2)
        write(broker, settings.nodes_topic, b"without one")
        broker.start()
        assert active(broker) == 3


@pytest.mark.parametrize("nodes", [0, 6])
def test_number_of_nodes_has_limits(nodes: int) -> None:
    with pytest.raises(WrongUseError, match="1 to 5 nodes"):
        EmbeddedBroker(nodes=nodes)


def test_a_folder_of_another_cluster_size_is_refused(tmp_path: Path) -> None:
    EmbeddedBroker(data=tmp_path, nodes=1)
    with pytest.raises(WrongUseError, match=r"belongs to an embedded Kafka of 1 node\(s\)"):
        EmbeddedBroker(data=tmp_path, nodes=3)
