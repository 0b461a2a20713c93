"""A slot changes its state only as `MOVES` says; anything else is a fault of the engine, and stops the worker."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable
from typing import Any, cast

import pytest

from evictstream.streams.engine.core.slot import PartitionSlot, SlotState
from evictstream.streams.errors import InternalFailureError

Slot = PartitionSlot[Any]
LOST = RuntimeError("lost")


class Failing:
    """A writer that fails when it is told to."""

    durable = types.MappingProxyType({"nodes": 7})
    committer = types.SimpleNamespace(durable=durable)

    def __init__(self, _takeover: object, on_failure: Callable[[Any, BaseException], None]) -> None:
        self._on_failure = on_failure

    def fail(self) -> None:
        self._on_failure(self, LOST)


def slot_and_failures() -> tuple[Slot, list[BaseException]]:
    failures: list[BaseException] = []
    return PartitionSlot(3, cast("Any", Failing), lambda _, error: failures.append(error)), failures


def live() -> Slot:
    slot, _ = slot_and_failures()
    slot.begin_takeover()
    slot.open(cast("Any", None))
    return slot


def failed() -> Slot:
    slot = live()
    cast("Any", slot.writer).fail()
    return slot


async def never(_slot: Slot) -> None:
    """Repair nothing."""


@pytest.mark.parametrize(
    ("begin", "act", "stays"),
    [
        pytest.param(
            lambda: slot_and_failures()[0], lambda s: s.open(None), SlotState.ABSENT, id="open before fencing"
        ),
        pytest.param(live, lambda s: s.open(None), SlotState.LIVE, id="a second writer"),
        pytest.param(failed, lambda s: s.open(None), SlotState.FAILED, id="open without a repair"),
        pytest.param(
            lambda: slot_and_failures()[0],
            lambda s: s.begin_repair(never),
            SlotState.ABSENT,
            id="repair of what was never taken over",
        ),
    ],
)
def test_a_move_outside_of_the_table_is_refused(
    begin: Callable[[], Slot], act: Callable[[Slot], object], stays: SlotState
) -> None:
    slot = begin()
    with pytest.raises(InternalFailureError, match="partition 3 cannot be"):
        act(slot)
    assert slot.state is stays


def test_a_repair_leads_back_to_a_live_writer() -> None:
    async def repaired() -> None:
        slot, failures = slot_and_failures()
        slot.begin_takeover()
        states = [slot.state]
        first = cast("Any", slot.open(cast("Any", None)))
        states.append(slot.state)
        first.fail()
        states.append(slot.state)
        slot.begin_repair(never)
        assert slot.detach() is first
        states.append(slot.state)
        cast("Any", slot.open(cast("Any", None))).fail()
        states.append(slot.state)
        assert slot.durable_positions() == Failing.durable, "kept for the commit that a repair waits for"
        repair = slot.cancel_repair()
        assert repair is not None
        states.append(slot.state)
        slot.detach()
        assert [state.value for state in (*states, slot.state)] == [
            "taking over",
            "live",
            "failed",
            "repairing",
            "repairing",
            "failed",
            "absent",
        ]
        assert failures == [LOST, LOST]
        await asyncio.wait([repair])

    asyncio.run(repaired())


def test_a_cancelled_takeover_ends_behind_the_next_ones_begin() -> None:
    """Faust cancels a takeover when the group rebalances, and does not wait for its end."""
    slot, _ = slot_and_failures()
    slot.begin_takeover()
    slot.detach()
    slot.begin_takeover()
    slot.abandon_takeover()
    assert slot.state is SlotState.TAKING_OVER
    writer = slot.open(cast("Any", None))
    assert slot.writer is writer
