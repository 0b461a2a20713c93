"""The service put together: Faust app, partitions, gates, freshness and timers, and how a worker runs them."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import resource
import signal
import time
from typing import TYPE_CHECKING, NoReturn

import structlog

from evictstream.streams.broker.newest_times import newest_times_us
from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.partitions import Partitions
from evictstream.streams.engine.core.permit import Permit
from evictstream.streams.engine.faust.app import EngineApp, FaustGroup
from evictstream.streams.engine.kafka.clients import KafkaClients
from evictstream.streams.errors import UncleanStopError
from evictstream.streams.service.checks import checked_record_limit
from evictstream.streams.service.clock import ClockWatch, now_us
from evictstream.streams.service.endpoint import Endpoint
from evictstream.streams.service.freshness import Freshness
from evictstream.streams.service.gates import Gates
from evictstream.streams.service.health import Health
from evictstream.streams.service.memory import calm_collector, give_memory_back
from evictstream.streams.service.metrics import WorkerMetrics
from evictstream.streams.service.partition import EvictionPartition
from evictstream.streams.service.plan import engine_config, service_plan
from evictstream.streams.service.snapshot import Observer, Snapshot
from evictstream.streams.service.timers import TimerService
from evictstream.streams.service.watchdog import Watchdog, limits_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evictstream.streams.engine.core.waits import WaitKind
    from evictstream.streams.engine.core.writer import PartitionWriter
    from evictstream.streams.settings import Settings

    Leave = Callable[[BaseException], NoReturn]

log = structlog.get_logger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOP_TIMEOUT_SECONDS = 25.0  # below the 30 s after which Kubernetes kills; enough to commit and leave the group
PULSE_SECONDS = 1.0  # how old a snapshot may be; taking one costs microseconds for each partition
SHORT_TIMEOUT_SECONDS = 3.0  # after a crash some of Faust's services never end; nothing is left to be saved


class EvictionService:
    """One worker's share of the service. Make it inside a running event loop."""

    def __init__(self, settings: Settings, record_limit_bytes: int, leave: Leave) -> None:
        """``record_limit_bytes`` is what the smallest of our topics takes; ``leave`` ends the process."""
        plan = service_plan(settings, record_limit_bytes)
        config = engine_config(settings, record_limit_bytes)
        group = FaustGroup()
        permit = Permit(SYSTEM_CLOCK.monotonic, group.leave)
        clients = KafkaClients(config, permit)
        self.partitions = Partitions(
            config,
            new_logic=lambda number: EvictionPartition(number, plan),
            kafka=clients,
            group=group,
            clock=SYSTEM_CLOCK,
            crash=self._crash,
            on_step=self._stepped,
        )
        self.app = EngineApp(config, self.partitions, clients=clients, group=group)
        self.clock = ClockWatch(
            settings.clock_skew_limit_seconds, settings.clock_jump_limit_seconds, settings.clock_jump_hold_seconds
        )
        self.freshness = Freshness(self.partitions, group.end_offsets, self._newest_times)
        self.gates = Gates(
            lease=self.partitions.lease,
            is_rebalancing=lambda: group.is_rebalancing,
            clock=self.clock,
            freshness=self.freshness,
            lag_limit_seconds=settings.lag_limit_seconds,
        )
        self.timers = TimerService(self.partitions, self.gates, self.clock)
        self.watchdog = Watchdog(self._ages, limits_of(settings), leave, permit)
        self._settings = settings
        self._tally = plan.tally
        self._observer = Observer(self.partitions, self.gates, self.freshness)
        self._snapshot = Snapshot()

    async def _crash(self, error: BaseException) -> None:
        await self.app.crash(error)

    def _stepped(self, writer: PartitionWriter) -> None:
        self.timers.stepped(writer)

    def _ages(self, now: float) -> Mapping[WaitKind, float]:
        return self.partitions.waits.ages(now, self.partitions.live(), self.timers.waited)

    def serve_health(self) -> Endpoint:
        """Begin to answer on health and metrics.

        Raises:
            AddressTakenError: the address cannot be listened on.

        """
        settings = self._settings
        metrics = WorkerMetrics(
            tally=self._tally,
            partitions=self.partitions,
            watchdog=self.watchdog,
            limits=limits_of(settings),
            snapshot=lambda: self._snapshot,
            inputs=dict(zip(settings.input_topics, ("nodes", "pods", "results"), strict=True)),
            version=importlib.metadata.version("evictstream"),
            now_us=now_us,
            monotonic=time.monotonic,
        )
        health = Health(self.watchdog, lambda: self._snapshot)
        endpoint = Endpoint(settings.health_host, settings.health_port, health, metrics)
        endpoint.start()
        log.info("health is served", host=settings.health_host, port=endpoint.server_address[1])
        return endpoint

    async def _newest_times(self, wanted: list[tuple[str, int]]) -> Mapping[tuple[str, int], int]:
        return await asyncio.to_thread(newest_times_us, self._settings, wanted)

    async def _pulse(self) -> None:
        """Show that the loop comes round, and what the partitions look like."""
        while True:
            self.partitions.waits.loop.progress(time.monotonic())
            self._snapshot = self._observer.look(now_us())
            await asyncio.sleep(PULSE_SECONDS)

    async def _write_positions(self) -> None:
        """Make positions durable now and then where nothing else is written; use a pause to give memory back."""
        steps_before = -1
        while True:
            await asyncio.sleep(self._settings.position_interval_seconds)
            steps = sum(sum(writer.positions.values()) for writer in self.partitions.live())
            if steps == steps_before:
                give_memory_back()
            steps_before = steps
            for writer in self.partitions.live():
                writer.keep_alive()

    async def run(self) -> BaseException | None:
        """Work until SIGTERM or SIGINT, or until something cannot go on; returns what that was.

        A stop by signal commits what was stepped, tells the group, and leaves it.
        """
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, stop.set)
        self.partitions.waits.loop.begin(time.monotonic())
        self.serve_health()
        pulse = asyncio.create_task(self._pulse(), name="pulse")
        self.watchdog.start()
        starting = asyncio.create_task(self.app.start(), name="start")
        ends = [
            asyncio.create_task(self.app.wait_crashed(), name="crash"),
            asyncio.create_task(stop.wait(), name="stop"),
        ]
        # Starting lasts until the first take-over, which others may hold up: a signal must not have to wait for it.
        await asyncio.wait([starting, pulse, *ends], return_when=asyncio.FIRST_COMPLETED)
        if starting.done() and (refusal := starting.exception()) is not None:
            return refusal
        helpers = [
            *ends,
            *(
                asyncio.create_task(part, name=name)
                for name, part in (
                    ("timers", self.timers.run()),
                    ("pauses", self.partitions.waits.measure_pauses()),
                    ("freshness", self.freshness.run()),
                    ("newest", self.freshness.watch_newest()),
                    ("positions", self._write_positions()),
                )
            ),
        ]
        done, _ = await asyncio.wait([pulse, *helpers], return_when=asyncio.FIRST_COMPLETED)
        error = self.app.crash_reason or next((task.exception() for task in done if task.exception()), None)
        log.info("worker stops", reason=repr(error) if error else "asked to")
        self.watchdog.stopping()
        for task in helpers:
            task.cancel()
        try:
            async with asyncio.timeout(SHORT_TIMEOUT_SECONDS):
                await asyncio.gather(*helpers, return_exceptions=True)
        except TimeoutError:  # what was stepped is committed all the same
            log.warning("parts do not end", parts=[task.get_name() for task in helpers if not task.done()])
        # Who has crashed or never began has nothing to commit.
        began = starting.done()
        patience = STOP_TIMEOUT_SECONDS if error is None and began else SHORT_TIMEOUT_SECONDS
        try:
            async with asyncio.timeout(patience):
                await self.app.stop()
        except (TimeoutError, asyncio.CancelledError):
            error = error or UncleanStopError(waited_seconds=patience)
        except Exception as failure:  # noqa: BLE001 - after a crash a thread that it needs may be gone; it ends all the same
            error = error or failure
        if not began:  # its request to join is still out, in a thread that does not end before the answer
            error = error or UncleanStopError(waited_seconds=patience)
        pulse.cancel()
        return error


def allow_many_connections() -> None:
    """Take as many files as this process may: each partition takes one more than there are brokers, 1,024 are usual.

    A system that refuses leaves the limit as it is.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # macOS has a limit also where it says "none"
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def run_worker(settings: Settings, leave: Leave) -> None:
    """Check what a worker depends on, then run until stopped.

    ``leave`` ends the process when something cannot go on. It has to do so at once: after a crash some of Faust's
    tasks and threads never end, and a worker that hangs there would keep its supervisor from restarting it.

    Raises:
        TopicsDifferError: topics are missing or not as they must be.
        BrokerUnreachableError: no Kafka answered.
        AddressTakenError: health cannot be served where the settings say.

    """
    calm_collector()
    allow_many_connections()
    error = await EvictionService(settings, await checked_record_limit(settings), leave).run()
    if error is not None:
        leave(error)
