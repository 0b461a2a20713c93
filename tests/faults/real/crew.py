"""The workers of one schedule, under a supervisor that starts another one where one has ended."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from evictstream.streams.settings import Settings
from tests.faults.real.clock import SteppedClock
from tests.harness.workers import WORKER, WorkerProcess

RESTART_SECONDS = 0.5
"""As a supervisor's first pause after an end."""

STOP_SECONDS = 35.0
READY_SECONDS = 240.0

CLEAN = (0, 1, -signal.SIGTERM)
"""Exit codes that a worker may end with: told to, for a reason that it names, or told to before it could listen."""


class NotReadyError(AssertionError):
    """Workers have not taken all partitions over in time."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a worker ended without being told to by SIGKILL.

    Attributes:
        worker: its name.
        code: exit code.
        last_line: what it said last.
    """

    worker: str
    code: int
    last_line: str


@dataclass(slots=True)
class Post:
    """One place in the crew, filled by one worker after another.

    Attributes:
        is_wanted: whether a worker that ends is followed by another one.
        was_killed: whether a fault has ended its worker with SIGKILL.
        worker: None between the end of one and the start of the next.
        free_since: `time.monotonic` at which the last one was found ended.
        logs: what each of them said.
    """

    name: str
    settings: Settings
    clock: SteppedClock | None
    is_wanted: bool = True
    was_killed: bool = False
    worker: WorkerProcess | None = None
    free_since: float | None = None
    logs: list[Path] = field(default_factory=list)


class Crew:
    """All workers of one schedule. Use as a context manager: none outlives it."""

    def __init__(self, folder: Path) -> None:
        self.endings: list[Ending] = []
        self.posts: list[Post] = []
        self.starts = 0
        self._folder = folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for post in self.posts:
            if post.worker is not None:
                post.worker.__exit__()

    def add(self, name: str, settings: Settings, clock: SteppedClock | None = None) -> Post:
        """Start one more worker; does not wait until it is ready."""
        post = Post(name, settings, clock)
        self.posts.append(post)
        self._start(post)
        return post

    def tick(self) -> None:
        """Look after all posts: note who has ended, start who is missing."""
        for post in self.posts:
            worker = post.worker
            if worker is not None and (code := worker.process.poll()) is not None:
                if not post.was_killed:
                    self.endings.append(Ending(post.name, code, _last_line(worker.log_file)))
                post.worker, post.free_since = None, time.monotonic()
            elif worker is None and post.is_wanted and time.monotonic() - (post.free_since or 0) >= RESTART_SECONDS:
                self._start(post)

    def wait_ready(self, partitions: int) -> None:
        """Wait until all partitions have been taken over; the last workers to start may be given nothing.

        Raises:
            NotReadyError: that takes too long.
        """
        until = time.monotonic() + READY_SECONDS
        while len({number for log in self.logs() for number in _taken_over(log)}) < partitions:
            if time.monotonic() > until:
                raise NotReadyError(f"not all of {partitions} partitions are taken over in {READY_SECONDS:g} s")
            time.sleep(0.1)

    def has_taken_over_again(self, partitions: int) -> bool:
        """Whether any partition was taken over a second time, whoever did it."""
        return sum(1 for log in self.logs() for _ in _taken_over(log)) > partitions

    def kill(self, post: Post) -> None:
        """SIGKILL."""
        if post.worker is not None:
            post.was_killed = True
            post.worker.kill()

    def terminate(self, post: Post) -> None:
        """SIGTERM, without waiting."""
        if post.worker is not None:
            post.worker.process.terminate()

    def stop_all(self) -> list[Ending]:
        """SIGTERM to all, and wait; returns those that did not end with 0."""
        for post in self.posts:
            post.is_wanted = False
            self.terminate(post)
        until = time.monotonic() + STOP_SECONDS
        known = len(self.endings)
        while any(post.worker is not None for post in self.posts) and time.monotonic() < until:
            self.tick()
            time.sleep(0.05)
        hanging = [post.worker for post in self.posts if post.worker is not None]
        for worker in hanging:
            worker.process.send_signal(signal.SIGABRT)  # with its last words: where each thread is
            worker.wait_exit()
        self.tick()
        return [ending for ending in self.endings[known:] if ending.code not in CLEAN]

    def logs(self) -> Sequence[Path]:
        """Files with what the workers said."""
        return [log for post in self.posts for log in post.logs]

    def _start(self, post: Post) -> None:
        program = WORKER if post.clock is None else (*post.clock.program, "worker")
        post.was_killed = False
        post.worker = WorkerProcess(
            post.settings, self._folder, post.name, program, more={"PYTHONFAULTHANDLER": "1"}
        ).start()
        post.logs.append(post.worker.log_file)
        self.starts += 1


def _taken_over(log: Path) -> Iterator[int]:
    """Partitions that a worker says it took over, each as often as it did."""
    for line in log.read_text(errors="replace").splitlines():
        if '"partitions taken over"' in line:
            yield from json.loads(line)["partitions"]


def _last_line(log: Path) -> str:
    last = log.read_text(errors="replace").strip().rpartition("\n")[2]
    return str(json.loads(last).get("error", last)) if last.startswith("{") else last
