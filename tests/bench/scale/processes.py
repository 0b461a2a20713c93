"""The processes of the product as operators run them, and what each process of a scene has used."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from evictstream.streams.broker.ports import free_ports
from evictstream.streams.settings import Settings
from tests.bench.figures import require
from tests.bench.lab import resident_bytes


class MeasuredProcess:
    """One process of the product, and what it has used."""

    def __init__(self, settings: Settings, *arguments: str) -> None:
        (self.port,) = free_ports(1)
        environment = os.environ | {
            "EVICTSTREAM_BOOTSTRAP_SERVERS": str(settings.bootstrap_servers),
            "EVICTSTREAM_TOPIC_PREFIX": settings.topic_prefix,
            "EVICTSTREAM_APPLICATION_ID": settings.application_id,
            "EVICTSTREAM_PARTITIONS": str(settings.partitions),
            "EVICTSTREAM_HEALTH_PORT": str(self.port),
            "EVICTSTREAM_LOG_LEVEL": "warning",
        }
        command = [sys.executable, "-m", "evictstream.streams.cli.main", *arguments]
        self._process = subprocess.Popen(command, env=environment)

    def is_ready(self) -> bool:
        """Whether it does its work; a feed that stands by is ready too, but does not."""
        url = f"http://127.0.0.1:{self.port}/readyz"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
            return not json.loads(answer.read()).get("standBy")
        return False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    @property
    def megabytes(self) -> float:
        return resident_bytes(self.pid) / 1e6

    def stop(self) -> None:
        self._process.terminate()
        require(self._process.wait(30) == 0, "a process did not stop in order")


def cpu_seconds(pid: int) -> float:
    """Give the processor time that a process has used, with the system's share."""
    return _cpu_seconds(Path(f"/proc/{pid}/stat").read_text())


def compiler_seconds(pid: int) -> float:
    """Give the part of it in which Java has compiled what it runs often: much in the first hour, later hardly any."""
    threads = [stat.read_text() for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return sum(_cpu_seconds(stat) for stat in threads if "CompilerThre" in stat)


def _cpu_seconds(stat: str) -> float:
    fields = stat.rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def until(condition: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait until something is so; it is a wrong result if that takes too long."""
    end_at = time.monotonic() + seconds
    while not await asyncio.to_thread(condition):
        require(time.monotonic() < end_at, f"{what} took more than {seconds:g} s")
        await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def running(process: MeasuredProcess) -> AsyncIterator[MeasuredProcess]:
    """Let a process run, and stop in order."""
    try:
        yield process
    finally:
        await asyncio.to_thread(process.stop)
