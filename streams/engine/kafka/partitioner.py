"""Which partition a key belongs to: Kafka's default partitioner (murmur2), as every client's default does it."""

from __future__ import annotations

from aiokafka.partitioner import murmur2

POSITIVE = 0x7FFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Give the partition number of a key in a topic with that many partitions."""
    return int(murmur2(key) & POSITIVE) % partitions
