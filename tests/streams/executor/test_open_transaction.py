"""A transaction that somebody leaves open on the commands topic: probes and Prometheus are told, and of its end too."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator

import pytest
from kafka import KafkaProducer
from prometheus_client.parser import text_string_to_metric_families

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker import open_transactions
from evictstream.streams.executor import command_consumer
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.harness.executing import CommandWriter
from tests.harness.free_port import free_port, ready
from tests.harness.reading import TopicReader
from tests.streams.executor.serving import command, run, wait_for, wait_for_results

pytestmark = pytest.mark.kafka

HELD_SECONDS = 1.0


def values(port: int, name: str, label: str) -> dict[str, float]:
    """Scrape a metric of `c1`, by one of its labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    (found,) = [one.samples for one in families if one.name == name]
    return {sample.labels[label]: sample.value for sample in found if sample.labels["cluster"] == "c1"}


def held_seconds(port: int) -> float:
    return values(port, "evictstream_executor_held_seconds", "cluster").get("c1", 0.0)


@pytest.fixture
def stranger(declared: Settings) -> Iterator[KafkaProducer]:
    """A producer that leaves a transaction open."""
    found = KafkaProducer(bootstrap_servers=declared.bootstrap_servers, transactional_id=f"{declared.topic_prefix}x")
    found.init_transactions()
    found.begin_transaction()
    yield found
    found.close()


def test_an_open_transaction_is_told_until_it_ends(
    declared: Settings,
    api: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
    stranger: KafkaProducer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_transactions, "HELD_SECONDS", HELD_SECONDS)
    monkeypatch.setattr(command_consumer, "SWEEP_SECONDS", 0.1)
    port = free_port()
    with run(declared.model_copy(update={"health_port": port}), access):
        wait_for(lambda: ready(port).get("status") == "ready")
        assert held_seconds(port) == 0.0
        zeros = dict.fromkeys(("Succeeded", "Gone", "Failed", "Obsolete", "Refused", "Observed", "Held"), 0)
        assert values(port, "evictstream_executor_results", "outcome") == zeros, "alerts count from 0"
        stranger.send(declared.commands_topic, b"open", key=b"c1")
        stranger.flush()
        writer.write(command(pod="a"))
        wait_for(lambda: "heldByOpenTransactions" in ready(port))
        found = ready(port)
        assert found["status"] == "not ready"
        assert found["hindered"] == {}
        assert set(found["heldByOpenTransactions"]) == {"c1"}
        assert found["heldByOpenTransactions"]["c1"] >= HELD_SECONDS
        assert held_seconds(port) >= HELD_SECONDS
        assert results.poll() == []
        stranger.abort_transaction()
        assert wait_for_results(results, 1) == [("a", 1, "Succeeded")]
        wait_for(lambda: ready(port).get("status") == "ready")
        assert held_seconds(port) == 0.0


def test_an_open_transaction_of_another_partition_changes_nothing(
    declared: Settings,
    api: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
    stranger: KafkaProducer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(open_transactions, "HELD_SECONDS", HELD_SECONDS)
    monkeypatch.setattr(command_consumer, "SWEEP_SECONDS", 0.1)
    port = free_port()
    other = (partition_of(b"c1", declared.partitions) + 1) % declared.partitions
    stranger.send(declared.commands_topic, b"open", key=b"open", partition=other)
    stranger.flush()
    with run(declared.model_copy(update={"health_port": port}), access):
        writer.write(command(pod="a"))
        assert wait_for_results(results, 1) == [("a", 1, "Succeeded")]
        time.sleep(2 * HELD_SECONDS)  # the fault itself
        assert ready(port)["status"] == "ready"
        assert held_seconds(port) == 0.0
    stranger.abort_transaction()
