"""The evictions of one cluster: a queue with a limit on its rate, and the threads that work on it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

import structlog

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.work_queue import QueuedEviction, WorkQueue
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.engine.core.histogram import Histogram
from evictstream.streams.errors import KubernetesError
from evictstream.streams.executor.eviction import CREDENTIALS_SECONDS, PodEvictor, PutOff
from evictstream.streams.executor.rate_limit import RateLimit

log = structlog.get_logger(__name__)

WORKERS: Final = 16
"""Evictions at once. With 20 ms for each of three requests that is 260 a second, and few for an API server."""

LOOK_SECONDS: Final = 0.5
"""Longest wait of an idle worker, and so how late it notices a stop."""

WAIT_SECONDS: Final = 600.0
"""Longest time that an eviction is put off, from when it was queued; then it is `Failed`, and the service sends it
again when it is still owed. Less than the service's own `accepted_limit_seconds`, 900 s."""

Respond = Callable[[QueuedEviction, CommandAnswer], None]
"""Takes the outcome of an eviction; called by workers, and must not wait."""


class ClusterExecutor:
    """What waits and runs in one cluster. All methods may be called by any thread.

    Attributes:
        name: of the cluster.
        mode: what the evictor may do.
        outcomes: answers so far.
        seconds: from the command's reading to its answer, by bucket.
        hindrance: why the whole cluster is put off; None if it is not.
    """

    def __init__(self, name: str, evictor: PodEvictor, *, rate: float, burst: int, respond: Respond) -> None:
        self.name = name
        self.mode = evictor.mode
        self.outcomes: Counter[Outcome] = Counter()
        self.seconds = Histogram((0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900))
        self.hindrance: str | None = None
        self._evictor = evictor
        self._respond = respond
        self._limit = RateLimit(rate=rate, burst=burst, now=time.monotonic())
        self._queue = WorkQueue()
        self._closed_until = 0.0  # while the API server does not answer
        self._permitted_until = 0.0
        self._changed = threading.Condition()
        self._is_stopped = False
        self._threads = [
            threading.Thread(target=self._work, name=f"{name} worker {number}", daemon=True)
            for number in range(WORKERS)
        ]

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Begin no other eviction."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def join(self, timeout_seconds: float) -> None:
        """Wait until what runs has ended."""
        end_at = time.monotonic() + timeout_seconds
        for thread in self._threads:
            thread.join(max(0.0, end_at - time.monotonic()))

    def are_workers_alive(self) -> bool:
        """Whether no worker has ended."""
        return all(thread.is_alive() for thread in self._threads)

    def __len__(self) -> int:
        """How many evictions wait or run."""
        return len(self._queue)

    def put(self, waiting: QueuedEviction) -> None:
        """Queue an eviction; what waits of an earlier attempt is to be withdrawn before."""
        with self._changed:
            self._queue.put(waiting)
            self._changed.notify()

    def withdraw(self, eviction_id: str) -> QueuedEviction | None:
        """Take out what waits of an eviction, and return it; None if none waits. One that runs is left to its end."""
        with self._changed:
            return self._queue.withdraw(eviction_id)

    def permit(self, until: float) -> None:
        """Let workers begin evictions until that monotonic second, then no more before the next permission."""
        with self._changed:
            is_late = self._permitted_until <= time.monotonic()
            self._permitted_until = until
            if is_late:
                self._changed.notify_all()

    def remove_partition(self, partition: int) -> list[QueuedEviction]:
        """Take out all that waits of a partition, since another executor does it now; returns it, and what runs."""
        with self._changed:
            return self._queue.remove_partition(partition)

    def runs(self, partition: int) -> bool:
        """Whether an eviction of a partition is being carried out."""
        with self._changed:
            return any(waiting.is_running and waiting.partition == partition for waiting in self._queue)

    def unsaid(self, before: float) -> list[QueuedEviction]:
        """List what was last said to be `Accepted` before that monotonic second."""
        with self._changed:
            return [waiting for waiting in self._queue if waiting.said_at <= before]

    def oldest_seconds(self, now: float) -> float:
        """Return how long the oldest entry has waited."""
        with self._changed:
            return max((now - waiting.queued_at for waiting in self._queue), default=0.0)

    def _work(self) -> None:
        while (waiting := self._next()) is not None:
            try:
                done: CommandAnswer | PutOff = self._evictor.evict(waiting.command, waiting.tries)
            except KubernetesError as error:  # it is not this cluster's API server, or another cluster's answers
                done = PutOff(seconds=CREDENTIALS_SECONDS, reason=str(error), is_of_cluster=True)
            except Exception as error:  # nothing may end a worker; the eviction is owed, so it comes again
                log.exception("an eviction failed", cluster=self.name, eviction=waiting.command.eviction_id)
                done = CommandAnswer(Outcome.FAILED, f"{type(error).__name__} in the executor")
            self._end(waiting, done)

    def _next(self) -> QueuedEviction | None:
        """Wait for a turn; None when stopped."""
        with self._changed:
            while not self._is_stopped:
                now = time.monotonic()
                pause = LOOK_SECONDS if now >= self._permitted_until else self._closed_until - now
                if pause <= 0:
                    pause = self._limit.wait_seconds(now)
                if pause <= 0:
                    waiting = self._queue.take(now)
                    if waiting is not None:
                        self._limit.spend()
                        return waiting
                    next_at = self._queue.next_at()
                    pause = LOOK_SECONDS if next_at is None else next_at - now
                self._changed.wait(min(max(pause, 0.001), LOOK_SECONDS))
            return None

    def _end(self, waiting: QueuedEviction, done: CommandAnswer | PutOff) -> None:
        now = time.monotonic()
        with self._changed:
            if isinstance(done, PutOff):
                self._close(done, now)
                if waiting.is_given_up:
                    self._queue.finish(waiting)
                    return
                if not waiting.is_withdrawn and now - waiting.queued_at < WAIT_SECONDS:
                    self._queue.put_off(waiting, now + done.seconds)
                    return
                done = (
                    CommandAnswer(Outcome.OBSOLETE, "a newer command has come")
                    if waiting.is_withdrawn
                    else CommandAnswer(Outcome.FAILED, done.reason)
                )
            else:
                self._open()
            self._respond(waiting, done)  # before `runs` says that nothing runs any more
            self._queue.finish(waiting)
            self.outcomes[done.outcome] += 1
            self.seconds.observe(now - waiting.queued_at)
            self._changed.notify()

    def _close(self, put_off: PutOff, now: float) -> None:
        if not put_off.is_of_cluster:
            return
        if self.hindrance is None:
            log.warning("evictions of the cluster wait", cluster=self.name, reason=put_off.reason)
        self.hindrance = put_off.reason
        self._closed_until = max(self._closed_until, now + put_off.seconds)

    def _open(self) -> None:
        if self.hindrance is not None:
            log.info("evictions of the cluster go on", cluster=self.name)
            self.hindrance = None
