"""Transactions that a broker has left without their marker, and the marker that is written for them.

A transaction ends with a marker in each partition that it has written to. Kafka 4.3 and 4.4 take a partition that has
no leader at that moment for one that was deleted, and leave its marker out (KAFKA-20734). The coordinator counts the
transaction as committed or aborted; in that partition it stays open. Its records, and all records behind them, are
above the last stable offset, so no `read_committed` reader sees them, until the next transaction that writes there
ends. The marker of that one ends both: commands of a lost transaction become visible beside those of the partition's
next owner, or records of a committed one are aborted.

So each transaction has a number, in a row of the changelog and, with its transactional id, in a header of each message.
A takeover has fenced all other writers, so what is open now lacks its marker. It ends such a transaction as the rest
of it was ended: messages by what the changelog says; rows by the messages that can be read. Where all partitions lack
the marker, or there are no messages, nobody has seen anything of the transaction, and it is aborted.

One marker ends everything that is open in a partition, so it can be right for one transaction only. What happens where
there are two, and other limits: docs/guarantees.md.
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
    from evictstream.streams.engine.core.ports import LogReader, LogRecord, Place, Producer

log = structlog.get_logger(__name__)

# How many offsets before the end are searched for the newest message: behind it are only markers, of attempts to take
# over. Not more, since each record may be as large as a topic takes.
NEWEST_WITHIN = 50

# The coordinator writes a marker some milliseconds after it has answered.
LOOKS = 50
_LOOK_SECONDS = 0.1


def newest_row(records: Iterable[LogRecord]) -> int:
    """Return the number of the newest transaction whose rows are complete, 0 without any."""
    return max((decode_number(record.value) for record in records if record.key == TRANSACTION_KEY), default=0)


def newest_message(records: Iterable[LogRecord], transactional_id: str) -> int:
    """Return the number of the newest transaction of a transactional id that wrote one of the messages, 0 for none."""
    headers = (
        value.rpartition(b"/") for record in records for name, value in record.headers if name == TRANSACTION_HEADER
    )
    wanted = transactional_id.encode()
    return max((int(number) for owner, _, number in headers if owner == wanted and number.isdigit()), default=0)


class Markers:
    """Ends the open transactions in the partitions of a takeover: rows before they are read, messages after that."""

    def __init__(
        self, producers: Mapping[int, Producer], *, stable: LogReader, everything: LogReader, config: EngineConfig
    ) -> None:
        """`stable` reads `read_committed`, `everything` `read_uncommitted`."""
        self._producers = producers
        self._stable = stable
        self._everything = everything
        self._config = config
        self._rows: dict[Place, tuple[int, int]] = {}
        self._messages: dict[Place, tuple[int, int]] = {}

    async def end_rows(self) -> None:
        """Find all open transactions, and end those in changelogs.

        Raises:
            PartitionLostError: a marker could not be written; may be tried again.
        """
        await self._find()
        for (changelog, number), (transaction, end) in self._rows.items():
            newest = max([await self._newest_message((topic, number)) for topic in self._config.outputs], default=0)
            if not await self._end((changelog, number), transaction, end, commit=0 < transaction <= newest):
                raise PartitionLostError(partition=number, reason=f"{changelog} stays without a marker")

    async def end_messages(self, newest: Mapping[int, int]) -> None:
        """End the open transactions in outputs.

        `newest` has by partition number the last transaction in the rows. Where a marker has no effect, the takeover
        goes on: everything but these messages works without it.

        Raises:
            PartitionLostError: a marker could not be asked for; may be tried again.
        """
        for (topic, number), (transaction, end) in self._messages.items():
            commit = transaction <= newest[number]
            if not await self._end((topic, number), transaction, end, commit=commit):
                log.error(
                    "transaction still open: abort it with `kafka-transactions.sh abort`",
                    topic=topic,
                    partition=number,
                )

    async def _find(self) -> None:
        topics = (self._config.changelog, *self._config.outputs)
        places = [(topic, number) for topic in topics for number in self._producers]
        stable = await self._stable.ends(places)
        ends = await self._everything.ends(places)
        for topic, number in places:
            begin, end = stable[topic, number], ends[topic, number]
            if begin >= end:
                continue
            if topic == self._config.changelog:
                rows = await self._everything.records((topic, number), begin, end)
                self._rows[topic, number] = (newest_row(rows), end)
                continue
            first = await self._everything.records((topic, number), begin, begin + 1)
            transaction = newest_message(first, self._config.transactional_id(number))
            if transaction:
                self._messages[topic, number] = (transaction, end)
            else:
                log.info("transaction of another application is open", topic=topic, partition=number)

    async def _newest_message(self, place: Place) -> int:
        """Return the number of this application's newest message that every reader sees."""
        start, end = (await self._stable.starts_and_ends([place]))[place]
        newest = await self._stable.records(place, max(start, end - NEWEST_WITHIN), end)
        return newest_message(newest, self._config.transactional_id(place[1]))

    async def _end(self, place: Place, transaction: int, end: int, *, commit: bool) -> bool:
        topic, number = place
        log.warning(
            "broker omitted a transaction marker: written now",
            topic=topic,
            partition=number,
            transaction=transaction,
            committed=commit,
        )
        await self._producers[number].mark(topic, commit=commit)
        for _ in range(LOOKS):
            if (await self._stable.ends([place]))[place] >= end:
                return True
            await asyncio.sleep(_LOOK_SECONDS)
        return False
