"""Runs an installed evictstream: its commands, and a worker on a real Kafka."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

from tests.release.building import ROOT, CheckFailedError, run

INCIDENT = ROOT / "examples" / "incidents" / "single-node-unreachable-no-evictor" / "events.jsonl.gz"
START_SECONDS = 60.0
"""For a worker to have its partitions; a few seconds are usual."""


def try_out(environment: Path, servers: str) -> None:
    """Run commands that need no Kafka, then declare topics and start a worker. Raises `CheckFailedError`."""
    program = environment / "bin" / "evictstream"
    run(program, "version", cwd=environment)
    run(program, "config", "--explain", cwd=environment)
    run(program, "replay", INCIDENT, "--cluster", "lab", cwd=environment)
    name = f"release-{uuid.uuid4().hex[:8]}"
    settings = {
        "EVICTSTREAM_BOOTSTRAP_SERVERS": servers,
        "EVICTSTREAM_TOPIC_PREFIX": f"{name}.",
        "EVICTSTREAM_APPLICATION_ID": name,
        "EVICTSTREAM_PARTITIONS": "1",
    }
    run(program, "topics", "declare", cwd=environment, environment=settings)
    with _ended(
        subprocess.Popen(
            [program, "worker"],
            cwd=environment,
            env=os.environ | settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    ) as worker:
        _stop_when_it_works(worker)


@contextlib.contextmanager
def _ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Kill it after a minute, or at the end."""
    timer = threading.Timer(START_SECONDS, process.kill)
    timer.start()
    try:
        with process:
            yield process
    finally:
        timer.cancel()
        process.kill()


def _stop_when_it_works(worker: subprocess.Popen[str]) -> None:
    said = ""
    assert worker.stdout is not None
    for line in worker.stdout:
        said += line
        if "partitions taken over" in line:
            worker.send_signal(signal.SIGTERM)
    if worker.wait() != 0 or "partitions taken over" not in said:
        raise CheckFailedError(f"the worker ended with {worker.returncode}:\n{said[-3_000:]}")
