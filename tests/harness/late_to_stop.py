"""A worker that crashes when it is ready, and stops after Faust's thread has: `python -m tests.harness.late_to_stop`.

A busy machine does that by itself now and then: the consumer's thread ends with the crash, before the stop needs it.
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
    """Crashes by itself, and tells of it late."""

    async def wait_crashed(self) -> None:
        """Return when it is too late to stop in order."""
        while not self.partitions.durable_positions():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(LOOK_SECONDS)
        await self.crash(ProduceRefusedError(partition=0, reason="for a test"))
        while not self.consumer_thread.thread_loop.is_closed():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    vars(evictstream.streams.service.app)["EngineApp"] = LateApp
    sys.exit(run(["worker"]))
