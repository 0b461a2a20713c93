"""A partition that is lost without a rebalance is taken over again: on a real Kafka, with seeks that are made up."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import time
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import pytest

from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core import partitions as partitions_module
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.ownership import Ownership
from evictstream.streams.engine.core.partitions import CONFIRM_POLL_SECONDS, Partitions
from evictstream.streams.engine.core.takeover import Takeover, take_over
from evictstream.streams.engine.core.writer import PartitionWriter
from evictstream.streams.engine.kafka.clients import KafkaClients
from evictstream.streams.errors import PartitionLostError
from tests.harness.offset_logic import OffsetLogic

Positions = Mapping[tuple[str, int], int]

LOST = PartitionLostError(partition=0, reason="for a test")
PATIENCE_SECONDS = 30.0
TAKEOVER_SECONDS = 20.0


def run(
    config: EngineConfig,
    on_seek: Callable[[Partitions[OffsetLogic]], None],
    test: Callable[[Partitions[OffsetLogic]], Awaitable[None]],
    *,
    confirms: bool = True,
) -> list[BaseException]:
    """Own partition 0 in a group that confirms all the time, or never; returns what the application crashed of."""
    crashes: list[BaseException] = []

    class OwnGroup:
        """A group of one, which assigns what the test says."""

        is_rebalancing = False

        async def seek(self, positions: Positions) -> dict[tuple[str, int], int]:
            on_seek(partitions)
            return dict.fromkeys(positions, 1)

        async def end_offsets(self, places: object) -> dict[tuple[str, int], int]:
            raise NotImplementedError(places)

        def leave(self) -> None:
            raise NotImplementedError

    async def crash(error: BaseException) -> None:
        crashes.append(error)

    partitions = Partitions(
        config, new_logic=OffsetLogic, kafka=KafkaClients(config), group=OwnGroup(), clock=SYSTEM_CLOCK, crash=crash
    )

    async def confirm() -> None:
        while confirms:
            partitions.lease.renew(time.monotonic())
            await asyncio.sleep(0.01)

    async def owned() -> None:
        confirming = asyncio.create_task(confirm())
        try:
            await first_takeover(partitions)
            await test(partitions)
        finally:
            await partitions.close()
            confirming.cancel()

    asyncio.run(asyncio.wait_for(owned(), PATIENCE_SECONDS))
    return crashes


async def first_takeover(partitions: Partitions[OffsetLogic]) -> None:
    """Take partition 0 over, as often as a broker that has just started wants to be asked."""
    for generation in range(1, 100):
        try:
            await partitions.assign({0}, generation)
        except PartitionLostError:
            await asyncio.sleep(0.2)
        else:
            return


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what nothing tells of, and a moment for what follows on it."""
    while not condition():  # noqa: ASYNC110 - see above
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)


def test_the_brokers_time_is_known_before_anything_is_stepped(config: EngineConfig) -> None:
    async def test(partitions: Partitions[OffsetLogic]) -> None:
        for _ in range(2):
            known = next(partitions.live()).last_commit
            assert known is not None
            assert abs(known.broker_ms / 1000 - time.time()) < PATIENCE_SECONDS
            await partitions.assign({0}, 1_000)  # a generation was missed: taken over anew, with its positions there

    assert run(config, lambda _: None, test) == []


def test_a_partition_lost_during_its_seek_is_taken_over_again(config: EngineConfig) -> None:
    seeks: list[PartitionWriter[OffsetLogic]] = []

    def lose_the_first(partitions: Partitions[OffsetLogic]) -> None:
        seeks.extend(partitions.live())
        if len(seeks) == 1:
            seeks[0].fail(LOST)

    async def test(partitions: Partitions[OffsetLogic]) -> None:
        next(partitions.live()).fail(LOST)
        await until(lambda: len(seeks) == 2)
        assert next(partitions.live()) is seeks[1]

    assert run(config, lose_the_first, test) == []


def test_a_takeover_waits_for_no_offsets_of_others(config: EngineConfig) -> None:
    """After one that failed: the group takes offsets of assigned partitions alone, so it would wait forever."""

    async def test(partitions: Partitions[OffsetLogic]) -> None:
        async def done(_generation: int = 0) -> None:
            pass

        ownership = Ownership(partitions, partitions._group, SYSTEM_CLOCK)
        assert {number for _, number in partitions.durable_positions()} == {0}
        ownership.count_failure(LOST)
        await asyncio.wait_for(
            ownership.take_over({1}, partitions._generation + 1, resume=done, commit=done), TAKEOVER_SECONDS
        )
        assert [writer.partition for writer in partitions.live()] == [1]

    assert run(config, lambda _: None, test, confirms=False) == []


