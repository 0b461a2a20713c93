"""What readers of kafka-python are spared: giants, transactions on inputs, and batches that are none."""

from __future__ import annotations

import ast
import contextlib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.clients import client_arguments
from evictstream.streams.broker.consumers import BoundedConsumer, open_consumer
from evictstream.streams.settings import Settings

ROOT = Path(__file__).parents[3]
MEBIBYTE = 1 << 20
PATIENCE_SECONDS = 60.0


@pytest.fixture
def declared(settings: Settings) -> Settings:
    declare_topics(settings)
    return settings


@contextlib.contextmanager
def producer(settings: Settings, **more: object) -> Iterator[Any]:
    found = KafkaProducer(**{**client_arguments(settings), "max_request_size": 1 << 30, **more})
    try:
        yield found
    finally:
        found.close()


@contextlib.contextmanager
def reading(settings: Settings, topic: str, **more: Any) -> Iterator[BoundedConsumer]:
    consumer = open_consumer(settings, group_id=None, auto_offset_reset="earliest", **more)
    try:
        consumer.assign([TopicPartition(topic, 0)])
        yield consumer
    finally:
        consumer.close()


def rest(consumer: BoundedConsumer) -> list[Any]:
    """Read to the end of partition 0."""
    (partition,) = consumer.assignment()
    end = consumer.end_offsets([partition])[partition]
    found: list[Any] = []
    while consumer.position(partition) < end:
        for records in consumer.poll(timeout_ms=500).values():
            found += records
    return found


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_giant_is_left_out_and_the_rest_is_read(declared: Settings, codec: str) -> None:
    # Snappy makes a twentieth of zeros, so 36 MB fit where only 8 may be read.
    size = 36 * MEBIBYTE if codec == "snappy" else 64 * MEBIBYTE
    topic = declared.commands_topic
    with producer(declared, compression_type=codec) as out:
        for value in (b"before", bytes(size), b"behind"):
            out.send(topic, value, partition=0).get(PATIENCE_SECONDS)
    with reading(declared, topic) as consumer:
        consumer.poll(timeout_ms=0)
        tracemalloc.start()
        try:
            assert [record.value for record in rest(consumer)] == [b"before", b"behind"]
            assert tracemalloc.get_traced_memory()[1] < size - 4 * MEBIBYTE
        finally:
            tracemalloc.stop()
        assert consumer.left_out == 1


def test_one_poll_returns_no_more_bytes_than_the_bound(declared: Settings) -> None:
    """Of many small batches too, each of which becomes large."""
    topic, count = declared.commands_topic, 20
    with producer(declared, compression_type="zstd") as out:
        for _ in range(count):
            out.send(topic, bytes(6 * MEBIBYTE), partition=0).get(PATIENCE_SECONDS)
    with reading(declared, topic) as consumer:
        polls = 0
        while count:
            found = [record for records in consumer.poll(timeout_ms=500).values() for record in records]
            polls += bool(found)
            assert len(found) <= 1
            count -= len(found)
        assert polls >= 10
        assert consumer.left_out == 0


def test_many_empty_records_of_one_batch_are_read(declared: Settings) -> None:
    topic, count = declared.commands_topic, 20_000
    with producer(declared, compression_type="zstd", batch_size=MEBIBYTE, linger_ms=2_000) as out:
        for _ in range(count):
            out.send(topic, b"", partition=0)
        out.flush(PATIENCE_SECONDS)
    with reading(declared, topic) as consumer:
        assert len(rest(consumer)) == count


def test_inputs_are_read_behind_an_open_transaction(declared: Settings) -> None:
    topic = declared.nodes_topic
    with producer(declared, transactional_id=declared.application_id) as out, producer(declared) as plain:
        out.init_transactions()
        out.begin_transaction()
        out.send(topic, b"of a transaction", partition=0).get(PATIENCE_SECONDS)
        plain.send(topic, b"plain", partition=0).get(PATIENCE_SECONDS)
        with reading(declared, topic, is_of_inputs=True) as consumer:
            assert [record.value for record in rest(consumer)] == [b"plain"]
            assert consumer.left_out == 1
        out.abort_transaction()


def test_a_batch_that_ends_too_early_costs_only_itself(declared: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """No broker takes one, but a name of a header that is no UTF-8: so it is made where it is read."""
    topic = declared.commands_topic
    with producer(declared) as out:
        for headers in ([], [("name", b"x")], []):
            out.send(topic, b"value", partition=0, headers=headers).get(PATIENCE_SECONDS)
    from kafka.record.memory_records import MemoryRecords  # noqa: PLC0415 - only here

    whole = MemoryRecords.next_batch

    def damaged(self: Any) -> Any:
        batch = whole(self)
        if batch is not None:
            batch._buffer = batch._buffer.replace(b"name", b"\xff\xff\xff\xff")
            monkeypatch.setattr(type(batch), "validate_crc", lambda _: True)
        return batch

    monkeypatch.setattr(MemoryRecords, "next_batch", damaged)
    with reading(declared, topic) as consumer:
        assert [record.offset for record in rest(consumer)] == [0, 2]
        assert consumer.left_out == 1


def test_every_consumer_of_the_product_is_made_in_one_place() -> None:
    makers = set[str]()
    for file in sorted([*(ROOT / "streams").rglob("*.py"), *(ROOT / "kit").rglob("*.py")]):
        text = file.read_text(encoding="utf-8")
        # To parse all files would take seconds.
        for node in ast.walk(ast.parse(text)) if "KafkaConsumer" in text else ():
            made = [node.func] if isinstance(node, ast.Call) else node.bases if isinstance(node, ast.ClassDef) else []
            names = {getattr(each, "attr", getattr(each, "id", "")) for each in made}
            if names & {"KafkaConsumer", "AIOKafkaConsumer"}:
                makers.add(file.relative_to(ROOT).as_posix())
    assert makers == {"streams/broker/consumers.py", "streams/engine/kafka/consumer.py"}


def test_a_consumer_learns_of_no_topics_but_those_asked(declared: Settings) -> None:
    consumer = open_consumer(declared, group_id=None)
    try:
        assert consumer.partitions_for_topic(declared.pods_topic) == {0, 1}
        assert consumer.partitions_for_topic(f"{declared.pods_topic}-missing") == set()
        assert consumer.partitions_for_topic(declared.nodes_topic) == {0, 1}
        wanted = {declared.pods_topic, declared.nodes_topic}
        assert consumer._cluster.topics() == consumer._cluster._topics == wanted
    finally:
        consumer.close()


def test_an_answer_on_its_way_leaves_no_topic_out(declared: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = open_consumer(declared, group_id=None)
    asked, ask = [], consumer._net.run

    def without_the_first(*question: Any) -> Any:
        asked.append(question)
        return None if len(asked) == 1 else ask(*question)

    monkeypatch.setattr(consumer._net, "run", without_the_first)
    try:
        assert consumer.partitions_for_topic(declared.pods_topic) == {0, 1}
    finally:
        monkeypatch.undo()
        consumer.close()
