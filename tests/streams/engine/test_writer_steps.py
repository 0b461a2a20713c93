"""A step that lets others work in its middle: what may go on meanwhile, and what waits for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import pytest

from evictstream.streams.engine.core.batches import Record
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.logic import SLICE_COST, Part
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.writer import SLICE_SECONDS, PartitionWriter
from evictstream.streams.errors import PartitionLostError
from tests.harness.offset_logic import OffsetLogic
from tests.streams.engine.test_writer import batch, run

PAUSES = 20


class Slow(OffsetLogic):
    """Takes each record of the first input in slices, each as long as the loop may be held; is its writer's clock."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(rows_per_record=1)
        self.now = 1_000.0
        self.slow_topic = config.inputs[0]
        self.log: list[str] = []

    def monotonic(self) -> float:
        return self.now

    def now_us(self) -> int:
        return 0

    def apply(self, topic: str, records: Sequence[Record], outbox: Outbox) -> Iterable[Part]:
        if topic != self.slow_topic:
            self.log.append("other")
            yield from super().apply(topic, records, outbox)
            return
        for record in records:
            self.log.append("begin")
            for _ in range(PAUSES):
                self.now += SLICE_SECONDS * 1.1
                yield Part(record.offset, SLICE_COST, is_last=False)
            parts = list(super().apply(topic, [record], outbox))
            self.log.append("end")
            yield from parts

    def caught_up(self, now_us: int, outbox: Outbox) -> Iterable[Part]:
        for number in range(PAUSES):
            self.now += SLICE_SECONDS * 1.1
            outbox.put(b"%d" % number, b"decided anew")
            yield Part(0, SLICE_COST, is_last=False)

    def fire(self, _now_us: int, _limit: int, outbox: Outbox) -> int:
        self.log.append("fire")
        outbox.put(b"fired", b"row")
        return 1


@pytest.fixture
def slow(config: EngineConfig) -> Slow:
    return Slow(config)


async def stepping(writer: PartitionWriter[OffsetLogic], logic: Slow) -> None:
    """Wait until a step is in its middle."""
    while "begin" not in logic.log:  # noqa: ASYNC110 - turns of the loop are what is waited for
        await asyncio.sleep(0)


def test_timers_fire_in_the_middle_of_a_step(config: EngineConfig, slow: Slow) -> None:
    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        applying = asyncio.create_task(writer.apply(batch(config, 10, start=10)))
        await stepping(writer, slow)
        writer.fire(0, 1)
        assert writer.positions[config.inputs[0]] == 10, "the position stays before a record that is not whole"
        await applying
        assert slow.log == ["begin", "fire", "end"]
        assert writer.positions[config.inputs[0]] == 11
        assert not failures

    run(config, test, logic=slow, clock=slow)


def test_a_timer_fired_within_a_step_commits_before_its_end(config: EngineConfig, slow: Slow) -> None:
    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        outbox = writer.committer.outbox
        applying = asyncio.create_task(writer.apply(batch(config, 10, start=10)))
        await stepping(writer, slow)
        writer.fire(0, 1)
        taken = outbox.take()  # as a commit does
        assert set(taken.rows) == {b"fired"}
        await applying
        assert set(outbox.rows) == {b"10-0"}, "the step goes on into the outbox that is committed next"
        assert not failures

    run(config, test, logic=slow, clock=slow)


def test_another_input_waits_for_the_end_of_a_step(config: EngineConfig, slow: Slow) -> None:
    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        applying = asyncio.create_task(writer.apply(batch(config, 10, 11, start=10)))
        await stepping(writer, slow)
        other = batch(config, 10, start=10)._replace(topic=config.inputs[1])
        await asyncio.gather(writer.apply(other), applying)
        assert slow.log.index("other") > slow.log.index("end")
        assert [writer.positions[topic] for topic in config.inputs] == [12, 11, 10]
        assert not failures

    run(config, test, logic=slow, clock=slow)


def test_a_step_goes_to_its_end_over_a_new_seek(config: EngineConfig, slow: Slow) -> None:
    """The consumer is sought to the record of the step, which is then known already."""

    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        applying = asyncio.create_task(writer.apply(batch(config, 10, 11, start=10)))
        await stepping(writer, slow)
        writer.begin_epochs(dict.fromkeys(config.inputs, 3))
        await applying
        await writer.apply(batch(config, 10, 11, start=10, epoch=3))
        assert slow.offsets == [10, 11], "each once"
        assert not failures

    run(config, test, logic=slow, clock=slow)


def test_a_step_that_is_cut_off_gives_the_partition_up(config: EngineConfig, slow: Slow) -> None:
    """Its state has changed by halves."""

    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        applying = asyncio.create_task(writer.apply(batch(config, 10, start=10)))
        await stepping(writer, slow)
        applying.cancel()
        await asyncio.wait([applying])
        assert not writer.live
        assert [type(error) for error in failures] == [PartitionLostError]

    run(config, test, logic=slow, clock=slow)


def test_an_input_that_has_waited_comes_before_the_next_step(config: EngineConfig, slow: Slow) -> None:
    """However soon the next step of a busy input would be in its middle again."""

    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        applying = asyncio.create_task(writer.apply(batch(config, *range(10, 20), start=10)))
        await stepping(writer, slow)
        await writer.apply(batch(config, 10, start=10)._replace(topic=config.inputs[1]))
        assert slow.log == ["begin", "end", "other"]
        await applying
        assert not failures

    run(config, test, logic=slow, clock=slow)


def test_a_batch_is_left_between_steps_after_a_seek(config: EngineConfig, slow: Slow) -> None:
    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        applying = asyncio.create_task(writer.apply(batch(config, *range(10, 20), start=10)))
        await stepping(writer, slow)
        writer.begin_epochs(dict.fromkeys(config.inputs, 3))
        await applying
        assert slow.offsets == [10]
        assert writer.positions[config.inputs[0]] == 11
        assert writer.appended_ms == {config.inputs[0]: 0}
        assert not failures

    run(config, test, logic=slow, clock=slow)


def test_the_event_loop_runs_while_everything_is_reevaluated(config: EngineConfig, slow: Slow) -> None:
    async def test(writer: PartitionWriter[OffsetLogic], _logic: OffsetLogic, failures: list[BaseException]) -> None:
        catching_up = asyncio.create_task(writer.expect_ends(dict.fromkeys(config.inputs, 10), 0.0))
        turns = 0
        while not catching_up.done():
            turns += 1
            assert writer.caught_up is False
            await asyncio.sleep(0)
        assert turns >= PAUSES
        assert writer.caught_up
        assert not failures

    run(config, test, logic=slow, clock=slow)
