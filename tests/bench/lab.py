"""Where measures happen: one broker for the whole run, topics of its own for each measure, one worker at a time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.bench.figures import WrongResultError, require
from tests.harness.workers import WorkerProcess

PARTITIONS = 4
NO_REPEATS_SECONDS = 3_600.0  # no executor answers here, and repeats are not what is measured
RSS_SETTLE_SECONDS = 15.0
RSS_STEP_SECONDS = 1.0


@dataclasses.dataclass(slots=True)
class Lab:
    """The means of one run.

    Attributes:
        bootstrap_servers: the broker.
        folder: for the workers' logs.
        is_quick: whether less of the work has to do.
        broker_folder: where the broker keeps its data, if that is looked at.
        broker_pid: the broker's process, if that is looked at.
    """

    bootstrap_servers: str
    folder: Path
    is_quick: bool
    broker_folder: Path = Path()
    broker_pid: int = 0
    _made: int = 0

    def settings(self, name: str, **more: object) -> Settings:
        """Declare topics of their own and give the settings: defaults, but for the count of partitions and repeats."""
        self._made += 1
        mine = f"{name}-{self._made}"
        ours = {
            "bootstrap_servers": self.bootstrap_servers,
            "topic_prefix": f"{mine}.",
            "application_id": mine,
            "partitions": PARTITIONS,
            "result_silence_seconds": NO_REPEATS_SECONDS,
        }
        settings = Settings.model_validate(ours | more)
        declare_topics(settings).raise_if_breaking()
        return settings

    @contextlib.asynccontextmanager
    async def worker(self, settings: Settings) -> AsyncIterator[WorkerProcess]:
        """Run a worker, from its takeover to its orderly stop."""
        with WorkerProcess(settings, self.folder, settings.application_id) as worker:
            try:
                await asyncio.to_thread(worker.wait_ready)
            except AssertionError as error:
                raise WrongResultError(str(error)) from error
            yield worker
            require(await asyncio.to_thread(worker.stop) == 0, "the worker did not stop in order")


def say(text: str) -> None:
    """Tell a person who waits how far we are."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stderr.flush()


def resident_bytes(pid: int) -> int:
    """Give what a process has in memory, as `ps` tells it."""
    answer = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=True, text=True)  # noqa: S607
    return int(answer.stdout) * 1024


async def settled_bytes(pid: int) -> int:
    """Wait until a process neither grows nor shrinks by a hundredth in a second, and give what it has in memory."""
    size = resident_bytes(pid)
    until = time.monotonic() + RSS_SETTLE_SECONDS
    while time.monotonic() < until:
        await asyncio.sleep(RSS_STEP_SECONDS)
        before, size = size, resident_bytes(pid)
        if abs(size - before) < before / 100:
            break
    return size
