"""One transactional producer for one partition number: all of an outbox becomes visible, or none of it.

Its start (`InitProducerId`) fences the producer that used the same transactional id before and aborts its open
transaction; that, and no other lock, makes a worker the owner of a partition. aiokafka 0.14 commits a transaction even
when the broker has refused one of its batches, so every batch is awaited before the commit is asked for.

A producer that has failed once is never used again: the next takeover makes a new one.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from aiokafka import TopicPartition
from aiokafka import errors as kafka_errors

from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.engine_rows import (
    TRANSACTION_HEADER,
    TRANSACTION_KEY,
    encode_header,
    encode_number,
)
from evictstream.streams.engine.core.outbox import NO_HEADERS
from evictstream.streams.engine.core.permit import Permit
from evictstream.streams.engine.core.ports import Committed, KafkaClientError
from evictstream.streams.engine.core.waits import Wait
from evictstream.streams.engine.kafka.errors import AUTHORIZATION_ERRORS
from evictstream.streams.engine.kafka.log_reader import KafkaLogReader
from evictstream.streams.engine.kafka.transaction_v2 import NO_OFFSET, Appended
from evictstream.streams.engine.kafka.transactional_producer import TransactionalProducer
from evictstream.streams.errors import PartitionLostError, ProduceRefusedError

if TYPE_CHECKING:
    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.outbox import Headers, Message, Outbox
    from evictstream.streams.engine.core.ports import Clock, LogReader
    from evictstream.streams.engine.kafka.transaction_v2 import BatchEntry, TransactionsV2

_T = TypeVar("_T")

# The coordinator answers a commit before its markers are written. It refuses a transaction that begins within that
# time, and aiokafka tries again 20 ms later. This wait makes 6.5 ms of 25 ms per transaction.
_SETTLE_SECONDS = 0.003

# Some NAT gateways and load balancers silently drop a connection that is idle for four minutes, and a transaction would
# wait for an answer that cannot come. The connection to the leader of commands may be idle for days.
IDLE_MS = 180_000

# A marker is written some milliseconds after the commit, if it is not left out.
MARKER_LOOKS, MARKER_LOOK_SECONDS = 20, 0.1

# How long a cancelled `mark` may take; a marker is written within some milliseconds.
MARK_SECONDS = 2.0


class PartitionProducer:
    """Writes the outboxes of one partition number, one transaction each.

    Each transaction has the next number, by which `engine.core.markers` tells one from another.
    """

    def __init__(
        self,
        partition: int,
        config: EngineConfig,
        permit: Permit | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        new_client: Callable[..., Any] = TransactionalProducer,
        new_reader: Callable[..., LogReader] | None = None,
    ) -> None:
        """`start` waits for the permit, if there is one, before it fences."""
        self.partition = partition
        self._number = 0
        self._unacknowledged = Wait()
        self._config = config
        self._new_reader = new_reader or functools.partial(KafkaLogReader, config)
        self._monotonic = clock.monotonic
        timeout_ms = int(config.transaction_timeout_seconds * 1000)
        self._producer = new_client(
            permit=permit or Permit(clock.monotonic),
            bootstrap_servers=config.bootstrap_servers,
            client_id=config.transactional_id(partition),
            transactional_id=config.transactional_id(partition),
            transaction_timeout_ms=timeout_ms,
            # A batch may wait for a leader as long as its transaction may: no earlier expiry.
            request_timeout_ms=timeout_ms,
            connections_max_idle_ms=IDLE_MS,
            max_batch_size=config.max_batch_bytes,
            # This class builds whole batches; the limit only has to let one large record through.
            max_request_size=max(config.max_record_bytes, config.max_batch_bytes) * 2,
            acks="all",
            **config.security,
        )
        self._settled_at = 0.0

    def count_from(self, number: int) -> None:
        """Give the next transaction the number after this one."""
        self._number = number

    def unacknowledged_seconds(self, now: float) -> float:
        """How long records that were sent have waited to be acknowledged."""
        return self._unacknowledged.age_seconds(now)

    async def start(self) -> None:
        """Fence the previous owner. Returns when its open transaction, if any, has been aborted.

        Raises:
            ProduceRefusedError: the broker forbids this transactional id.
            PartitionLostError: the broker could not be reached or answered otherwise.
        """
        try:
            await self._producer.start()
        except AUTHORIZATION_ERRORS as error:
            raise self._refused(error) from error
        except (kafka_errors.KafkaError, OSError, AssertionError) as error:
            # A broker that has just come back may name no broker at all, which aiokafka takes for its own mistake.
            raise PartitionLostError(partition=self.partition, reason=repr(error)) from error

    async def commit(self, outbox: Outbox, extra_rows: dict[bytes, bytes], *, lands_at: int | None = None) -> Committed:
        """Write an outbox and some more rows (positions) in one transaction.

        Returns when the broker has committed it: `read_committed` readers see all of it from then on. With `lands_at`
        the partition counts as lost unless the first row got that offset in the changelog.

        Raises:
            ProduceRefusedError: something can never be written; the process has to stop.
            PartitionLostError: fenced, timed out or otherwise unknown; take the partition over again.
        """
        sent_at = self._monotonic()
        broker_ms = await self._in_time(self._write(outbox, extra_rows, lands_at))
        self._number += 1
        return Committed(broker_ms, sent_at, self._monotonic())

    async def mark(self, topic: str, *, commit: bool) -> None:
        """Write the marker of a transaction that lacks it in this partition of a topic. Raises as `commit` does.

        When cancelled it goes on for a little: it is two requests, and after the first one alone the next owner would
        abort the transaction.
        """
        marking = asyncio.ensure_future(
            self._in_time(self._producer.mark(TopicPartition(topic, self.partition), commit=commit))
        )
        marking.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            await asyncio.shield(marking)
        except asyncio.CancelledError:
            await asyncio.wait([marking], timeout=MARK_SECONDS)
            marking.cancel()
            raise

    async def _in_time(self, transaction: Awaitable[_T]) -> _T:
        try:
            async with asyncio.timeout(self._config.transaction_timeout_seconds):
                return await transaction
        except AUTHORIZATION_ERRORS as error:
            raise self._refused(error) from error
        except (kafka_errors.KafkaError, KafkaClientError, OSError, TimeoutError, AssertionError) as error:
            # aiokafka guards its transaction states with assertions: a lost transaction can show as one.
            raise PartitionLostError(partition=self.partition, reason=repr(error)) from error

    async def _write(self, outbox: Outbox, extra_rows: dict[bytes, bytes], lands_at: int | None) -> int:
        await asyncio.sleep(self._settled_at - self._monotonic())
        contents = self._contents(outbox, extra_rows)
        v2: TransactionsV2 | None = self._producer.v2
        if v2 is None:
            await self._producer.begin_transaction()
        self._unacknowledged.begin(self._monotonic())
        try:
            first, *_ = await (self._append(contents) if v2 is None else v2.append(self.partition, contents))
        finally:
            self._unacknowledged.end()
        if lands_at is not None and first.offset not in {NO_OFFSET, lands_at}:
            reason = f"the changelog was read up to {lands_at}, but ends at {first.offset}"
            raise PartitionLostError(partition=self.partition, reason=reason)
        if v2 is None:
            await self._producer.commit_transaction()
        elif await v2.end(commit=True):
            await self._find_markers(contents)
        self._settled_at = self._monotonic() + _SETTLE_SECONDS
        return int(first.timestamp)

    async def _find_markers(self, topics: Iterable[str]) -> None:
        """Fail where a committed transaction lacks its marker; the next owner writes it (see `engine.core.markers`).

        A commit has to be asked for again when brokers come and go, and that is when they leave markers out. The next
        transaction of this producer would hide that, and decide for both.
        """
        places = [(topic, self.partition) for topic in topics]
        reader, missing = self._new_reader, list[str]()
        async with reader(isolation="read_committed") as stable, reader(isolation="read_uncommitted") as everything:
            for _ in range(MARKER_LOOKS):
                stable_ends = await stable.ends(places)
                ends = await everything.ends(places)
                missing = [topic for topic, number in places if stable_ends[topic, number] < ends[topic, number]]
                if not missing:
                    return
                await asyncio.sleep(MARKER_LOOK_SECONDS)
        reason = f"committed, but without a marker in {', '.join(missing)}"
        raise PartitionLostError(partition=self.partition, reason=reason)

    def _contents(self, outbox: Outbox, extra_rows: dict[bytes, bytes]) -> dict[str, Iterable[BatchEntry]]:
        """Return rows and messages by topic, rows first, with the number of this transaction."""
        last = {**extra_rows, TRANSACTION_KEY: encode_number(self._number + 1)}
        rows = ((key, value, NO_HEADERS) for part in (outbox.rows, last) for key, value in part.items())
        contents: dict[str, Iterable[BatchEntry]] = {self._config.changelog: rows}
        whose = (TRANSACTION_HEADER, encode_header(self._config.transactional_id(self.partition), self._number + 1))
        for topic, messages in outbox.messages.items():
            contents[topic] = _numbered(messages, whose)
        return contents

    async def _append(self, contents: Mapping[str, Iterable[BatchEntry]]) -> list[Appended]:
        """Append to the transaction that has begun, without KIP-890."""
        futures: list[asyncio.Future[object]] = []
        broken: Exception | None = None
        try:
            for topic, entries in contents.items():
                await self._send(topic, entries, futures)
        except kafka_errors.IllegalOperation as error:
            broken = error  # the transaction failed while batches were added; one of theirs says why
        except asyncio.CancelledError:
            for future in futures:
                future.cancel()  # or `gather` below would wait as long again
            raise
        finally:
            # Every batch is awaited, also after an error: asyncio reports exceptions that nobody has read.
            results = await asyncio.gather(*futures, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        if broken is not None:
            raise PartitionLostError(partition=self.partition, reason=repr(broken)) from broken
        return [Appended(_number(result, "offset"), _number(result, "timestamp")) for result in results]

    async def _send(self, topic: str, entries: Iterable[BatchEntry], futures: list[asyncio.Future[object]]) -> None:
        """Pack entries into record batches; one future for each batch, none for each record."""
        batch = self._producer.create_batch()
        for key, value, headers in entries:
            if batch.append(timestamp=None, key=key, value=value, headers=headers) is None:
                batch.close()
                futures.append(await self._producer.send_batch(batch, topic, partition=self.partition))
                batch = self._producer.create_batch()
                batch.append(timestamp=None, key=key, value=value, headers=headers)
        batch.close()
        if batch.record_count():
            futures.append(await self._producer.send_batch(batch, topic, partition=self.partition))

    async def close(self) -> None:
        """Disconnect without committing; the next owner, or the broker in time, aborts an open transaction."""
        await self._producer.end()

    def _refused(self, error: Exception) -> ProduceRefusedError:
        return ProduceRefusedError(partition=self.partition, reason=repr(error))


def _numbered(messages: Iterable[Message], whose: tuple[str, bytes]) -> Iterator[BatchEntry]:
    """Add a header to each message. Those of one kind share a list of headers, and so the list with one more."""
    longer: dict[int, Headers] = {}
    for key, value, headers, is_tombstone in messages:
        whole = longer.get(id(headers))
        if whole is None:
            whole = longer[id(headers)] = [*headers, whose]
        yield key, None if is_tombstone else value, whole


def _number(result: object, name: str) -> int:
    found = getattr(result, name, None)  # aiokafka has none where the broker already had the batch
    return NO_OFFSET if found is None else int(found)
