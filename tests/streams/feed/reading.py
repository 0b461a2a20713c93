"""What is on topics now, read to the end."""

from __future__ import annotations

from kafka import KafkaConsumer, TopicPartition

from evictstream.streams.broker.clients import client_arguments
from evictstream.streams.broker.follow import FollowedRecord
from evictstream.streams.settings import Settings

PATIENCE_POLLS = 200
POLL_MILLISECONDS = 100


def read(settings: Settings, *topics: str) -> dict[str, list[FollowedRecord]]:
    """Records by topic, those of a partition in their order."""
    consumer = KafkaConsumer(
        **client_arguments(settings), enable_auto_commit=False, max_partition_fetch_bytes=4_000_000
    )
    try:
        partitions = [TopicPartition(t, number) for t in topics for number in consumer.partitions_for_topic(t)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        found: dict[str, list[FollowedRecord]] = {topic: [] for topic in topics}
        for _ in range(PATIENCE_POLLS):
            if all(consumer.position(partition) >= end for partition, end in ends.items()):
                return found
            for partition, records in consumer.poll(timeout_ms=POLL_MILLISECONDS).items():
                found[partition.topic] += [
                    FollowedRecord(
                        partition=record.partition,
                        offset=record.offset,
                        timestamp_ms=record.timestamp,
                        key=record.key,
                        value=record.value,
                        headers=dict(record.headers),
                    )
                    for record in records
                ]
        raise TimeoutError
    finally:
        consumer.close()


def read_one(settings: Settings, topic: str) -> list[FollowedRecord]:
    """Records of one topic."""
    return read(settings, topic)[topic]
