"""Command lines with input, or that go on until they are stopped."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from evictstream.streams.settings import Settings
from tests.harness import copies

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60.0

COMMAND = [sys.executable, *copies.STRICT, "-m", "evictstream.streams.cli.main"]


def environment_of(settings: Settings) -> dict[str, str]:
    """Settings of a test as variables."""
    names = ("bootstrap_servers", "topic_prefix", "application_id", "partitions")
    return os.environ | {f"EVICTSTREAM_{name.upper()}": str(getattr(settings, name)) for name in names}


def run(
    settings: Settings, *arguments: str, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run one command line to its end."""
    result = copies.run(
        [*COMMAND, *arguments],
        env=environment_of(settings) | environment,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        written=stdin,
        timeout=PATIENCE_SECONDS,
    )
    assert b"Traceback" not in result.stderr
    return result


@contextlib.contextmanager
def started(
    settings: Settings,
    *arguments: str,
    stdin: int = subprocess.PIPE,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command line, and make sure that it ends with the test."""
    with copies.start(
        [*COMMAND, *arguments],
        env=environment_of(settings),
        cwd=ROOT,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_terminal(ours: int) -> bytes:
    """Read all that was written to the other end of a pty, once it is closed; one read may return a part."""
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65_536)
        except OSError:  # nothing is left
            return shown


def wait_until(condition: Callable[[], bool]) -> None:
    """Return when it holds; fail when it does not come to hold."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < give_up_at, "waited in vain"
        time.sleep(0.05)
