"""Waiting for an event, but not for ever."""

from __future__ import annotations

import asyncio
import time

import pytest

from evictstream.streams.engine.core.waiting import set_within


def test_it_returns_when_the_event_is_set_or_the_time_is_over() -> None:
    async def test() -> None:
        event = asyncio.Event()
        began_at = time.monotonic()
        await set_within(0.01, event)
        assert not event.is_set()
        asyncio.get_running_loop().call_soon(event.set)
        await set_within(60, event)
        assert event.is_set()
        assert time.monotonic() - began_at < 30

    asyncio.run(test())


@pytest.mark.parametrize("turns", range(5))
def test_a_cancellation_is_never_taken_away(turns: int) -> None:
    """Not by an event that was set some turns of the loop before: a worker that stops would wait for it for ever."""

    async def test() -> None:
        event = asyncio.Event()

        async def wait_again_and_again() -> None:
            while True:
                event.clear()
                await set_within(60, event)

        task = asyncio.create_task(wait_again_and_again())
        for _ in range(5):
            await asyncio.sleep(0)
        event.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=1)
        ended = task.done()
        task.cancel()
        assert ended

    asyncio.run(test())
