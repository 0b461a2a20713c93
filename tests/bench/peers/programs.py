"""The programs that are compared: ours, Kafka Streams in its two guarantees, and stock Faust. One process each, and
ours in two where the question is what both cores can do: Kafka Streams has two threads.

All read the same input topics and write the same commands; what a program keeps is named after it, so programs may
share topics as long as one of them runs at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

from evictstream.streams.settings import Settings
from tests.bench.figures import WrongResultError, require
from tests.bench.peers.building import java, kafka_streams_classpath
from tests.harness.workers import environment

STOP_SECONDS: Final = 60.0
LOG_TAIL_BYTES: Final = 1_500
FAIR_SHARE: Final = 0.5  # of what the busiest process used: one that has two of four partitions uses as much

HEAP: Final = ("-Xms512m", "-Xmx2g", "-XX:+UseParallelGC")
"""On two cores the parallel collector has the highest throughput; 2 GB are three times what is alive at a million
rows."""

_QUIET: Final = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """How one of them is started.

    Attributes:
        name: in tables and files.
        title: for people.
        guarantee: of Kafka Streams; empty for the others.
        share: of the events that it is given in a measure of throughput; a slow one would take the whole day.
        processes: how many of it run, in one group.
    """

    name: str
    title: str
    guarantee: str = ""
    share: float = 1.0
    processes: int = 1

    @property
    def is_stock_faust(self) -> bool:
        """Whether it is the slow one."""
        return self.name == "faust"

    def changelog(self, settings: Settings) -> str:
        """Name the topic of its pods' rows."""
        if self.guarantee:
            return f"{self._application(settings)}-state-changelog"
        return f"{self._application(settings)}-pods-changelog" if self.is_stock_faust else settings.changelog_topic

    def command(self, settings: Settings, folder: Path) -> Sequence[str]:
        """Give what to run."""
        servers = settings.required_bootstrap_servers()
        topics = (settings.nodes_topic, settings.pods_topic, settings.commands_topic)
        if self.guarantee:
            arguments = (servers, self._application(settings), *topics, self.guarantee, str(folder))
            return (java(), *HEAP, *_QUIET, "-cp", kafka_streams_classpath(), "Peer", *arguments)
        if self.is_stock_faust:
            return (sys.executable, "-m", "tests.bench.peers.stock_faust", "worker", "--loglevel", "error")
        return (sys.executable, "-m", "evictstream.streams.cli.main", "worker")

    def environment(self, settings: Settings, folder: Path) -> dict[str, str]:
        """Give the variables to run with."""
        if not self.is_stock_faust:
            return environment(settings)
        return {
            **os.environ,
            "PEER_SERVERS": settings.required_bootstrap_servers(),
            "PEER_APPLICATION": self._application(settings),
            "PEER_NODES": settings.nodes_topic,
            "PEER_PODS": settings.pods_topic,
            "PEER_COMMANDS": settings.commands_topic,
            "PEER_PARTITIONS": str(settings.partitions),
            "PEER_FOLDER": str(folder),
        }

    def _application(self, settings: Settings) -> str:
        return f"{settings.application_id}-{self.name}"


OURS: Final = Program("ours", "evictstream")
OURS_TWICE: Final = Program("ours-2", "evictstream, two workers", processes=2)
STREAMS: Final = Program("ks", "Kafka Streams, at least once", "at_least_once")
STREAMS_EXACTLY_ONCE: Final = Program("ks-eos", "Kafka Streams, exactly once", "exactly_once_v2")
FAUST: Final = Program("faust", "stock Faust", share=0.05)

PROGRAMS: Final = (OURS, STREAMS, STREAMS_EXACTLY_ONCE, FAUST)
BUSY: Final = (OURS, OURS_TWICE, *PROGRAMS[1:])
"""Those of a measure that keeps both cores busy."""


class Running:
    """The processes of a program, nearly always one, and what they have used so far."""

    def __init__(self, program: Program, settings: Settings, folder: Path) -> None:
        self.program = program
        self.settings = settings
        self._files = Path(tempfile.mkdtemp(prefix=f"{program.name}-", dir=folder))
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> Self:
        """Start without waiting."""
        with self._log.open("wb") as log:
            for _ in range(self.program.processes):
                process = subprocess.Popen(
                    self.program.command(self.settings, self._files),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self.program.environment(self.settings, self._files),
                )
                self._processes.append(process)
        return self

    def stop(self) -> None:
        """End it in order."""
        self._signal(signal.SIGTERM)
        try:
            for process in self._processes:
                process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise WrongResultError(f"{self.program.title} did not stop:\n{self.log_tail()}") from None

    def freeze(self) -> None:
        """Let it do nothing for a while, shorter than any session."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            process.send_signal(number)

    def kill(self) -> None:
        """End it at once."""
        for process in self._processes:
            process.kill()
            process.wait()

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        """Tell of what goes wrong in the block that it is this program's, with the end of its log."""
        try:
            yield
        except WrongResultError as error:
            raise WrongResultError(f"{self.program.title}: {error}\n{self.log_tail()}") from error

    def log_tail(self) -> str:
        """Give the end of what it wrote."""
        return self._log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")

    def cpu_seconds(self) -> float:
        """Give the processor time of all its threads until now."""
        return sum(map(_cpu_seconds, self._processes))

    def require_shared(self) -> None:
        """Refuse a measurement in which one of several processes did much less than the other."""
        used = sorted(map(_cpu_seconds, self._processes))
        require(used[0] > FAIR_SHARE * used[-1], f"the work was not shared: {used} s of processor time")

    def peak_bytes(self) -> int:
        """Give the most that it ever had in memory."""
        return sum(map(_peak_bytes, self._processes))

    @property
    def _log(self) -> Path:
        return self._files / "log"


def _cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_bytes(process: subprocess.Popen[bytes]) -> int:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise WrongResultError("the system does not tell the peak of memory")


@contextlib.asynccontextmanager
async def running(program: Program, settings: Settings, folder: Path) -> AsyncIterator[Running]:
    """Run a program until the block ends."""
    process = Running(program, settings, folder)
    try:
        process.start()
        yield process
        await asyncio.to_thread(process.stop)
    finally:
        process.kill()
