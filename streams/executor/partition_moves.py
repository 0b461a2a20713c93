"""What the group takes away: kafka-python reports it in its own thread, and the consumer acts on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from kafka import TopicPartition
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener

from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.streams.executor.cluster_assignor import ClusterAssignor

RemoveEvictions = Callable[[], list[QueuedEviction]]
"""Removes all evictions from the queue, and returns them and those that run. Called by any thread."""


class PartitionMoves(AsyncConsumerRebalanceListener):  # type: ignore[misc] # the library has no types
    """Begins nothing more of a partition that is gone, and keeps this until the consumer's thread asks for it."""

    def __init__(self, assignor: ClusterAssignor, remove_evictions: RemoveEvictions) -> None:
        self._assignor = assignor
        self._remove_evictions = remove_evictions
        self._lost: deque[list[QueuedEviction]] = deque()

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Do nothing: the consumer takes over a new partition by itself."""

    async def on_partitions_revoked(self, _revoked: Iterable[TopicPartition]) -> None:
        """Remove the evictions: two members claim the partition, or the consumer closes."""
        self._lost.append(self._remove_evictions())

    async def on_partitions_lost(self, _lost: Iterable[TopicPartition]) -> None:
        """Remove the evictions, and claim the partition no more: another executor may have it."""
        self._assignor.forget()
        self._lost.append(self._remove_evictions())

    def lost(self) -> Iterator[list[QueuedEviction]]:
        """Yield for each loss of the partition since the last call the evictions that waited or ran."""
        while self._lost:
            yield self._lost.popleft()
