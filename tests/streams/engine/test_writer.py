"""The partition writer takes each record once and in order, and gives itself up when one is missing."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import time
import types
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

import pytest

import evictstream.streams.engine.core.committer
from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.batches import Batch, Record
from evictstream.streams.engine.core.committer import Committer
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.histogram import Histogram
from evictstream.streams.engine.core.logic import Part
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.ports import Clock
from evictstream.streams.engine.core.writer import SLICE_SECONDS, PartitionWriter
from evictstream.streams.engine.kafka.partition_producer import PartitionProducer
from evictstream.streams.errors import PartitionLostError
from tests.harness.offset_logic import OffsetLogic


class Entry(NamedTuple):
    offset: int
    timestamp: int = 0
    key: bytes | None = b"k"
    value: bytes | None = b"v"


def run(
    config: EngineConfig,
    test: Callable[[PartitionWriter[OffsetLogic], OffsetLogic, list[BaseException]], Awaitable[None]],
    *,
    logic: OffsetLogic | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Run a test on a writer that stands at offset 10 of its inputs, after its second seek."""

    async def with_writer() -> None:
        producer, ours = PartitionProducer(0, config), logic or OffsetLogic()
        await producer.start()
        failures: list[BaseException] = []
        writer = PartitionWriter(
            0,
            logic=ours,
            committer=Committer(
                config=config,
                clock=clock,
                producer=producer,
                positions=dict.fromkeys(config.inputs, 10),
                spacing_seconds=lambda: 0.0,
                transaction_seconds=Histogram((1.0,)),
            ),
            clock=clock,
            on_failure=lambda _, error: failures.append(error),
            on_step=lambda _: None,
        )
        writer.begin_epochs(dict.fromkeys(config.inputs, 2))
        try:
            await test(writer, ours, failures)
        finally:
            await writer.close()

    asyncio.run(asyncio.wait_for(with_writer(), 30))


def batch(config: EngineConfig, *offsets: int, start: int, epoch: int = 2) -> Batch:
    return Batch(config.inputs[0], 0, [Entry(offset) for offset in offsets], start, offsets[-1] + 1, epoch)


def test_batches_that_follow_one_another_are_applied(config: EngineConfig) -> None:
    async def test(writer: PartitionWriter[OffsetLogic], logic: OffsetLogic, failures: list[BaseException]) -> None:
        await writer.apply(batch(config, 10, 11, start=10))
        await writer.apply(batch(config, 14, start=12))  # 12 and 13 were markers
        assert logic.offsets == [10, 11, 14]
        assert writer.positions[config.inputs[0]] == 15
        assert not failures

    run(config, test)


def test_a_missing_batch_is_noticed(config: EngineConfig) -> None:
    """It gives the partition up, so that it is read again from its last position: nothing is passed over."""

    async def test(writer: PartitionWriter[OffsetLogic], logic: OffsetLogic, failures: list[BaseException]) -> None:
        await writer.apply(batch(config, 10, start=10))
        await writer.apply(batch(config, 13, start=13))
        assert logic.offsets == [10]
        assert writer.positions[config.inputs[0]] == 11
        assert not writer.live
        assert [type(error) for error in failures] == [PartitionLostError]

    run(config, test)


def test_nothing_is_committed_once_the_writer_has_failed(config: EngineConfig) -> None:
    """What it had stepped is dropped; positions that went out alone would pass over it for good."""

    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        await writer.apply(batch(config, 10, start=10))
        await asyncio.sleep(config.linger_seconds / 10)  # it waits for more rows now, and then commits
        await writer.apply(batch(config, 13, start=13))
        await asyncio.wait([writer.committer._task], timeout=10)  # whatever it would still do
        assert failures
        assert writer.committer.transactions == 0
        assert writer.committer.durable[config.inputs[0]] == 10

    run(config, test, logic=OffsetLogic(rows_per_record=1))


def test_a_message_waits_until_one_is_urgent(config: EngineConfig) -> None:
    """Nobody acts on a decision, so it shares the transaction of what comes within the linger time."""

    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        committer = writer.committer
        committer.outbox.send(config.outputs[0], b"k", b"decision", [])
        committer.wake()
        await asyncio.sleep(config.linger_seconds)  # longer than the usual linger; here it is an hour
        assert committer.transactions == 0
        committer.outbox.send(config.outputs[0], b"k", b"command", [], is_urgent=True)
        committer.wake()
        await committer._wait_for(lambda: committer.transactions == 1)
        assert not committer.outbox
        assert not committer.outbox.is_urgent
        assert not failures

    run(dataclasses.replace(config, linger_seconds=3_600.0), test)


