"""Taking partitions over: fence first, read after, then say where to read on.

Order matters and is fixed: (1) ``InitProducerId`` fences the previous owner and aborts what it had open, so
nothing can be added to the changelog any more; (2) the changelog is read to its end; where a broker has left out a
marker, it is written: of rows before that, of messages after it (see `streams.engine.core.markers`); (3) the positions
found there are compared with the log; (4) the first transaction of ours writes positions, so that a changelog
is never empty beside committed group offsets, and is given up unless it lands just where the reading has ended: a
leader that has been deposed, and does not know it yet, may have shown the log of some time ago; (5) the inputs are
sought. State of a prefix of the input is what comes out, after any crash of anybody.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from evictstream.streams.engine.core.engine_rows import (
    POSITIONS_KEY,
    TRANSACTION_KEY,
    decode_number,
    decode_positions,
    encode_positions,
)
from evictstream.streams.engine.core.markers import Markers
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.ports import KafkaClientError
from evictstream.streams.errors import InputReplacedError, PartitionLostError, StateMissingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evictstream.streams.engine.core.config import EngineConfig
    from evictstream.streams.engine.core.logic import LogicFactory, PartitionLogic
    from evictstream.streams.engine.core.ports import Clock, Committed, Kafka, LogReader, Place, Producer

log = structlog.get_logger(__name__)

# A leader that was frozen hears within a heartbeat of the brokers, two seconds, that another has its place.
LOOKS_AGAIN = 5
LOOK_AGAIN_SECONDS = 1.0

MICROSECONDS_PER_MILLISECOND = 1_000

Bounds = tuple[int, int]


class Takeover:
    """What a finished take-over of one partition hands to its writer."""

    __slots__ = ("committed", "ends", "logic", "partition", "positions", "producer", "read_to", "rows", "transaction")

    def __init__(self, partition: int, producer: Producer, logic: PartitionLogic) -> None:
        self.partition = partition
        self.producer = producer
        self.logic = logic
        self.positions: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        self.transaction = 0
        self.rows = 0
        self.read_to = 0
        self.committed: Committed | None = None

    def take_row(self, key: bytes, value: bytes | None) -> None:
        """Take one changelog row: ours or the logic's."""
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
    new_logic: LogicFactory,
    kafka: Kafka,
    clock: Clock,
    on_progress: Callable[[], None] = lambda: None,
) -> list[Takeover]:
    """Take partition numbers over; on any error everything half open is closed again.

    `on_progress` is called each time that a step is done or rows have come.

    Raises:
        StateMissingError: a changelog is empty although the group has committed offsets in its inputs.
        InputReplacedError: a position lies beyond the end of its input.
        ProduceRefusedError: the broker forbids writing.
        PartitionLostError: fenced or not reachable in time; may be tried again.

    """
    started_at = clock.monotonic()
    takeovers = [Takeover(n, kafka.producer(n), new_logic(n)) for n in sorted(numbers)]
    try:
        async with asyncio.timeout(config.takeover_timeout_seconds):
            await _fence(takeovers)
        on_progress()
        async with kafka.reader(on_progress) as reader:
            markers = Markers({t.partition: t.producer for t in takeovers}, stable=reader, kafka=kafka, config=config)
            await markers.end_rows()
            found = await reader.read_rows({t.partition: t.take_row for t in takeovers})
            await markers.end_messages({t.partition: t.transaction for t in takeovers})
            bounds = await _bounds(takeovers, reader, config)
        for takeover in takeovers:
            takeover.rows, takeover.read_to = found[takeover.partition]
            takeover.logic.loaded()
            # No number comes again, though its transaction was lost or the changelog deleted.
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


async def _fence(takeovers: list[Takeover]) -> None:
    """Start all producers at once; when one fails the others are awaited, so that none is left half open."""
    results = await asyncio.gather(*(takeover.producer.start() for takeover in takeovers), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result


async def _bounds(takeovers: list[Takeover], reader: LogReader, config: EngineConfig) -> dict[Place, Bounds]:
    """Ask for first and next offsets of all inputs; again, where a leader that was deposed may have been asked."""
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
    takeovers: list[Takeover],
    bounds: dict[Place, Bounds],
    config: EngineConfig,
    kafka: Kafka,
    now_us: Callable[[], int],
) -> None:
    """Compare positions with the log and write them, with what had to be chosen, in a first transaction.

    Also if nothing had: it brings the brokers' time back, without which a clock that is ahead would not be noticed
    before the first timers have fired.
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
                log.warning("begins after input that has expired: let the feeds list again", topic=topic, start=start)
        if lost:
            log.error("input expired unread", partition=takeover.partition, lost=lost)
            takeover.logic.gap_found(lost, now_us(), outbox)
        takeover.positions = settled
        outboxes.append(outbox)
    await asyncio.gather(*map(_write_first, takeovers, outboxes))


async def _write_first(takeover: Takeover, outbox: Outbox) -> None:
    positions = {POSITIONS_KEY: encode_positions(takeover.positions)}
    takeover.committed = await takeover.producer.commit(outbox, positions, lands_at=takeover.read_to)


async def _refuse_lost_state(fresh: list[Takeover], config: EngineConfig, kafka: Kafka) -> None:
    """Take an empty changelog for a new partition only if the group has never committed in its inputs."""
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
