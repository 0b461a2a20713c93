"""Taking partitions over: fence the old owner, read the state, then set the read positions.

The order is fixed:

1. `InitProducerId` fences the previous owner and aborts its open transaction: nobody else can write to the changelog.
2. The changelog is read to its end. Missing transaction markers are written: those of the changelog before it is read,
   those of the output topics afterwards (see `engine.core.markers`).
3. The positions found there are compared with the log of the inputs.
4. A first transaction writes positions, so a changelog is never empty beside committed group offsets. Its first row
   must get the offset at which the reading ended, else the takeover fails: a deposed leader that does not know it yet
   may have served an old end of the log.
5. The caller seeks the inputs.

Whichever process crashed before, the result is the state after exactly the inputs up to the stored positions.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic

import structlog

from evictstream.streams.engine.core.engine_rows import (
    POSITIONS_KEY,
    TRANSACTION_KEY,
    decode_number,
    decode_positions,
    encode_positions,
)
from evictstream.streams.engine.core.logic import Logic
from evictstream.streams.engine.core.markers import Markers
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.ports import KafkaClientError
from evictstream.streams.errors import InputReplacedError, PartitionLostError, StateMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.logic import LogicFactory
    from evictstream.streams.engine.core.ports import Clock, Committed, Kafka, LogReader, Place, Producer

log = structlog.get_logger(__name__)

# A frozen leader learns within two seconds that it was deposed; five looks, a second apart, cover that.
LOOKS_AGAIN = 5
LOOK_AGAIN_SECONDS = 1.0

MICROSECONDS_PER_MILLISECOND = 1_000

Bounds = tuple[int, int]


class Takeover(Generic[Logic]):
    """What a finished takeover of one partition hands to its writer.

    Attributes:
        partition: its number.
        producer: has fenced the previous owner.
        logic: has all rows.
        positions: next offset to apply, by input topic.
        ends: where each input ended at takeover.
        asked_at: before the brokers were asked for these ends, monotonic seconds.
        transaction: number of the last transaction in the rows, 0 for none.
        rows: how many were read.
        read_to: the changelog's end at takeover.
        committed: the first transaction.
    """

    __slots__ = (
        "asked_at",
        "committed",
        "ends",
        "logic",
        "partition",
        "positions",
        "producer",
        "read_to",
        "rows",
        "transaction",
    )

    def __init__(self, partition: int, producer: Producer, logic: Logic) -> None:
        self.partition = partition
        self.producer = producer
        self.logic = logic
        self.positions: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        self.asked_at = float("-inf")
        self.transaction = 0
        self.rows = 0
        self.read_to = 0
        self.committed: Committed | None = None

    def take_row(self, key: bytes, value: bytes | None) -> None:
        """Take one changelog row, the engine's own or the logic's."""
        if key == POSITIONS_KEY:
            self.positions = decode_positions(value) if value is not None else {}
        elif key == TRANSACTION_KEY:
            self.transaction = decode_number(value)
        else:
            self.logic.load(key, value)


async def take_over(
    numbers: Iterable[int],
    *,
    config: EngineConfig,
    new_logic: LogicFactory[Logic],
    kafka: Kafka,
    clock: Clock,
    on_progress: Callable[[], None] = lambda: None,
) -> list[Takeover[Logic]]:
    """Take partition numbers over; on any error all producers are closed again.

    `on_progress` is called each time that a step is done or rows have come.

    Raises:
        StateMissingError: a changelog is empty although the group has committed offsets in its inputs.
        InputReplacedError: a position lies beyond the end of its input.
        ProduceRefusedError: the broker forbids writing.
        PartitionLostError: fenced, or the brokers were not reachable in time; may be tried again.
    """
    started_at = clock.monotonic()
    takeovers = [Takeover(n, kafka.producer(n), new_logic(n)) for n in sorted(numbers)]
    try:
        async with asyncio.timeout(config.takeover_timeout_seconds):
            await _fence(takeovers)
        on_progress()
        async with kafka.reader(on_progress) as reader, kafka.reader(isolation="read_uncommitted") as everything:
            producers = {t.partition: t.producer for t in takeovers}
            markers = Markers(producers, stable=reader, everything=everything, config=config)
            await markers.end_rows()
            ends = await reader.read_rows({t.partition: t.take_row for t in takeovers})
            await markers.end_messages({t.partition: t.transaction for t in takeovers})
            asked_at = clock.monotonic()
            bounds = await _bounds(takeovers, everything, config)
        for takeover in takeovers:
            takeover.asked_at = asked_at
            takeover.rows, takeover.read_to = ends[takeover.partition]
            takeover.logic.loaded()
            # Numbers never repeat, even after a lost transaction or a deleted changelog: they count on from the clock.
            takeover.producer.count_from(max(takeover.transaction, clock.now_us() // MICROSECONDS_PER_MILLISECOND))
        await _settle_positions(takeovers, bounds, config, kafka, clock.now_us)
    except BaseException as error:
        await asyncio.shield(asyncio.gather(*(takeover.producer.close() for takeover in takeovers)))
        if isinstance(error, KafkaClientError):
            raise PartitionLostError(partition=takeovers[0].partition, reason=str(error)) from error
        if isinstance(error, OSError):  # a TimeoutError is one
            raise PartitionLostError(partition=takeovers[0].partition, reason=repr(error)) from error
        raise
    log.info(
        "partitions taken over",
        partitions=[takeover.partition for takeover in takeovers],
        rows=sum(takeover.rows for takeover in takeovers),
        seconds=round(clock.monotonic() - started_at, 3),
    )
    return takeovers


async def _fence(takeovers: list[Takeover[Logic]]) -> None:
    """Start all producers at once; when one fails the others are awaited, so that all can be closed."""
    results = await asyncio.gather(*(takeover.producer.start() for takeover in takeovers), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def _bounds(takeovers: list[Takeover[Logic]], reader: LogReader, config: EngineConfig) -> dict[Place, Bounds]:
    """Ask for first and next offsets of all inputs; again where a position is beyond the end.

    A deposed leader that does not know it yet reports an old end. `reader` sees the very ends: inputs are read up to
    them, whatever transaction is open there.
    """
    positions = {(topic, t.partition): t.positions.get(topic, 0) for t in takeovers for topic in config.inputs}
    looks_left = LOOKS_AGAIN
    while True:
        bounds = await reader.starts_and_ends(list(positions))
        beyond = [place for place, position in positions.items() if position > bounds[place][1]]
        if not beyond:
            return bounds
        if not looks_left:
            topic, number = place = beyond[0]
            raise InputReplacedError(topic=topic, partition=number, position=positions[place], end=bounds[place][1])
        looks_left -= 1
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def _settle_positions(
    takeovers: list[Takeover[Logic]],
    bounds: dict[Place, Bounds],
    config: EngineConfig,
    kafka: Kafka,
    now_us: Callable[[], int],
) -> None:
    """Compare positions with the log, and write them in a first transaction, together with the rows that a gap causes.

    Unchanged positions are written too: the transaction shows the brokers' time, so a clock that is ahead is noticed
    before the first timer fires.
    """
    fresh = [takeover for takeover in takeovers if not takeover.positions]
    if fresh:
        await _refuse_lost_state(fresh, config, kafka)
    outboxes = list[Outbox]()
    for takeover in takeovers:
        outbox, lost = Outbox(), dict[str, int]()
        settled: dict[str, int] = {}
        for topic in config.inputs:
            start, end = bounds[topic, takeover.partition]
            takeover.ends[topic] = end
            position = takeover.positions.get(topic, start)
            if position < start:
                lost[topic] = start - position
            settled[topic] = max(position, start)
            if takeover in fresh and start > 0:
                log.warning("starting after expired input: have the feeds list again", topic=topic, start=start)
        if lost:
            log.error("input expired unread", partition=takeover.partition, lost=lost)
            takeover.logic.gap_found(lost, now_us(), outbox)
        takeover.positions = settled
        outboxes.append(outbox)
    await asyncio.gather(*map(_write_first, takeovers, outboxes))


async def _write_first(takeover: Takeover[Logic], outbox: Outbox) -> None:
    positions = {POSITIONS_KEY: encode_positions(takeover.positions)}
    takeover.committed = await takeover.producer.commit(outbox, positions, lands_at=takeover.read_to)


async def _refuse_lost_state(fresh: list[Takeover[Logic]], config: EngineConfig, kafka: Kafka) -> None:
    """Refuse an empty changelog if the group has committed offsets in the inputs: the state was lost."""
    asked = [(topic, takeover.partition) for takeover in fresh for topic in config.inputs]
    committed = await kafka.committed_offsets(asked)
    for topic, number in asked:
        if committed[topic, number] > 0:
            raise StateMissingError(
                changelog=config.changelog,
                partition=number,
                topic=topic,
                committed=committed[topic, number],
                group=config.application,
            )
