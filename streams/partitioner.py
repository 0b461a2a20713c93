"""Which partition a cluster is in: Kafka's default partitioner, which every client has."""

from __future__ import annotations

from kafka.partitioner.default import murmur2


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key, among `partitions`."""
    partition: int = (murmur2(key) & 0x7FFFFFFF) % partitions
    return partition
