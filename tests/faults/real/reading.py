"""What stands on the topics of a schedule, for the oracle: all inputs as appended, all outputs as committed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

from kafka import KafkaConsumer, TopicPartition

from evictstream.kit.oracle.records import InputRecord, InputTopic, MessageRecord, OutputTopic
from evictstream.streams.settings import Settings

INPUTS: tuple[InputTopic, ...] = ("nodes", "pods", "results")
OUTPUTS: tuple[OutputTopic, ...] = ("commands", "decisions", "dead-letters")
POLL_MS = 200
READ_SECONDS = 30.0


class UnreadableTopicError(AssertionError):
    """The end of a topic cannot be reached: a transaction that nobody ends hides it."""


def new_consumer(settings: Settings, topics: Sequence[str], isolation: str = "read_committed") -> KafkaConsumer:
    """Make a reader of whole topics from their start, without a group."""
    consumer = KafkaConsumer(
        bootstrap_servers=settings.bootstrap_servers,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        group_id=None,
        fetch_max_wait_ms=50,
    )
    consumer.assign([TopicPartition(topic, number) for topic in topics for number in range(settings.partitions)])
    return consumer


def read_all(settings: Settings, topics: Sequence[str]) -> dict[str, list[Any]]:
    """Read topics from start to end as a `read_committed` reader; records by topic, each partition's by offset.

    Raises:
        UnreadableTopicError: a `read_committed` reader cannot get as far as one that reads everything.
    """
    everything = new_consumer(settings, topics, "read_uncommitted")
    ends = everything.end_offsets(everything.assignment())
    everything.close()
    consumer = new_consumer(settings, topics)
    found: dict[str, list[Any]] = {topic: [] for topic in topics}
    until = time.monotonic() + READ_SECONDS
    try:
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            if time.monotonic() > until:
                behind = [str(partition) for partition, end in ends.items() if consumer.position(partition) < end]
                raise UnreadableTopicError(f"no end in {READ_SECONDS:g} s: {', '.join(behind)}")
            for partition, records in consumer.poll(timeout_ms=POLL_MS).items():
                found[partition.topic] += records
    finally:
        consumer.close()
    return found


def read_log(settings: Settings) -> tuple[list[InputRecord], list[MessageRecord]]:
    """Read inputs and outputs. Raises `UnreadableTopicError`."""
    names = {f"{settings.topic_prefix}{topic}": topic for topic in (*INPUTS, *OUTPUTS)}
    inputs: list[InputRecord] = []
    messages: list[MessageRecord] = []
    for name, records in read_all(settings, list(names)).items():
        topic = names[name]
        for record in records:
            at_us, key = record.timestamp * 1000, record.key
            if topic in INPUTS:
                heard = InputRecord(
                    topic=topic,
                    partition=record.partition,
                    offset=record.offset,
                    append_at_us=at_us,
                    key=key,
                    value=record.value,
                )
                inputs.append(heard)
            else:
                told = MessageRecord(
                    topic=cast("OutputTopic", topic),
                    partition=record.partition,
                    offset=record.offset,
                    append_at_us=at_us,
                    key=key,
                    headers=dict(record.headers),
                    value=record.value,
                )
                messages.append(told)
    return inputs, messages
