"""Where a reader of committed records stands before a transaction that somebody leaves open, and since when.

Such a reader gets no record behind it, and asked where the topic ends it hears that it stands there. Only the high
watermark, which comes with each fetch, tells that more is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import structlog
from kafka import TopicPartition

log = structlog.get_logger(__name__)

HELD_SECONDS: Final = 30.0
"""A worker's transaction takes milliseconds. One that is open for longer is that of a worker that died, which ends with
the takeover of its partition, or somebody else's."""


class _Stand(NamedTuple):
    offset: int
    since: float


class OpenTransactions:
    """Watches the partitions of one consumer."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._stands: dict[int, _Stand] = {}
        self._reported: set[int] = set()

    def look(self, consumer: Any, numbers: Iterable[int], now: float) -> None:
        """Look where the consumer stands in these partitions, which it reads; call it every few seconds."""
        stands: dict[int, _Stand] = {}
        for number in numbers:
            partition = TopicPartition(self._topic, number)
            state = consumer._subscription.assignment.get(partition)  # noqa: SLF001 - `position` may ask and wait
            if state is None or state.position is None or state.highwater is None:
                continue
            offset = int(state.position.offset)
            if offset < state.highwater:
                stand = self._stands.get(number)
                stands[number] = stand if stand is not None and stand.offset == offset else _Stand(offset, now)
        self._stands = stands
        blocked = self.held(now)
        for number in blocked.keys() - self._reported:
            log.warning(
                "open transaction blocks reading: find its producer with `kafka-transactions.sh find-hanging`, "
                "and end it with `abort`",
                topic=self._topic,
                partition=number,
                offset=stands[number].offset,
                seconds=round(blocked[number]),
            )
        for number in self._reported - blocked.keys():
            log.warning("open transaction ended, reading continues", topic=self._topic, partition=number)
        self._reported = set(blocked)

    def seconds(self, now: float) -> float:
        """Return for how long the reader has stood before unread records, in the partition where it is longest."""
        return max((now - stand.since for stand in list(self._stands.values())), default=0.0)

    def held(self, now: float) -> dict[int, float]:
        """Return the partitions in which that is too long, and for how long."""
        ages = {number: now - stand.since for number, stand in list(self._stands.items())}
        return {number: age for number, age in ages.items() if age >= HELD_SECONDS}
