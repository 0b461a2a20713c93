"""Where an executor begins when the commands topic does not go on where its group stood."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.group_membership import finish_joining
from evictstream.streams.executor import command_consumer
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.harness.executing import CommandWriter
from tests.harness.reading import TopicReader
from tests.streams.executor.serving import PATIENCE_SECONDS, command, run, said, wait_for_results

pytestmark = pytest.mark.kafka


def test_a_topic_that_ends_early_is_read_by_time(
    declared: Settings, api: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=declared.bootstrap_servers, group_id=f"{declared.application_id}-executor-c1"
    )
    partition = TopicPartition(declared.commands_topic, partition_of(b"c1", declared.partitions))
    consumer.assign([partition])
    consumer.commit({partition: OffsetAndMetadata(5_000, "", -1)})
    consumer.close()
    with run(declared, access):
        writer.write(command(pod="a"))
        assert wait_for_results(results, 1) == [("a", 1, "Succeeded")]


def test_a_topic_that_goes_back_is_read_by_time(
    declared: Settings,
    api: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The library goes to the begin where an offset is no longer there, and says nothing."""
    goes_back = threading.Event()

    def go_back(consumer: Any) -> None:
        if goes_back.is_set():
            goes_back.clear()
            for partition in consumer.assignment():
                consumer.seek(partition, 0)
        finish_joining(consumer)

    monkeypatch.setattr(command_consumer, "finish_joining", go_back)
    with run(declared, access):
        writer.write(command(pod="a"), command(pod="b"))
        wait_for_results(results, 2)
        goes_back.set()
        seen = results.wait_for(lambda seen: len(seen) >= 4, "both again", PATIENCE_SECONDS)

    assert set(said(seen)) == {("a", 1, "Succeeded"), ("b", 1, "Succeeded")}