def test_a_takeover_that_was_not_cancelled_in_time_opens_nothing(
    config: EngineConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next rebalance takes over already, and `wait_for` of the first takeover has swallowed the cancellation."""
    first_is_done, second_begins = asyncio.Event(), asyncio.Event()
    superseded: list[Takeover[Any]] = []

    async def overlapping(numbers: Iterable[int], **how: Any) -> list[Takeover[Any]]:
        if first_is_done.is_set():
            second_begins.set()
            return await take_over(numbers, **how)
        superseded.extend(await take_over(numbers, **how))
        first_is_done.set()
        with contextlib.suppress(asyncio.CancelledError):
            await second_begins.wait()
        await second_begins.wait()
        return superseded

    async def test(partitions: Partitions[OffsetLogic]) -> None:
        async def done(_generation: int = 0) -> None:
            pass

        monkeypatch.setattr(partitions_module, "take_over", overlapping)
        ownership = Ownership(partitions, partitions._group, SYSTEM_CLOCK)
        first = asyncio.create_task(ownership.take_over({0}, 1_000, resume=done, commit=done))
        await first_is_done.wait()
        first.cancel()
        await ownership.take_over({0}, 1_002, resume=done, commit=done)
        assert first.cancelled()
        (writer,) = partitions.live()
        assert writer.logic is not superseded[0].logic

    assert run(config, lambda _: None, test) == []


def test_a_partition_that_is_given_away_is_let_go(config: EngineConfig) -> None:
    async def test(partitions: Partitions[OffsetLogic]) -> None:
        (given,) = partitions.live()
        await partitions.assign(set(), partitions._generation + 1)
        assert not given.live
        assert not list(partitions.live())

    assert run(config, lambda _: None, test) == []


def test_the_state_of_a_lost_partition_is_freed(config: EngineConfig) -> None:
    """States have cycles, and a worker's collector looks through everything only when it is asked to."""

    async def test(partitions: Partitions[OffsetLogic]) -> None:
        async def repaired() -> None:
            next(partitions.live()).fail(LOST)
            await until(lambda: next(partitions.live(), None) is not None)

        async def assigned() -> None:
            await partitions.assign({0}, 1_000)

        for lose in (assigned, repaired):
            logic = next(partitions.live()).logic
            logic.itself = logic  # type: ignore[attr-defined]
            lost = weakref.ref(logic)
            del logic
            await lose()
            assert lost() is None

    gc.disable()
    try:
        assert run(config, lambda _: None, test) == []
    finally:
        gc.enable()


def test_failures_before_a_successful_repair_do_not_add_up(config: EngineConfig) -> None:
    seeks = 0

    def lose_every_other(_: Partitions[OffsetLogic]) -> None:
        nonlocal seeks
        seeks += 1
        if seeks % 2:
            raise LOST

    async def test(partitions: Partitions[OffsetLogic]) -> None:
        next(partitions.live()).fail(LOST)
        await until(lambda: seeks == 2)
        next(partitions.live()).fail(LOST)
        await until(lambda: seeks == 4)
        assert next(partitions.live(), None) is not None

    assert run(dataclasses.replace(config, takeover_attempts=2), lose_every_other, test) == []


def test_a_partition_lost_during_an_assignment_is_not_repaired(config: EngineConfig) -> None:
    """It may go to somebody else, whom a repair would fence; and what cannot be sought would end the process."""

    async def test(partitions: Partitions[OffsetLogic]) -> None:
        mine = next(partitions.live())
        await partitions.revoked()
        mine.fail(LOST)
        await asyncio.sleep(3 * CONFIRM_POLL_SECONDS)
        assert list(partitions.live()) == []
        await partitions.assign(set(), 100)
        await asyncio.sleep(3 * CONFIRM_POLL_SECONDS)
        assert partitions.takeovers == 1

    assert run(config, lambda _: None, test) == []


def test_a_kept_partition_lost_during_an_assignment_is_repaired_afterwards(config: EngineConfig) -> None:
    seeks: list[int] = []

    async def test(partitions: Partitions[OffsetLogic]) -> None:
        await partitions.assign({0}, 100)
        kept = next(partitions.live())
        assigning = asyncio.create_task(partitions.assign({0, 1}, 101))
        await asyncio.sleep(0)  # it has looked who is alive, and takes the other one over
        kept.fail(LOST)
        await assigning
        await until(lambda: bool(seeks))
        assert [writer.partition for writer in partitions.live()] == [0, 1]

    assert run(config, lambda _: seeks.append(1), test) == []


def test_a_partition_lost_early_still_has_offsets_to_commit(config: EngineConfig) -> None:
    """Without any the group never confirmed us, and the repair waited for that until the watchdog came."""

    async def test(partitions: Partitions[OffsetLogic]) -> None:
        next(partitions.live()).fail(LOST)
        assert partitions.durable_positions()

    assert run(config, lambda _: None, test) == []


def test_an_assignment_that_is_tried_again_keeps_what_is_healthy(config: EngineConfig) -> None:
    async def test(partitions: Partitions[OffsetLogic]) -> None:
        await partitions.assign({0}, 100)
        mine = next(partitions.live())
        await partitions.assign({0}, 100)
        assert next(partitions.live()) is mine

    assert run(config, lambda _: None, test) == []
