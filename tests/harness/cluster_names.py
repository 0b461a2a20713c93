"""Names of clusters by the partition in which they live: apart, or beside each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from evictstream.streams.partitioner import partition_of


def clusters_apart(partitions: int) -> list[str]:
    """Give a cluster for each partition, by its number."""
    return [next(_living_in(number, partitions)) for number in range(partitions)]


def clusters_beside(cluster: str, count: int, partitions: int) -> list[str]:
    """Give so many other clusters that live in the partition of this one."""
    found = _living_in(partition_of(cluster.encode(), partitions), partitions)
    return list(itertools.islice((name for name in found if name != cluster), count))


def _living_in(partition: int, partitions: int) -> Iterator[str]:
    names = (f"cluster-{number}" for number in itertools.count())
    return (name for name in names if partition_of(name.encode(), partitions) == partition)
