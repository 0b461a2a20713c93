"""The evictions of one cluster: a queue with a limit on its rate, and the threads that work on it.

There are as many threads as work needs, up to a limit that follows from the rate: slow calls must not hold quick ones.
"""

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
from evictstream.streams.executor.cluster_identity import IdentifiedEvictor
from evictstream.streams.executor.eviction import CREDENTIALS_SECONDS, PutOff
from evictstream.streams.executor.rate_limit import RateLimit

log = structlog.get_logger(__name__)

SECONDS_AT_ONCE: Final = 2.0
"""The rate is kept while evictions take so long: so many seconds of it run at once."""

FEWEST_AT_ONCE: Final = 16
MOST_AT_ONCE: Final = 200
"""Writes that an API server takes at once from all its clients (`--max-mutating-requests-inflight`). Where a webhook
takes 10 s this makes 10 evictions a second of two writes each."""

IDLE_SECONDS: Final = 10.0
"""After so long without work a thread ends, but for one."""

LOOK_SECONDS: Final = 0.5
"""Longest wait of an idle worker, and so how late it notices a stop."""

WAIT_SECONDS: Final = 600.0
"""Longest time that an eviction is put off, from when it was queued; then it is `Failed`, and the service sends it
again when it is still owed. Less than the service's own `accepted_limit_seconds`, 900 s."""

Respond = Callable[[QueuedEviction, CommandAnswer], None]
"""Takes the outcome of an eviction; called by workers, and must not wait."""


def most_at_once(rate: float) -> int:
    """Return how many evictions of a cluster may run at once, with this rate a second."""
    return min(max(int(rate * SECONDS_AT_ONCE), FEWEST_AT_ONCE), MOST_AT_ONCE)


class ClusterExecutor:
    """What waits and runs in one cluster. All methods may be called by any thread.

    Attributes:
        name: of the cluster.
        mode: what the evictor may do.
        outcomes: answers so far.
        seconds: from the command's reading to its answer, by bucket.
        hindrance: why the whole cluster is put off; None if it is not.
    """

    def __init__(self, name: str, evictor: IdentifiedEvictor, *, rate: float, burst: int, respond: Respond) -> None:
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
        self._most = most_at_once(rate)
        self._threads: set[threading.Thread] = set()
        self._idle = 0

    def stop(self) -> None:
        """Begin no other eviction."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def join(self, timeout_seconds: float) -> None:
        """Wait until what runs has ended."""
        end_at = time.monotonic() + timeout_seconds
        for thread in tuple(self._threads):
            thread.join(max(0.0, end_at - time.monotonic()))

    def are_workers_alive(self) -> bool:
        """Whether no worker has ended by mistake."""
        return all(thread.is_alive() for thread in tuple(self._threads))

    def __len__(self) -> int:
        """How many evictions wait or run."""
        return len(self._queue)

    def put(self, waiting: QueuedEviction) -> None:
        """Queue an eviction; what waits of an earlier attempt is to be withdrawn before."""
        with self._changed:
            self._queue.put(waiting)
            self._call_worker()

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
            if self._queue.waits:  # perhaps what was put off
                self._call_worker()

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

    def give_back(self, now: float) -> list[tuple[QueuedEviction, CommandAnswer]]:
        """Take out what has waited for `WAIT_SECONDS`, whether or not workers come to it, and return its answer."""
        with self._changed:
            reason = self.hindrance or f"it has waited for {WAIT_SECONDS:g} s"
            found = [
                (one, CommandAnswer(Outcome.FAILED, reason)) for one in self._queue.remove_older(now - WAIT_SECONDS)
            ]
            self.outcomes[Outcome.FAILED] += len(found)
            for one, _ in found:
                self.seconds.observe(now - one.queued_at)
            return found

    def oldest_seconds(self, now: float) -> float:
        """Return how long the oldest entry has waited."""
        with self._changed:
            return max((now - waiting.queued_at for waiting in self._queue), default=0.0)

    def _call_worker(self) -> None:
        """Wake a thread that has nothing to do, or begin another one."""
        if self._idle or len(self._threads) >= self._most or self._is_stopped:
            self._changed.notify()
            return
        thread = threading.Thread(target=self._work, name=f"{self.name} worker", daemon=True)
        self._threads.add(thread)
        self._idle += 1  # until it has begun
        thread.start()

    def _work(self) -> None:
        with self._changed:
            self._idle -= 1
        while (waiting := self._next()) is not None:
            try:
                done: CommandAnswer | PutOff = self._evictor.evict(waiting.command, waiting.tries, waiting.seen_at)
            except KubernetesError as error:  # it is not this cluster's API server, or another cluster's answers
                done = PutOff(seconds=CREDENTIALS_SECONDS, reason=str(error), is_of_cluster=True)
            except Exception as error:  # nothing may end a worker; the eviction is owed, so it comes again
                log.exception("an eviction failed", cluster=self.name, eviction=waiting.command.eviction_id)
                done = CommandAnswer(Outcome.FAILED, f"{type(error).__name__} in the executor")
            self._end(waiting, done)

    def _next(self) -> QueuedEviction | None:
        """Wait for a turn; None when stopped, or idle for long."""
        with self._changed:
            idle_at = time.monotonic() + IDLE_SECONDS
            while not self._is_stopped:
                now = time.monotonic()
                if now > idle_at and self._idle and not self._queue:
                    break
                waiting, pause = self._turn(now)
                if waiting is not None:
                    if self._queue.waits:
                        self._call_worker()
                    return waiting
                self._idle += 1
                self._changed.wait(min(max(pause, 0.001), LOOK_SECONDS))
                self._idle -= 1
            self._threads.discard(threading.current_thread())
            return None

    def _turn(self, now: float) -> tuple[QueuedEviction | None, float]:
        """Take what may begin now; else None, and how long to wait for it."""
        pause = LOOK_SECONDS if now >= self._permitted_until else self._closed_until - now
        if pause <= 0:
            pause = self._limit.wait_seconds(now)
        if pause > 0:
            return None, pause
        waiting = self._queue.take(now, self._most)
        if waiting is not None:
            self._limit.spend()
            return waiting, 0.0
        next_at = self._queue.next_at()
        return None, LOOK_SECONDS if next_at is None else next_at - now

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
        self._closed_until = max(self._closed_until, now + put_off.cluster_seconds)
        if not put_off.is_of_cluster:
            return
        if self.hindrance is None:
            log.warning("evictions of the cluster wait", cluster=self.name, reason=put_off.reason)
        self.hindrance = put_off.reason

    def _open(self) -> None:
        if self.hindrance is not None:
            log.info("evictions of the cluster go on", cluster=self.name)
            self.hindrance = None
