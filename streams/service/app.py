"""The service put together: Faust app, partitions, gates, freshness and timers, and how a worker runs them."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, NoReturn

import structlog
from faust.types import TP

from streams.engine.app import EngineApp
from streams.errors import UncleanStopError
from streams.service.checks import checked_record_limit
from streams.service.clock import ClockWatch
from streams.service.freshness import Freshness
from streams.service.gates import Gates
from streams.service.memory import calm_collector, give_memory_back
from streams.service.partition import EvictionPartition
from streams.service.plan import engine_config, service_plan
from streams.service.timers import TimerService

if TYPE_CHECKING:
    from collections.abc import Callable

    from streams.settings import Settings

log = structlog.get_logger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOP_TIMEOUT_SECONDS = 25.0  # below the 30 s after which Kubernetes kills; enough to commit and leave the group
CRASH_TIMEOUT_SECONDS = 3.0  # after a crash some of Faust's services never end; nothing is left to be saved


class EvictionService:
    """One worker's share of the service. Make it inside a running event loop."""

    def __init__(self, settings: Settings, record_limit_bytes: int) -> None:
        """``record_limit_bytes`` is what the smallest of our topics takes, read at start."""
        plan = service_plan(settings, record_limit_bytes)
        self.app = EngineApp(engine_config(settings), lambda number: EvictionPartition(number, plan))
        self.partitions = self.app.partitions
        self.clock = ClockWatch(
            settings.clock_skew_limit_seconds, settings.clock_jump_limit_seconds, settings.clock_jump_hold_seconds
        )
        self.freshness = Freshness(self.partitions, self._end_offsets)
        self.gates = Gates(
            lease=self.partitions.lease,
            is_rebalancing=lambda: self.app.rebalancing,
            clock=self.clock,
            freshness=self.freshness,
            lag_limit_seconds=settings.lag_limit_seconds,
        )
        self.timers = TimerService(self.partitions, self.gates, self.clock)
        self._position_interval_seconds = settings.position_interval_seconds

    async def _end_offsets(self, wanted: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return await self.app.consumer_thread.end_offsets([TP(topic, number) for topic, number in wanted])

    async def _write_positions(self) -> None:
        """Make positions durable now and then where nothing else is written; use a pause to give memory back."""
        steps_before = -1
        while True:
            await asyncio.sleep(self._position_interval_seconds)
            steps = sum(sum(writer.positions.values()) for writer in self.partitions.live())
            if steps == steps_before:
                give_memory_back()
            steps_before = steps
            for writer in self.partitions.live():
                writer.checkpoint()

    async def run(self) -> BaseException | None:
        """Work until SIGTERM or SIGINT, or until something cannot go on; returns what that was.

        A stop by signal commits what was stepped, tells the group, and leaves it.
        """
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, stop.set)
        await self.app.start()
        helpers = [
            asyncio.create_task(part, name=name)
            for name, part in (
                ("timers", self.timers.run()),
                ("freshness", self.freshness.run()),
                ("positions", self._write_positions()),
                ("crash", self.app.wait_crashed()),
                ("stop", stop.wait()),
            )
        ]
        done, _ = await asyncio.wait(helpers, return_when=asyncio.FIRST_COMPLETED)
        error = self.app.crash_reason or next((task.exception() for task in done if task.exception()), None)
        log.info("worker stops", reason=repr(error) if error else "asked to")
        for task in helpers:
            task.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        try:
            async with asyncio.timeout(STOP_TIMEOUT_SECONDS if error is None else CRASH_TIMEOUT_SECONDS):
                await self.app.stop()
        except (TimeoutError, asyncio.CancelledError):
            error = error or UncleanStopError(waited_seconds=STOP_TIMEOUT_SECONDS)
        return error


async def run_worker(settings: Settings, leave: Callable[[BaseException], NoReturn]) -> None:
    """Check what a worker depends on, then run until stopped.

    ``leave`` ends the process when something cannot go on. It has to do so at once: after a crash some of Faust's
    tasks and threads never end, and a worker that hangs there would keep its supervisor from restarting it.

    Raises:
        TopicsDifferError: topics are missing or not as they must be.
        BrokerUnreachableError: no Kafka answered.

    """
    calm_collector()
    error = await EvictionService(settings, await checked_record_limit(settings)).run()
    if error is not None:
        leave(error)
