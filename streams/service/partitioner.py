"""Which partition a key belongs to: Kafka's default partitioner (murmur2), as every client's default does it.

A record elsewhere would split a node from its pods, so it is not let in. Only the first record of a node is
checked; the hash in Python costs as much as the whole step.
"""

from __future__ import annotations

from aiokafka.partitioner import murmur2

POSITIVE = 0x7FFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Partition number of a key in a topic with that many partitions."""
    return int(murmur2(key) & POSITIVE) % partitions


def belongs(key: bytes, partition: int, partitions: int) -> bool:
    """Whether a record with this key may stand in this partition."""
    return partition_of(key, partitions) == partition
