"""Transactions that a broker has left without their marker, and the marker that is written for them.

A transaction ends with a marker in each partition that it has written to. Kafka 4.3 and 4.4 take a partition that has
no leader at that moment for one that was deleted, and leave its marker out (KAFKA-20734). The transaction counts as
committed or aborted; there, its records hang. Nobody who reads ``read_committed`` sees them, nor what is behind them,
until the next transaction that writes there ends and takes them along, whatever should have become of them: commands
of a lost transaction beside those of its partition's next owner, or none of a committed one.

So each transaction has a number, in a row of the changelog and in a header of each message. A take-over looks for what
hangs, once nobody else can write, and ends it as the rest of the transaction was ended: messages by what the changelog
says; rows by what can be seen of the messages. Where all of it hangs, or there are no messages, nothing of it was ever
seen, and it is aborted.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from streams.engine.changelog import LogReader
from streams.errors import PartitionLostError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiokafka import ConsumerRecord

    from streams.engine.config import EngineConfig
    from streams.engine.transactions import PartitionProducer

log = structlog.get_logger(__name__)

TRANSACTION_KEY = b"\x00transaction"
"""Row key of the number of the transaction that wrote it; they count up, by partition."""

TRANSACTION_HEADER = "transaction"
"""Header of each message with the number of its transaction."""

# How far back the newest messages are looked for: behind them are markers alone, of attempts to take over.
NEWEST_WITHIN = 1_000

# A marker is written some milliseconds after its transaction was ended.
LOOKS = 50
LOOK_SECONDS = 0.1

Place = tuple[str, int]


def encode_number(number: int) -> bytes:
    """Write a number for row and header."""
    return b"%d" % number


def decode_number(value: bytes | None) -> int:
    """Read what :func:`encode_number` wrote; 0 for anything else."""
    return int(value) if value is not None and value.isdigit() else 0


class Markers:
    """Finds what hangs in the partitions of a take-over, after the fence, and ends it.

    Nothing is asked for or written twice: `end_rows` first, then the rows are read, then `end_messages`.
    """

    def __init__(self, producers: Mapping[int, PartitionProducer], stable: LogReader, config: EngineConfig) -> None:
        """Prepare; ``stable`` reads ``read_committed``."""
        self._producers = producers
        self._stable = stable
        self._config = config
        self._hanging: dict[Place, tuple[int, int]] = {}

    async def end_rows(self) -> None:
        """Find all that hangs, and end what hangs in changelogs.

        Raises:
            PartitionLostError: a marker could not be written; may be tried again.

        """
        topics = (self._config.changelog, *self._config.outputs)
        places = [(topic, number) for topic in topics for number in self._producers]
        stable = await self._stable.ends(places)
        async with LogReader(self._config, isolation="read_uncommitted") as everything:
            ends = await everything.ends(places)
            for place in places:
                if stable[place] < ends[place]:
                    # Each message has its number; of the rows of a transaction, it is one of the last.
                    first_alone = stable[place] + 1 if place[0] in self._config.outputs else ends[place]
                    transaction = _newest(await everything.records(place, stable[place], first_alone))
                    if transaction:
                        self._hanging[place] = (transaction, ends[place])
                    else:
                        log.warning("somebody else has left a transaction open", topic=place[0], partition=place[1])
        for number in self._producers:
            rows = (self._config.changelog, number)
            if rows in self._hanging:
                transaction, end = self._hanging.pop(rows)
                newest = max([await self._newest_number((topic, number)) for topic in self._config.outputs], default=0)
                await self._end(rows, transaction, end, commit=newest >= transaction)

    async def end_messages(self) -> None:
        """End what hangs in outputs, now that the rows have told which transaction was the last.

        Raises:
            PartitionLostError: a marker could not be written; may be tried again.

        """
        for place, (transaction, end) in self._hanging.items():
            committed = transaction <= self._producers[place[1]].number
            await self._end(place, transaction, end, commit=committed)

    async def _newest_number(self, place: Place) -> int:
        """Give the number of the newest message that can be seen, 0 where there is none."""
        start, end = (await self._stable.starts_and_ends([place]))[place]
        return _newest(await self._stable.records(place, max(start, end - NEWEST_WITHIN), end))

    async def _end(self, place: Place, transaction: int, end: int, *, commit: bool) -> None:
        topic, number = place
        log.warning(
            "a broker has left out the marker of a transaction: written now",
            topic=topic,
            partition=number,
            transaction=transaction,
            committed=commit,
        )
        await self._producers[number].mark(topic, commit=commit)
        for _ in range(LOOKS):
            if (await self._stable.ends([place]))[place] >= end:
                return
            await asyncio.sleep(LOOK_SECONDS)
        reason = f"transaction {transaction} stays without its marker in {topic}"
        raise PartitionLostError(partition=number, reason=reason)


def _newest(records: list[ConsumerRecord]) -> int:
    """Give the greatest number that stands in a row or in a header, 0 for none."""
    rows = (record.value for record in records if record.key == TRANSACTION_KEY)
    headers = (value for record in records for name, value in record.headers if name == TRANSACTION_HEADER)
    return max(map(decode_number, (*rows, *headers)), default=0)
