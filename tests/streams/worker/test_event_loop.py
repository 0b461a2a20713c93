"""The settings choose the event loop of a worker."""

from __future__ import annotations

import asyncio
import sys
from typing import Literal, NoReturn

import pytest

from evictstream.streams.engine.faust.transport import EngineConsumer
from evictstream.streams.errors import WrongUseError
from evictstream.streams.settings import Settings
from evictstream.streams.worker.app import EvictionService, loop_factory

RECORD_LIMIT_BYTES = 1_000_000


def leave(error: BaseException) -> NoReturn:
    raise error


async def loops(settings: Settings) -> list[str]:
    """Modules of the loops of a worker and of its consumer, neither of which is started."""
    consumer = EvictionService(settings, RECORD_LIMIT_BYTES, leave).app.consumer
    assert isinstance(consumer, EngineConsumer)
    consumer.thread.thread_loop.close()
    return [type(loop).__module__.partition(".")[0] for loop in (consumer.loop, consumer.thread.thread_loop)]


@pytest.mark.parametrize("chosen", ["asyncio", "uvloop"])
def test_the_chosen_loop_runs_worker_and_consumer(chosen: Literal["asyncio", "uvloop"]) -> None:
    if chosen == "uvloop":
        pytest.importorskip("uvloop", reason="the extra `uvloop` is not installed")
    settings = Settings(event_loop=chosen, bootstrap_servers="localhost:9092")
    with asyncio.Runner(loop_factory=loop_factory(settings)) as runner:
        assert runner.run(loops(settings)) == [chosen, chosen]


def test_uvloop_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with pytest.raises(WrongUseError, match=r"not installed.*pip install 'evictstream\[uvloop\]'"):
        loop_factory(Settings(event_loop="uvloop"))
