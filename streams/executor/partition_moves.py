"""Which partitions the group takes away: kafka-python reports it in its own thread, and the consumer acts on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kafka import TopicPartition
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener

from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.streams.broker.group_membership import GroupConsumer

HAND_OVER_SECONDS: Final = 1.0
"""How long a revoked partition waits for evictions that run, while everything else continues. Longer ones are done by
both executors: the second one looks first."""

RemoveEvictions = Callable[[Iterable[int]], list[QueuedEviction]]
"""Removes the evictions of these partitions from the queue, and returns them and those that run. Called by any
thread."""


class PartitionMoves(AsyncConsumerRebalanceListener):  # type: ignore[misc] # the library has no types
    """Keeps what the group has revoked, until the consumer's thread handles it between two polls."""

    def __init__(self, consumer: GroupConsumer, remove_evictions: RemoveEvictions) -> None:
        self._consumer = consumer
        self._remove_evictions = remove_evictions
        self._revoked: deque[set[int]] = deque()
        self._lost: deque[tuple[set[int], list[QueuedEviction]]] = deque()
        self._is_ended = False

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Do nothing: the consumer takes over new partitions by itself."""

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Have these partitions handed over. It must not wait: `poll` waits for it, and the consumer for `poll`."""
        if not self._is_ended:
            self._consumer.is_handing_over = True
            self._revoked.append({partition.partition for partition in revoked})

    async def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        """Remove their evictions from the queue at once: another executor has these partitions."""
        numbers = {partition.partition for partition in lost}
        self._lost.append((numbers, self._remove_evictions(numbers)))

    def lost(self) -> Iterator[tuple[set[int], list[QueuedEviction]]]:
        """Yield the partitions that were lost since the last call, with their evictions."""
        while self._lost:
            yield self._lost.popleft()

    def revoked(self) -> Iterator[set[int]]:
        """Yield the partitions that were revoked since the last call."""
        while self._revoked:
            yield self._revoked.popleft()

    def settle(self, *, is_handing_over: bool) -> None:
        """Tell the library whether revoked partitions are still being handed over; if not, the group may move them."""
        self._consumer.is_handing_over = is_handing_over

    def end(self) -> None:
        """Ignore further revocations: `close` of the consumer revokes all, after everything was committed."""
        self._is_ended = True
