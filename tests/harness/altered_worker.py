"""Workers in which an order of events that a busy machine brings about now and then always comes about.

`python -m tests.harness.altered_worker crashing|starting`.
"""

from __future__ import annotations

import asyncio
import sys

import evictstream.streams.worker.app
from evictstream.streams.cli.main import run
from evictstream.streams.engine.faust.app import EngineApp
from evictstream.streams.errors import ProduceRefusedError

LOOK_SECONDS = 0.05


class CrashingApp(EngineApp):
    """Crashes when it has partitions, and then cannot be stopped in order: the thread that this needs has ended."""

    async def wait_crashed(self) -> None:
        while not self.partitions.durable_positions():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(LOOK_SECONDS)
        await self.crash(ProduceRefusedError(partition=0, reason="for a test"))

    async def stop(self) -> None:
        raise RuntimeError("Event loop is closed")


class StartingApp(EngineApp):
    """Takes partitions over, and is never done with starting."""

    async def start(self) -> None:
        await super().start()
        await asyncio.Event().wait()


APPS = {"crashing": CrashingApp, "starting": StartingApp}

if __name__ == "__main__":
    vars(evictstream.streams.worker.app)["EngineApp"] = APPS[sys.argv[1]]
    sys.exit(run(["worker"]))
