"""Real workers as processes of their own: started, watched, one killed, the others stopped.

They are a process group, so Ctrl-C in a terminal reaches the demo and not them. A watchdog kills them, and removes
their logs, when the demo is gone, however it went.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evictstream.models.instants import instant_us
from evictstream.streams.broker import reaper
from evictstream.streams.errors import FoundProblemError
from evictstream.streams.settings import Settings, environment_with

_STOP_SECONDS: Final = 20.0
"""For a worker to commit, leave the group and end after SIGTERM; a second or two are usual. Then it is killed."""

LAST_WORDS: Final = 500
"""Characters of a worker's last line that an error quotes."""

_COMMAND = [sys.executable, "-m", "evictstream.streams.cli.main", "worker"]


def environment(settings: Settings) -> dict[str, str]:
    """Return this process's environment with exactly these settings, and with logs that can be read here."""
    return environment_with(settings.model_copy(update={"log_format": "json", "log_level": "info"}))


class DemoWorker:
    """One `evictstream worker`, whose log is a file.

    Attributes:
        number: 1, 2, ...
        pid: its process id; it may have ended.
        name: for people.
        is_killed: whether it was, by `kill`.
    """

    def __init__(self, number: int, settings: Settings, folder: Path, group: int) -> None:
        """Start it in a process group; 0 makes a new one, of its own number."""
        self.number = number
        self.is_killed = False
        self._log = folder / f"worker-{number}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, no shell
                _COMMAND,
                env=environment(settings),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=group,
            )
        self.pid = self._process.pid
        self.name = f"worker {number} (process {self.pid})"

    def taken(self) -> Iterator[tuple[int, int]]:
        """Give what it has taken over, as its log says: instants, microseconds since 1970, and partitions."""
        for line in self._log.read_bytes().rpartition(b"\n")[0].splitlines():
            if b'"partitions taken over"' in line:
                entry = json.loads(line)
                yield from ((instant_us(entry["timestamp"]), number) for number in entry["partitions"])

    def check(self) -> None:
        """Raise `FoundProblemError` if it has ended, and was not killed."""
        code = self._process.poll()
        if code is not None and not self.is_killed:
            last = self._log.read_text(errors="replace").rstrip().rpartition("\n")[2]
            if last.startswith("{"):
                last = str(json.loads(last).get("error", last))
            raise FoundProblemError(f"{self.name} ended by itself with code {code}: {last[:LAST_WORDS]}")

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would; one that has ended stays as it is."""
        self.is_killed = True
        self._process.kill()
        self._process.wait()

    def stop(self) -> str:
        """End it in order (SIGTERM), or kill it if that takes too long; return what was wrong, or an empty text."""
        self._process.terminate()
        try:
            code = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"{self.name} still ran {_STOP_SECONDS:g} s after SIGTERM"
        return f"{self.name} ended with code {code} after SIGTERM, not 0" if code and not self.is_killed else ""


@contextlib.contextmanager
def running(count: int, settings: Settings, folder: Path) -> Iterator[list[DemoWorker]]:
    """Start workers, whose logs go to a folder; none is left at the end."""
    workers = [DemoWorker(1, settings, folder, group=0)]
    group = workers[0].pid
    watch = [sys.executable, "-I", "-S", reaper.__file__, str(group), str(folder)]
    with subprocess.Popen(watch, stdin=subprocess.PIPE, start_new_session=True) as watchdog:  # noqa: S603 - our own
        try:
            workers += (DemoWorker(number, settings, folder, group) for number in range(2, count + 1))
            yield workers
        finally:
            for worker in workers:
                worker.kill()
            watchdog.kill()  # before its pipe closes, so that it kills no later process group with this number


def owners(workers: list[DemoWorker]) -> dict[int, tuple[int, DemoWorker]]:
    """Return for each partition when it was taken over last, microseconds since 1970, and by whom."""
    taken = sorted((at_us, worker.number, number) for worker in workers for at_us, number in worker.taken())
    return {number: (at_us, workers[worker - 1]) for at_us, worker, number in taken}
