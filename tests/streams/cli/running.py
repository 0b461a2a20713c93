"""Command lines with input, or that go on until they are stopped."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from evictstream.streams.settings import Settings
from tests.harness import copies

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60.0

COMMAND = [sys.executable, "-m", "evictstream.streams.cli.main"]


def environment_of(settings: Settings) -> dict[str, str]:
    """Settings of a test as variables."""
    names = ("bootstrap_servers", "topic_prefix", "application_id", "partitions")
    return os.environ | {f"EVICTSTREAM_{name.upper()}": str(getattr(settings, name)) for name in names}


def run(
    settings: Settings, *arguments: str, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run one command line to its end."""
    with started(settings, *arguments, environment=environment) as process:
        stdout, stderr = process.communicate(stdin, PATIENCE_SECONDS)
    assert b"Traceback" not in stderr
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


@contextlib.contextmanager
def started(
    settings: Settings,
    *arguments: str,
    stdin: int = subprocess.PIPE,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    environment: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command line, with warnings as errors, and make sure that it ends with the test."""
    with copies.start(
        [*COMMAND, *arguments],
        is_strict=True,
        env=environment_of(settings) | dict(environment or {}),
        cwd=ROOT,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(condition: Callable[[], bool]) -> None:
    """Return when it holds; fail when it does not come to hold."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up_at, "waited in vain"
        time.sleep(0.05)
