"""Starts real workers as processes of their own, watches them, kills one, stops the rest.

Who owns what is read from their logs, which are files in the demo's folder. Each worker is a process group of its own,
so Ctrl-C in a terminal reaches the demo and not them, and it has a watchdog that kills it, and removes the logs, when
the demo is gone, however it went.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from evictstream.models.instants import instant_us
from evictstream.streams.broker import reaper
from evictstream.streams.errors import ExitCode, FoundProblemError
from evictstream.streams.settings import Settings, environment_with

STOP_SECONDS = 20.0
"""For a worker to commit, leave the group and end after SIGTERM; a second or two are usual. Then it is killed."""

_COMMAND = [sys.executable, "-m", "evictstream.streams.cli.main", "worker"]


def environment(settings: Settings) -> dict[str, str]:
    """Return this process's environment with exactly these settings, and with logs that can be read here."""
    return environment_with(settings.model_copy(update={"log_format": "json", "log_level": "info"}))


class Worker:
    """One `evictstream worker`.

    Attributes:
        number: 1, 2, ...
        log_file: where its stderr goes.
        taken: what it has taken over: instants (microseconds since 1970) and partitions, oldest first.
    """

    def __init__(self, number: int, env: Mapping[str, str], folder: Path) -> None:
        """Start it."""
        self.number = number
        self.log_file = folder / f"worker-{number}.log"
        self.taken: list[tuple[int, tuple[int, ...]]] = []
        self.killed = False
        self._read_to = 0
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                _COMMAND, env=dict(env), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._watchdog = subprocess.Popen(  # noqa: S603 - our own program, no shell
            [sys.executable, "-I", "-S", reaper.__file__, str(self._process.pid), str(folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id; it may have ended."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def look(self) -> None:
        """Read what it has logged since the last look."""
        with self.log_file.open("rb") as log:
            log.seek(self._read_to)
            text = log.read()
        complete, newline, _ = text.rpartition(b"\n")
        self._read_to += len(complete) + len(newline)
        for line in complete.splitlines():
            self._take_line(line)

    def _take_line(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except ValueError:
            return  # a warning of Python itself, or the one line with which a command fails
        if isinstance(entry, dict) and entry.get("event") == "partitions taken over" and entry["partitions"]:
            self.taken.append((instant_us(entry["at"]), tuple(entry["partitions"])))

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would."""
        self.killed = True
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._end_watchdog()

    def terminate(self) -> None:
        """Ask it to end in order (SIGTERM)."""
        self._signal(signal.SIGTERM)

    def wait(self) -> int:
        """Wait for its end and return its exit code; kill it if that takes too long."""
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            code = self._process.wait()
        self._end_watchdog()
        return code

    def last_words(self) -> str:
        """Return the last line of its log, for an error message."""
        lines = self.log_file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:500] if lines else "(nothing)"

    def _signal(self, number: signal.Signals) -> None:
        if self.running:  # afterwards the number may belong to somebody else
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _end_watchdog(self) -> None:
        # Killed before its pipe closes, so that it cannot kill whoever has the number by then.
        self._watchdog.kill()
        self._watchdog.wait()
        if self._watchdog.stdin is not None:
            self._watchdog.stdin.close()


class Workers:
    """All workers of a run. As a context manager it leaves none behind."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        """Start nothing yet; logs go to `folder`."""
        self._env = environment(settings)
        self._folder = folder
        self.all: list[Worker] = []

    def start(self, count: int) -> None:
        """Start that many more."""
        for _ in range(count):
            self.all.append(Worker(len(self.all) + 1, self._env, self._folder))

    def owners(self) -> dict[int, Worker]:
        """Return who took each partition last."""
        taken = sorted((at_us, worker.number, numbers) for worker in self.all for at_us, numbers in worker.taken)
        return {number: self.all[worker - 1] for _, worker, numbers in taken for number in numbers}

    def look(self) -> None:
        """Read their logs.

        Raises:
            FoundProblemError: one has ended that was not killed.
        """
        for worker in self.all:
            if worker.killed:
                continue
            worker.look()
            if not worker.running:
                problem = f"worker {worker.number} ended by itself with code {worker.wait()}: {worker.last_words()}"
                raise FoundProblemError(problem, next_step=f"see {worker.log_file}")

    def stop(self) -> list[str]:
        """Stop those that run, in order; return what was wrong with it, one sentence each."""
        running = [worker for worker in self.all if worker.running]
        for worker in running:
            worker.terminate()
        problems = []
        for worker in running:
            began = time.monotonic()
            code = worker.wait()
            if code != ExitCode.DONE:
                seconds = time.monotonic() - began
                problems.append(f"worker {worker.number} ended with code {code}, {seconds:.1f} s after SIGTERM, not 0")
        return problems

    def __enter__(self) -> Self:
        """Nothing more to do."""
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what still runs."""
        for worker in self.all:
            if worker.running:
                worker.kill()


def partitions_of(worker: Worker, owners: Mapping[int, Worker]) -> set[int]:
    """Return the numbers of the partitions that a worker owns."""
    return {number for number, owner in owners.items() if owner is worker}


def listed(numbers: Iterable[int]) -> str:
    """Write partition numbers as text."""
    return " ".join(map(str, sorted(numbers)))


def now_us() -> int:
    """Wall clock, microseconds since 1970; the workers' logs and commands use the same."""
    return time.time_ns() // 1000
