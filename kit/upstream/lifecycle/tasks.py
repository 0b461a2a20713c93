"""Runs pieces of the controller's work side by side under a virtual clock, as goroutines run upstream."""

import collections
import dataclasses
import heapq
from collections.abc import Callable
from typing import Final

from evictstream.kit.upstream.lifecycle.pace import ClientLimiter, RequestPace
from evictstream.kit.upstream.lifecycle.steps import (
    NOW,
    ApiRequest,
    NodesChecked,
    Pause,
    QueueUnlocked,
    Steps,
    TaskWait,
)

FIRST: Final = 0
LAST: Final = 1
"""Rank of tasks that go on after all others of the same instant: passes over the queues."""


@dataclasses.dataclass(slots=True)
class _Task:
    """Work under way.

    Attributes:
        steps: the work.
        rank: order of tasks that continue at the same instant.
        has_begun: whether `steps` has been asked for its first wait.
    """

    steps: Steps[None]
    rank: int
    has_begun: bool = False


class TaskRunner:
    """Tasks, each with the instant at which it continues; a task runs until it has to wait."""

    def __init__(self, pace: RequestPace, is_locked: Callable[[str], bool], after_each: Callable[[int], None]) -> None:
        """Start without tasks.

        Args:
            pace: the times of requests, and the number of workers for the nodes of a round.
            is_locked: whether a pass over the queue of a zone is under way.
            after_each: is called whenever a task waits or ends, with the time; it may start further tasks.
        """
        self._pace = pace
        self._limiter = ClientLimiter(pace)
        self._is_locked = is_locked
        self._after_each = after_each
        self._due: list[tuple[int, int, int, _Task]] = []  # instant, rank, order of waiting
        self._waits = 0
        self._locked_out: list[tuple[str, _Task]] = []

    @property
    def next_us(self) -> int | None:
        """When the next task continues; None if there is none."""
        return self._due[0][0] if self._due else None

    def schedule(self, steps: Steps[None], at_us: int, rank: int) -> None:
        """Add a task that begins later."""
        self._wait_until(at_us, _Task(steps, rank))

    def start(self, steps: Steps[None], now_us: int) -> None:
        """Add a task that begins now, before all others."""
        self._go_on(_Task(steps, FIRST), now_us)

    def run_next(self) -> None:
        """Let the task that is due next go on, until it waits."""
        at_us, _, _, task = heapq.heappop(self._due)
        self._go_on(task, at_us)

    def _wait_until(self, at_us: int, task: _Task) -> None:
        self._waits += 1
        heapq.heappush(self._due, (at_us, task.rank, self._waits, task))

    def _go_on(self, task: _Task, now_us: int) -> None:
        """Run a task until it has to wait for a later instant, or for other tasks, or ends."""
        ready_us: int | None = now_us
        while ready_us == now_us:
            try:
                wait = task.steps.send(now_us) if task.has_begun else next(task.steps)
            except StopIteration:
                ready_us = None
            else:
                task.has_begun = True
                ready_us = self._ready_us(wait, task, now_us)
            self._after_each(now_us)
            self._let_in(now_us)
        if ready_us is not None:
            self._wait_until(ready_us, task)

    def _ready_us(self, wait: TaskWait, task: _Task, now_us: int) -> int | None:
        """Return when a wait is over; None if other tasks end it."""
        match wait:
            case ApiRequest():
                goes_first = task.rank == LAST and self._pace.queues_go_first
                return self._limiter.reserve(now_us, goes_first=goes_first) + self._pace.answer_us
            case Pause(wait_us):
                return now_us + wait_us
            case QueueUnlocked(zone):
                if not self._is_locked(zone):
                    return now_us
                self._locked_out.append((zone, task))
                return None
            case NodesChecked():
                if not wait.checks:
                    return now_us
                self._share_out(wait, task, now_us)
                return None

    def _let_in(self, now_us: int) -> None:
        """Let tasks go on whose queue is not locked any more."""
        freed = [(zone, task) for zone, task in self._locked_out if not self._is_locked(zone)]
        for one in freed:
            self._locked_out.remove(one)
            self._wait_until(now_us, one[1])

    def _share_out(self, wait: NodesChecked, task: _Task, now_us: int) -> None:
        """Start the workers that check the nodes of a round; the last of them lets the round go on."""
        checks = collections.deque(wait.checks)
        workers = min(self._pace.node_workers, len(checks))
        at_work = workers

        def work() -> Steps[None]:
            nonlocal at_work
            while checks:
                check = checks.popleft()
                started_us = yield Pause(self._pace.node_us)
                yield from check(started_us)
            at_work -= 1
            if not at_work:
                ended_us = yield NOW
                self._wait_until(ended_us, task)

        for _ in range(workers):
            self.start(work(), now_us)
