"""Transactions that a broker has left without their marker, and the marker that is written for them.

A transaction ends with a marker in each partition that it has written to. Kafka 4.3 and 4.4 take a partition that has
no leader at that moment for one that was deleted, and leave its marker out (KAFKA-20734). The transaction counts as
committed or aborted; there, its records hang. Nobody who reads ``read_committed`` sees them, nor what is behind them,
until the next transaction that writes there ends and takes them along, whatever should have become of them: commands
of a lost transaction beside those of its partition's next owner, or none of a committed one.

So each transaction has a number, in a row of the changelog and, with its transactional id, in a header of each message.
A take-over looks for what hangs, once nobody else can write, and ends it as the rest of the transaction was ended:
messages by what the changelog says; rows by what can be seen of the messages. Where all of it hangs, or there are no
messages, nothing of it was ever seen, and it is aborted.

One marker ends all that hangs in a partition, so it can be right for one transaction only. That there are two, and what
else is out of reach, stands in docs/guarantees.md.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from evictstream.streams.engine.core.engine_rows import TRANSACTION_HEADER, TRANSACTION_KEY, decode_number
from evictstream.streams.errors import PartitionLostError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.ports import Kafka, LogReader, LogRecord, Place, Producer

log = structlog.get_logger(__name__)

# How far back the newest message is looked for: behind it are markers alone, of attempts to take over. Each of so many
# may be as large as a record can be.
NEWEST_WITHIN = 50

# A marker is written some milliseconds after its transaction was ended.
LOOKS = 50
LOOK_SECONDS = 0.1


def newest_row(records: Iterable[LogRecord]) -> int:
    """Give the number of the newest transaction of which rows are complete, 0 for none."""
    return max((decode_number(record.value) for record in records if record.key == TRANSACTION_KEY), default=0)


def newest_message(records: Iterable[LogRecord], transactional_id: str) -> int:
    """Give the number of the newest transaction under an id that messages are of, 0 for none."""
    marks = (
        value.rpartition(b"/") for record in records for name, value in record.headers if name == TRANSACTION_HEADER
    )
    ours = transactional_id.encode()
    return max((int(number) for owner, _, number in marks if owner == ours and number.isdigit()), default=0)


class Markers:
    """Finds what hangs in the partitions of a take-over and ends it: rows before they are read, messages after that."""

    def __init__(
        self, producers: Mapping[int, Producer], *, stable: LogReader, kafka: Kafka, config: EngineConfig
    ) -> None:
        """`stable` reads `read_committed`."""
        self._producers = producers
        self._kafka = kafka
        self._stable = stable
        self._config = config
        self._rows: dict[Place, tuple[int, int]] = {}
        self._messages: dict[Place, tuple[int, int]] = {}

    async def end_rows(self) -> None:
        """Find all that hangs, and end what hangs in changelogs.

        Raises:
            PartitionLostError: a marker could not be written; may be tried again.

        """
        await self._find()
        for (changelog, number), (transaction, end) in self._rows.items():
            newest = max([await self._newest_message((topic, number)) for topic in self._config.outputs], default=0)
            if not await self._end((changelog, number), transaction, end, commit=0 < transaction <= newest):
                raise PartitionLostError(partition=number, reason=f"{changelog} stays without a marker")

    async def end_messages(self, newest: Mapping[int, int]) -> None:
        """End what hangs in outputs; `newest` has by partition the number of the last transaction that rows are of.

        Where that does not succeed, the take-over goes on: the rest of what this worker does, it does.

        Raises:
            PartitionLostError: the broker could not be asked for a marker; may be tried again.

        """
        for (topic, number), (transaction, end) in self._messages.items():
            commit = transaction <= newest[number]
            if not await self._end((topic, number), transaction, end, commit=commit):
                log.error(
                    "a transaction hangs that we cannot end: end it with Kafka's own `kafka-transactions.sh abort`",
                    topic=topic,
                    partition=number,
                )

    async def _find(self) -> None:
        topics = (self._config.changelog, *self._config.outputs)
        places = [(topic, number) for topic in topics for number in self._producers]
        stable = await self._stable.ends(places)
        async with self._kafka.reader(isolation="read_uncommitted") as everything:
            ends = await everything.ends(places)
            for topic, number in places:
                begin, end = stable[topic, number], ends[topic, number]
                if begin >= end:
                    continue
                if topic == self._config.changelog:
                    rows = await everything.records((topic, number), begin, end)
                    self._rows[topic, number] = (newest_row(rows), end)
                    continue
                first = await everything.records((topic, number), begin, begin + 1)
                transaction = newest_message(first, self._config.transactional_id(number))
                if transaction:
                    self._messages[topic, number] = (transaction, end)
                else:
                    log.info("somebody else's transaction is open", topic=topic, partition=number)

    async def _newest_message(self, place: Place) -> int:
        """Give the number of the newest message of ours that everybody sees."""
        start, end = (await self._stable.starts_and_ends([place]))[place]
        newest = await self._stable.records(place, max(start, end - NEWEST_WITHIN), end)
        return newest_message(newest, self._config.transactional_id(place[1]))

    async def _end(self, place: Place, transaction: int, end: int, *, commit: bool) -> bool:
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
                return True
            await asyncio.sleep(LOOK_SECONDS)
        return False