def test_records_that_come_again_are_applied_once(config: EngineConfig) -> None:
    async def test(writer: PartitionWriter[OffsetLogic], logic: OffsetLogic, failures: list[BaseException]) -> None:
        await writer.apply(batch(config, 10, 11, start=10))
        await writer.apply(batch(config, 9, 10, 11, 12, start=9))
        assert logic.offsets == [10, 11, 12]
        assert not failures

    run(config, test)


@pytest.mark.parametrize(
    ("record_seconds", "cost"),
    [pytest.param(0.000_01, 1, id="pods"), pytest.param(0.002_4, 100, id="nodes-of-a-hundred-pods")],
)
def test_the_event_loop_runs_during_a_large_record(config: EngineConfig, record_seconds: float, cost: int) -> None:
    now = 1_000.0

    class Costly(OffsetLogic):
        def apply(self, topic: str, records: Sequence[Record], outbox: Outbox) -> Iterable[Part]:
            nonlocal now
            for part in super().apply(topic, records, outbox):
                now += record_seconds
                yield part._replace(cost=cost)

    async def test(writer: PartitionWriter[OffsetLogic], logic: OffsetLogic, _failures: list[BaseException]) -> None:
        turns = []

        async def come_round() -> None:
            while True:
                before = now
                await asyncio.sleep(0)
                turns.append(now - before)

        watching = asyncio.create_task(come_round())
        await asyncio.sleep(0)
        await writer.apply(batch(config, *range(10, 1_010), start=10))
        watching.cancel()
        assert len(logic.offsets) == 1_000
        assert max(turns) <= SLICE_SECONDS * 1.2 + record_seconds
        assert len(turns) < 1_000 * record_seconds / SLICE_SECONDS + 10, "and no more often than that"

    clock = types.SimpleNamespace(monotonic=lambda: now, now_us=SYSTEM_CLOCK.now_us)
    run(config, test, logic=Costly(), clock=clock)


def test_what_was_read_before_the_newest_seek_is_ignored(config: EngineConfig) -> None:
    async def test(writer: PartitionWriter[OffsetLogic], logic: OffsetLogic, failures: list[BaseException]) -> None:
        await writer.apply(batch(config, 40, start=10, epoch=1))
        assert not logic.offsets
        assert writer.positions[config.inputs[0]] == 10
        assert not failures

    run(config, test)


def test_uncommitted_changes_have_an_age_and_idle_writers_none(config: EngineConfig) -> None:
    async def test(writer: PartitionWriter[OffsetLogic], logic: OffsetLogic, failures: list[BaseException]) -> None:
        an_hour_on = time.monotonic() + 3_600
        assert writer.committer.uncommitted_seconds(an_hour_on) == 0
        await writer.apply(batch(config, 10, start=10))
        writer.committer.checkpoint()
        assert writer.committer.uncommitted_seconds(an_hour_on) > 3_500
        await writer.committer.flush()
        assert writer.committer.uncommitted_seconds(an_hour_on) == 0
        assert writer.committer.unacknowledged_seconds(an_hour_on) == 0
        assert not failures

    run(config, test)


def test_a_quiet_partition_is_written_before_brokers_forget_its_owner(
    config: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        async def kept_alive() -> int:
            writer.committer.keep_alive()
            await asyncio.sleep(10 * config.linger_seconds)
            return writer.committer.transactions

        assert await kept_alive() == 0, "not quiet for long"
        monkeypatch.setattr(evictstream.streams.engine.core.committer, "QUIET_LIMIT_SECONDS", config.linger_seconds)
        assert await kept_alive() == 1, "also who has never written"
        assert await kept_alive() == 2
        monkeypatch.undo()
        assert await kept_alive() == 2
        assert not failures

    run(config, test)


def test_a_batch_that_makes_much_waits_in_the_middle(config: EngineConfig) -> None:
    """A node's record may decide a hundred pods: a whole batch of them would hold the loop, and fill the memory."""
    rows_per_record = 100
    small = dataclasses.replace(config, max_rows_per_transaction=1_000)

    async def test(writer: PartitionWriter[OffsetLogic], logic: OffsetLogic, failures: list[BaseException]) -> None:
        steps: list[int] = []

        async def look() -> None:
            while True:
                steps.append(len(logic.offsets))
                await asyncio.sleep(0)

        looking = asyncio.ensure_future(look())
        await writer.apply(batch(config, *range(10, 1_010), start=10))
        looking.cancel()
        assert len(logic.offsets) == 1_000
        at_once = max(after - before for before, after in itertools.pairwise(steps))
        assert at_once <= 50
        assert writer.committer.transactions >= 10, "what was made went out on the way"
        assert not failures

    run(small, test, logic=OffsetLogic(rows_per_record=rows_per_record))
