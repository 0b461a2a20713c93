"""How old the view of a partition is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from evictstream.streams.worker.freshness import SAMPLES_KEPT, Freshness
from tests.streams.worker.fakes import FakeGroup


@pytest.mark.parametrize("behind_seconds", [0, 5, SAMPLES_KEPT + 5, 20 * SAMPLES_KEPT])
def test_a_constant_backlog_has_its_age(behind_seconds: int) -> None:
    now = 1_000
    writer: Any = SimpleNamespace(partition=0, positions={"nodes": 0}, caught_up=False)
    partitions: Any = SimpleNamespace(live=lambda: iter([writer]))
    clock: Any = SimpleNamespace(monotonic=lambda: float(now), now_us=lambda: now * 1_000_000)

    group = FakeGroup({})
    freshness = Freshness(partitions, group, clock)

    async def look() -> float:
        nonlocal now
        ages = []
        for _ in range(100 * SAMPLES_KEPT):
            now += 1
            group.ends["nodes", 0] = now  # a record in each second
            writer.positions["nodes"] = now - behind_seconds
            await freshness.ask_once()
            freshness.note(writer)
            ages.append(freshness.age_seconds(writer.partition))
        return max(ages[len(ages) // 2 :])

    assert behind_seconds <= asyncio.run(look()) <= behind_seconds + 2 * max(1, behind_seconds - SAMPLES_KEPT)


def test_a_taken_over_partition_is_fresh_once_caught_up() -> None:
    """It need not wait for the next question, up to a second later, and earlier samples of it do not count."""
    writer: Any = SimpleNamespace(partition=0, positions={"nodes": 0}, caught_up=False, ends_asked_at=90.0)
    partitions: Any = SimpleNamespace(live=lambda: iter([writer]))
    now = 50.0
    clock: Any = SimpleNamespace(monotonic=lambda: now, now_us=lambda: 0)
    freshness = Freshness(partitions, FakeGroup({("nodes", 0): 7}), clock)
    asyncio.run(freshness.ask_once())
    now = 100.0
    freshness.note(writer)
    assert freshness.age_seconds(0) == float("inf")
    writer.positions["nodes"], writer.caught_up = 9, True
    freshness.note(writer)
    assert freshness.age_seconds(0) == 10.0
