"""A worker that crashes when it is ready, and stops only after the thread of its consumer has ended.

`python -m tests.harness.crashing_worker`. On a busy machine the order comes about by itself now and then.
"""

from __future__ import annotations

import asyncio
import sys

import evictstream.streams.service.app
from evictstream.streams.cli.main import run
from evictstream.streams.engine.faust.app import EngineApp
from evictstream.streams.errors import ProduceRefusedError

LOOK_SECONDS = 0.05


class LateApp(EngineApp):
    """Crashes by itself, and reports the crash when nothing can be stopped in order any more."""

    async def wait_crashed(self) -> None:
        while not self.partitions.durable_positions():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(LOOK_SECONDS)
        await self.crash(ProduceRefusedError(partition=0, reason="for a test"))
        while not self.consumer_thread.thread_loop.is_closed():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    vars(evictstream.streams.service.app)["EngineApp"] = LateApp
    sys.exit(run(["worker"]))
