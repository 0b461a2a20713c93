"""Which partitions go to another executor, or went: kafka-python says so in its own thread, the reader acts on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kafka import TopicPartition
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener

from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.streams.broker.group_membership import GroupConsumer

HAND_OVER_SECONDS: Final = 1.0
"""How long a partition that another executor gets waits for what runs. All else goes on meanwhile. What takes longer is
done by both: the second one looks first."""

GiveUp = Callable[[Iterable[int]], list[QueuedEviction]]
"""Begins nothing more of these partitions; returns what waited or runs. Called by any thread."""


class PartitionMoves(AsyncConsumerRebalanceListener):  # type: ignore[misc] # the library has no types
    """Notes what the group takes away; the thread that polls does what follows, between two polls."""

    def __init__(self, consumer: GroupConsumer, give_up: GiveUp) -> None:
        self._consumer = consumer
        self._give_up = give_up
        self._revoked: deque[set[int]] = deque()
        self._lost: deque[tuple[set[int], list[QueuedEviction]]] = deque()
        self._leaving: dict[int, float] = {}
        self._is_ended = False

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Do nothing: the reader takes over what is assigned."""

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Have these partitions handed over. It must not wait: `poll` waits for it, and the reader for `poll`."""
        if not self._is_ended:
            self._consumer.is_handing_over = True
            self._revoked.append({partition.partition for partition in revoked})

    async def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        """Begin nothing more of these partitions at once: another executor has them."""
        numbers = {partition.partition for partition in lost}
        self._lost.append((numbers, self._give_up(numbers)))

    def lost(self) -> Iterator[tuple[set[int], list[QueuedEviction]]]:
        """Yield what was lost since the last call, with what waited or ran of it."""
        while self._lost:
            yield self._lost.popleft()

    def begin(self, numbers: Iterable[int], now: float) -> Iterator[set[int]]:
        """Yield those of these partitions that were revoked since the last call; from now on they are leaving."""
        while self._revoked:
            found = self._revoked.popleft() & set(numbers)
            self._leaving |= dict.fromkeys(found, now + HAND_OVER_SECONDS)
            yield found

    def leaving(self) -> tuple[tuple[int, float], ...]:
        """Return partitions that have not been let go yet, with the second after which nothing is waited for."""
        return tuple(self._leaving.items())

    def __contains__(self, number: int) -> bool:
        """Whether a partition is leaving."""
        return number in self._leaving

    def let_go(self, number: int) -> None:
        """Take note that one was handed over."""
        self._leaving.pop(number, None)

    def settle(self) -> None:
        """Let the group move them, once all were handed over."""
        self._consumer.is_handing_over = bool(self._leaving)

    def end(self) -> None:
        """Hand nothing over any more: `close` of the consumer revokes all, and there is nothing left to do."""
        self._is_ended = True
