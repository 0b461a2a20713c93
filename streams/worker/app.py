"""One worker as a process: its core on Kafka and Faust, its watchdog and endpoint, and how it starts and stops."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib.metadata
import resource
import signal
from typing import TYPE_CHECKING, Any, NoReturn

import structlog

from evictstream.streams.broker.newest_times import newest_times_us
from evictstream.streams.broker.steering_readers import BrakesReader, PoliciesReader
from evictstream.streams.deed_log import DeedLog
from evictstream.streams.engine.clock import SYSTEM_CLOCK
from evictstream.streams.engine.core.permit import Permit
from evictstream.streams.engine.faust.app import EngineApp, FaustGroup
from evictstream.streams.engine.kafka.clients import KafkaClients
from evictstream.streams.errors import UncleanStopError, WrongUseError
from evictstream.streams.health.endpoint import Endpoint
from evictstream.streams.kafka_reach import REACH
from evictstream.streams.worker.cluster_signs import ClusterSigns
from evictstream.streams.worker.decision_lines import DecisionLines
from evictstream.streams.worker.gate_lines import GateLines
from evictstream.streams.worker.health import Health
from evictstream.streams.worker.memory_tuning import give_memory_back_in_pauses
from evictstream.streams.worker.metrics import WorkerMetrics
from evictstream.streams.worker.service_config import engine_config, gate_limits, partition_config
from evictstream.streams.worker.snapshot import Snapshot
from evictstream.streams.worker.topic_checks import checked_record_limit
from evictstream.streams.worker.watchdog import Watchdog, wait_limits
from evictstream.streams.worker.worker_core import WorkerCore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from evictstream.streams.settings import Settings

    Leave = Callable[[BaseException], NoReturn]

log = structlog.get_logger(__name__)

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOP_TIMEOUT_SECONDS = 25.0  # to commit and leave the group, before Kubernetes kills after 30 s
PULSE_SECONDS = 1.0  # between snapshots; one takes microseconds for each partition
SHORT_TIMEOUT_SECONDS = 3.0  # after a crash, when some of Faust's services never end and nothing is left to commit


class EvictionService:
    """One worker process. Make it inside a running event loop."""

    def __init__(self, settings: Settings, record_limit_bytes: int, leave: Leave) -> None:
        """`record_limit_bytes` is the largest record that every topic takes; `leave` ends the process."""
        engine = engine_config(settings, record_limit_bytes)
        self._deeds = DeedLog(settings.log_lines_limit)
        lines = DecisionLines(self._deeds)
        config = dataclasses.replace(
            partition_config(settings, record_limit_bytes),
            on_decided=lines.decided,
            on_dead_letter=lines.dead_letter,
        )
        group = FaustGroup()
        permit = Permit(SYSTEM_CLOCK.monotonic, group.leave)
        clients = KafkaClients(engine, permit)
        self._brakes = BrakesReader(settings)
        self._policies = PoliciesReader(settings)
        self._core = WorkerCore(
            engine,
            config,
            gate_limits(settings),
            kafka=clients,
            group=group,
            clock=SYSTEM_CLOCK,
            brakes=self._brakes,
            policies=self._policies,
            crash=self._crash,
        )
        self.partitions = self._core.partitions
        self.app = EngineApp(engine, self.partitions, clients=clients, group=group)
        self.watchdog = Watchdog(self._core.ages, wait_limits(settings), leave, permit)
        self._settings = settings
        self._counters = config.counters
        self._snapshot = Snapshot()
        self._signs = ClusterSigns()
        self._gate_lines = GateLines(self._deeds)

    async def _crash(self, error: BaseException) -> None:
        await self.app.crash(error)

    def serve_health(self) -> Endpoint:
        """Serve health and metrics from threads of their own.

        Raises:
            AddressTakenError: the address cannot be listened on.
        """
        settings = self._settings
        metrics = WorkerMetrics(
            counters=self._counters,
            partitions=self.partitions,
            watchdog=self.watchdog,
            snapshot=lambda: self._snapshot,
            brakes=self._brakes,
            policies=self._policies,
            inputs=dict(zip(settings.input_topics, ("nodes", "pods", "results"), strict=True)),
            partition_count=settings.partitions,
            version=importlib.metadata.version("evictstream"),
            clock=SYSTEM_CLOCK,
        )
        health = Health(self.watchdog, lambda: self._snapshot)
        REACH.watch()
        endpoint = Endpoint(settings.health_host, settings.health_port, health, metrics)
        endpoint.start()
        log.info("health endpoint started", host=settings.health_host, port=endpoint.port)
        return endpoint

    async def _pulse(self) -> None:
        """Every second, note for the watchdog that the event loop runs, and take a snapshot for probes and metrics."""
        while True:
            self.partitions.waits.loop.progress(SYSTEM_CLOCK.monotonic())
            self._snapshot = self._core.snapshot()
            self._signs.look(self._snapshot)
            self._gate_lines.look(self._snapshot)
            self._deeds.tell()
            await asyncio.sleep(PULSE_SECONDS)

    async def run(self) -> BaseException | None:
        """Run until SIGTERM, SIGINT or an error; returns the error, or `None`.

        A signal stops in order: the worker commits all steps and the group offsets, then leaves the group.
        """
        with self._brakes, self._policies:
            return await self._run()

    async def _run(self) -> BaseException | None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, stop.set)
        self.partitions.waits.loop.begin(SYSTEM_CLOCK.monotonic())
        self.serve_health()
        pulse = asyncio.create_task(self._pulse(), name="pulse")
        self.watchdog.start()
        starting = asyncio.create_task(self.app.start(), name="start")
        ends = [
            asyncio.create_task(self.app.wait_crashed(), name="crash"),
            asyncio.create_task(stop.wait(), name="stop"),
        ]
        # `start` ends after the first takeover, which other members can delay. A signal must not wait for it.
        await asyncio.wait([starting, pulse, *ends], return_when=asyncio.FIRST_COMPLETED)
        if starting.done() and (refusal := starting.exception()) is not None:
            return refusal
        parts = [*ends, *(asyncio.create_task(part, name=name) for name, part in self._parts().items())]
        done, _ = await asyncio.wait([pulse, *parts], return_when=asyncio.FIRST_COMPLETED)
        error = self.app.crash_reason or next((task.exception() for task in done if task.exception()), None)
        log.info("worker stopping", reason=repr(error) if error else "asked to")
        self.watchdog.stopping()
        await _cancel(parts)
        # `start` may not have returned yet, though the worker is a member and has taken partitions over.
        error = await self._stop_app(error, is_member=starting.done() or self.partitions.has_been_assigned)
        pulse.cancel()
        self._deeds.end()
        return error

    def _parts(self) -> dict[str, Coroutine[Any, Any, None]]:
        return {
            **self._core.parts(),
            "newest": self._core.freshness.watch_newest(
                lambda wanted: asyncio.to_thread(newest_times_us, self._settings, wanted)
            ),
            "pauses": self.partitions.waits.measure_pauses(),
            "memory": give_memory_back_in_pauses(self.partitions, self._settings.position_interval_seconds),
        }

    async def _stop_app(self, error: BaseException | None, *, is_member: bool) -> BaseException | None:
        """Commit, leave the group and end Faust's services within a time limit; returns the first error."""
        # A worker that has crashed or was never assigned anything has nothing to commit.
        patience_seconds = STOP_TIMEOUT_SECONDS if error is None and is_member else SHORT_TIMEOUT_SECONDS
        try:
            async with asyncio.timeout(patience_seconds):
                await self.app.stop()
        except (TimeoutError, asyncio.CancelledError):
            error = error or UncleanStopError(waited_seconds=patience_seconds)
        except Exception as failure:  # noqa: BLE001 - after a crash a thread that it needs may be gone; the process ends all the same
            error = error or failure
        if not is_member:  # its JoinGroup is unanswered, and the thread that sent it ends only with the answer
            error = error or UncleanStopError(waited_seconds=patience_seconds)
        return error


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    try:
        async with asyncio.timeout(SHORT_TIMEOUT_SECONDS):
            await asyncio.gather(*tasks, return_exceptions=True)
    except TimeoutError:  # the app commits all steps nevertheless
        log.warning("tasks did not stop in time", parts=[task.get_name() for task in tasks if not task.done()])


