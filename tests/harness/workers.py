"""Real worker processes, to be killed, frozen and stopped as an operator or a fault would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from evictstream.streams.settings import Settings
from tests.harness import copies

READY_SECONDS = 40.0
STOP_SECONDS = 30.0
POLL_SECONDS = 0.05

WORKER = ("evictstream.streams.cli.main", "worker")


def environment(settings: Settings) -> dict[str, str]:
    """Spell what was set as environment variables of a process."""
    values = {name: getattr(settings, name) for name in settings.model_fields_set}
    ours = {f"EVICTSTREAM_{name.upper()}": str(value) for name, value in values.items() if value is not None}
    return {**os.environ, **ours, "EVICTSTREAM_LOG_FORMAT": "json"}


class WorkerProcess:
    """One `evictstream worker`, with its log in a file. Use as a context manager: it never outlives the test."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        name: str = "worker",
        program: tuple[str, ...] = WORKER,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """`more` is added to the process's environment."""
        self.settings = settings
        self._more = more or {}
        self.program = program
        self.log_file = folder / f"{name}-{time.monotonic_ns()}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start without waiting."""
        with self.log_file.open("wb") as log:
            self._process = copies.start(
                [sys.executable, "-m", *self.program],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environment(self.settings), **self._more},
            )
        return self

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The running process."""
        assert self._process is not None
        return self._process

    def log(self) -> list[dict[str, object]]:
        """Give what it logged, one object for each line that is JSON."""
        return [json.loads(line) for line in self.log_file.read_text().splitlines() if line.startswith("{")]

    def events(self, event: str) -> list[dict[str, object]]:
        """Give the log entries with one event name."""
        return [entry for entry in self.log() if entry.get("message") == event]

    def wait_ready(self, takeovers: int = 1) -> Self:
        """Wait until it has taken partitions over that many times."""
        self.wait_for(lambda: len(self.events("partitions taken over")) >= takeovers, "a takeover")
        return self

    def wait_for(self, condition: object, what: str, seconds: float = READY_SECONDS) -> None:
        """Wait for something of this process; fails with its log when it ends or time runs out."""
        assert callable(condition)
        until = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None or time.monotonic() > until:
                message = f"no {what} (exit code {self.process.poll()}):\n{self.log_file.read_text()[-4000:]}"
                raise AssertionError(message)
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """SIGKILL: no last word."""
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """SIGSTOP: as a stalled machine does."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        self.process.terminate()
        return self.wait_exit()

    def wait_exit(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for the end; returns the exit code."""
        return self.process.wait(seconds)
