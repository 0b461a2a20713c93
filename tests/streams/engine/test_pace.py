"""When transactions of a partition begin (decisions/006), under virtual time."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from evictstream.models.instants import SECOND_US
from evictstream.streams.engine.core.committer import Committer
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.histogram import Histogram
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.core.ports import Committed
from tests.faults.simulated.world import VirtualLoop

FLOW_SECONDS = 2.0
EVERY_SECONDS = 0.01

CONFIG = EngineConfig(
    application="a",
    bootstrap_servers="none:1",
    security={},
    inputs=("in",),
    outputs=("out",),
    changelog="c",
    partitions=1,
)


@dataclasses.dataclass
class Kafka:
    """Clock and producer: a transaction takes no time, and its beginning is noted in milliseconds."""

    now: float = 0.0
    begun_ms: list[int] = dataclasses.field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def now_us(self) -> int:
        return int(self.now * SECOND_US)

    async def commit(self, _outbox: Outbox, _more: dict[bytes, bytes]) -> Committed:
        self.begun_ms.append(round(self.now * 1_000))
        return Committed(0, self.now, self.now)

    async def close(self) -> None:
        """There is nothing to close."""


async def flow(committer: Committer) -> None:
    """Change a row a hundred times a second."""
    for _ in range(int(FLOW_SECONDS / EVERY_SECONDS)):
        committer.outbox.put(b"row", b"value")
        committer.wake()
        await asyncio.sleep(EVERY_SECONDS)


async def flow_with_a_command(committer: Committer) -> None:
    flowing = asyncio.create_task(flow(committer))
    await asyncio.sleep(0.25)
    committer.outbox.send("out", b"key", b"Evict", [], is_urgent=True)
    committer.wake()
    await flowing


async def two_changes(committer: Committer) -> None:
    for _ in range(2):
        committer.outbox.put(b"row", b"value")
        committer.wake()
        await asyncio.sleep(1.0)


def begun_ms(story: Callable[[Committer], Coroutine[Any, Any, None]]) -> list[int]:
    """Run a story; returns when its transactions began."""
    kafka = Kafka()
    loop = VirtualLoop(kafka.monotonic)

    async def told() -> None:
        committer = Committer(
            config=CONFIG,
            clock=kafka,
            producer=kafka,  # type: ignore[arg-type]  # all that is called of one
            positions={"in": 0},
            spacing_seconds=lambda: 0.005,
            transaction_seconds=Histogram((1.0,)),
        )
        committer.start("commits", lambda: None, lambda error: pytest.fail(str(error)))
        await story(committer)
        await committer.close()

    task = loop.create_task(told())
    while not task.done():
        kafka.now = max(kafka.now, loop.next_us() / SECOND_US)
        assert loop.turn(lambda: True, int(kafka.now * SECOND_US))
    task.result()
    loop.close()
    return kafka.begun_ms


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        pytest.param(two_changes, [100, 1_100], id="a-change-after-a-quiet-time-lingers-shortly"),
        pytest.param(flow, [100, 600, 1_100, 1_600], id="a-steady-flow-makes-two-a-second"),
        pytest.param(flow_with_a_command, [100, 250, 750, 1_250, 1_750], id="a-command-waits-for-nothing"),
    ],
)
def test_transactions_begin(story: Callable[[Committer], Coroutine[Any, Any, None]], expected: list[int]) -> None:
    assert begun_ms(story) == expected