def allow_many_connections() -> None:
    """Raise the limit of open files, often 1,024, to the most that this process may have.

    Each partition opens a connection to every broker, and one more. Where the system refuses, the limit stays.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # macOS refuses "no limit", though it names that as the most
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def loop_factory(settings: Settings) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the chosen event loop, `None` for the one that asyncio makes.

    Raises:
        WrongUseError: `uvloop` is chosen and not installed.
    """
    if settings.event_loop == "asyncio":
        return None
    try:
        import uvloop  # noqa: PLC0415 - an extra, which may be missing
    except ImportError as error:
        problem = "event_loop is uvloop, which is not installed"
        raise WrongUseError(problem, next_step="pip install 'evictstream[uvloop]', or set it to asyncio") from error
    return uvloop.new_event_loop


async def run_worker(settings: Settings, leave: Leave) -> None:
    """Check what a worker depends on, then run until stopped.

    `leave` ends the process after an error, at once: after a crash some of Faust's tasks and threads never end, and a
    worker that waits for them would keep its supervisor from restarting it.

    Raises:
        TopicsDifferError: a topic is missing, or differs in what evictstream cannot work without.
        BrokerUnreachableError: no Kafka answered.
        AddressTakenError: the address for health in the settings cannot be listened on.
    """
    allow_many_connections()
    error = await EvictionService(settings, await checked_record_limit(settings), leave).run()
    if error is not None:
        leave(error)
