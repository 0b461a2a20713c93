"""The evictions of one cluster: a queue with a limit on its rate, and the worker threads.

There are as many threads as needed, up to a limit that follows from how quickly the API server answers
(`models.execution.concurrency`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.concurrency import Concurrency
from evictstream.models.execution.work_queue import QueuedEviction, QueueState, WorkQueue
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.engine.core.histogram import Histogram
from evictstream.streams.errors import KubernetesError
from evictstream.streams.executor.cluster_brakes import ClusterBrakes
from evictstream.streams.executor.cluster_identity import IdentifiedEvictor
from evictstream.streams.executor.eviction import CREDENTIALS_SECONDS, PutOff
from evictstream.streams.executor.rate_limit import RateLimit

log = structlog.get_logger(__name__)

_IDLE_SECONDS: Final = 10.0
"""A thread ends after this time without work, except the last one."""

_LOOK_SECONDS: Final = 0.5
"""The longest wait of an idle worker, and so how late it notices a stop."""

WAIT_SECONDS: Final = 600.0
"""The longest an eviction waits after it was queued; then it is `Failed`, and the service sends it again if it is still
due. Less than the service's own `accepted_limit_seconds`, 900 s."""

OPEN_REQUEST_SECONDS: Final = 3_600.0
"""The longest an eviction with an open EvictionRequest waits for the service's next attempt. The service sends one
after 900 s while it is due; after an hour without one the `Evict` is too old (`OLDEST_SECONDS` of `ClusterLife`)."""

MOST_REFUSED: Final = 16
"""So many refusals for want of room (429), one after another, close the cluster for as long as the API server says. A
single one delays its own eviction, as in client-go: the API server has room for others. While it has none, it gets so
many requests in vain between two pauses."""

_FORGOTTEN: Final = CommandAnswer(
    Outcome.FAILED, f"its EvictionRequest is open, and no newer command has come within {OPEN_REQUEST_SECONDS:g} s"
)
_CARRIED_OUT: Final = frozenset({Outcome.SUCCEEDED, Outcome.OBSERVED})

Respond = Callable[[QueuedEviction, CommandAnswer], None]
"""Receives the outcome of an eviction. Workers call it, so it must not block."""


class ClusterExecutor:
    """The evictions of one cluster that wait or run. All methods may be called by any thread.

    Attributes:
        name: of the cluster.
        mode: what the evictor may do.
        brakes: of the cluster.
        seconds: from the command's reading to its answer, by bucket.
    """

    def __init__(
        self,
        name: str,
        evictor: IdentifiedEvictor,
        *,
        brakes: ClusterBrakes,
        rate: float,
        burst: int,
        respond: Respond,
    ) -> None:
        self.name = name
        self.mode = evictor.mode
        self.brakes = brakes
        self.seconds = Histogram((0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900))
        self._hindrance: str | None = None  # in the cluster itself
        self._evictor = evictor
        self._respond = respond
        self._limit = RateLimit(rate=rate, burst=burst, now=time.monotonic())
        self._queue = WorkQueue()
        self._closed_until = 0.0  # while the API server does not answer
        self._permitted_until = 0.0
        self._refused = 0  # in a row
        self._changed = threading.Condition()
        self._is_stopped = False
        self._concurrency = Concurrency()
        self._threads: set[threading.Thread] = set()
        self._idle = 0

    def stop(self) -> None:
        """Begin no further eviction."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def join(self, timeout_seconds: float) -> None:
        """Wait until the evictions that run have ended."""
        end_at = time.monotonic() + timeout_seconds
        for thread in tuple(self._threads):
            thread.join(max(0.0, end_at - time.monotonic()))

    def are_workers_alive(self) -> bool:
        """Whether no worker thread has crashed."""
        return all(thread.is_alive() for thread in tuple(self._threads))

    def __len__(self) -> int:
        """How many evictions wait or run."""
        return len(self._queue)

    def put(self, eviction: QueuedEviction) -> None:
        """Queue an eviction. Withdraw its earlier attempt first."""
        with self._changed:
            self._queue.put(eviction)
            self._call_worker()

    def withdraw(self, eviction_id: str) -> QueuedEviction | None:
        """Take out an eviction that waits; None if none waits. One that runs continues, and is not tried again."""
        with self._changed:
            return self._queue.withdraw(eviction_id)

    def permit(self, until: float) -> None:
        """Let workers begin evictions until that monotonic second, and none after it without another permission."""
        with self._changed:
            is_late = self._permitted_until <= time.monotonic()
            self._permitted_until = until
            if is_late:
                self._changed.notify_all()
            if self._queue.waits:  # perhaps one that was put off is due
                self._call_worker()

    def wake(self, eviction_id: str) -> None:
        """Let an eviction that was put off be tried now: its EvictionRequest has changed."""
        with self._changed:
            self._queue.wake(eviction_id, time.monotonic())
            self._call_worker()

    @property
    def is_permitted(self) -> bool:
        """Whether this executor may write in the cluster now."""
        return not self._is_stopped and time.monotonic() < self._permitted_until

    def hold(self, eviction: QueuedEviction) -> CommandAnswer | None:
        """Take out an eviction that a brake holds for long; returns its answer.

        Returns:
            None if it may be tried: it is not held, or only for a moment, or by its zone, which is not known yet. None
            too if it runs, or is not in the queue any more.
        """
        held = self.brakes.held(eviction.command, time.time_ns() // 1_000)
        if held is None or held.wait_seconds is not None:
            return None
        with self._changed:
            if eviction.state is not QueueState.QUEUED:
                return None
            self._queue.withdraw(eviction.command.eviction_id)
            self.seconds.observe(time.monotonic() - eviction.queued_at)
        return held.answer

    def remove_all(self) -> list[QueuedEviction]:
        """Remove all evictions without an answer; returns them, and those that run."""
        with self._changed:
            return self._queue.remove_all()

    @property
    def hindrance(self) -> str | None:
        """Why no eviction of the cluster can be done now; None if they can."""
        return self.brakes.objection() or self._hindrance

    @property
    def at_once(self) -> int:
        """How many evictions may run at once now."""
        return self._concurrency.limit

    @property
    def is_running(self) -> bool:
        """Whether an eviction is being carried out."""
        with self._changed:
            return self._queue.running > 0

    def unanswered(self) -> list[QueuedEviction]:
        """List the evictions that wait or run."""
        with self._changed:
            return list(self._queue)

    def expire(self, now: float) -> list[tuple[QueuedEviction, CommandAnswer]]:
        """Remove the evictions that have waited for `WAIT_SECONDS`, also if no worker is free, with their answers."""
        with self._changed:
            untried = CommandAnswer(Outcome.FAILED, self.hindrance or f"not tried within {WAIT_SECONDS:g} s")
            expired = self._queue.remove_older(now - WAIT_SECONDS, now - OPEN_REQUEST_SECONDS)
            for eviction in expired:
                self.seconds.observe(now - eviction.queued_at)
            return [(eviction, _FORGOTTEN if eviction.is_open else untried) for eviction in expired]

    def note_proof(self, problem: str | None) -> None:
        """Note what a request without effect has shown; None if it was answered. Evictions that wait or run show more.

        Args:
            problem: why no eviction could be done, for people.
        """
        with self._changed:
            if self._queue:
                return
            if problem is None:
                self._open()
            else:
                self._hinder(problem)

    def oldest_seconds(self, now: float) -> float:
        """Return how long the oldest eviction has waited, those with an open EvictionRequest aside."""
        with self._changed:
            return max((now - eviction.queued_at for eviction in self._queue if not eviction.is_open), default=0.0)

    def _call_worker(self) -> None:
        """Wake an idle thread, or start another one, unless as many run as may: each takes the next one by itself."""
        if self._queue.running >= self.at_once:
            return
        if self._idle or len(self._threads) >= self.at_once or self._is_stopped:
            self._changed.notify()
            return
        thread = threading.Thread(target=self._work, name=f"{self.name} worker", daemon=True)
        self._threads.add(thread)
        self._idle += 1  # until it has started
        thread.start()

    def _work(self) -> None:
        with self._changed:
            self._idle -= 1
        while (eviction := self._next()) is not None:
            began_at = time.monotonic()
            try:
                done: CommandAnswer | PutOff = self._evictor.evict(eviction.command, eviction.tries, eviction.seen_at)
            except KubernetesError as error:  # it is not this cluster's API server, or another cluster's answers
                done = PutOff(seconds=CREDENTIALS_SECONDS, reason=str(error), is_of_cluster=True)
            except Exception as error:  # no error may end a worker; the service sends a failed eviction again
                log.exception("eviction failed", cluster=self.name, eviction=eviction.command.eviction_id)
                done = CommandAnswer(Outcome.FAILED, f"{type(error).__name__} in the executor")
            self._end(eviction, done, began_at)

    def _next(self) -> QueuedEviction | None:
        """Wait for the next eviction; None when stopped, or idle for `_IDLE_SECONDS`."""
        with self._changed:
            idle_at = time.monotonic() + _IDLE_SECONDS
            while not self._is_stopped:
                now = time.monotonic()
                if now > idle_at and self._idle and not self._queue:
                    break
                eviction, pause = self._turn(now)
                if eviction is not None:
                    if self._queue.waits:
                        self._call_worker()
                    return eviction
                self._idle += 1
                self._changed.wait(min(max(pause, 0.001), _LOOK_SECONDS))
                self._idle -= 1
            self._threads.discard(threading.current_thread())
            return None

    def _turn(self, now: float) -> tuple[QueuedEviction | None, float]:
        """Take an eviction that may begin now; else None, and how long to wait."""
        is_shut = now >= self._permitted_until or self.brakes.objection() is not None
        pause = _LOOK_SECONDS if is_shut else self._closed_until - now
        if pause <= 0:
            pause = self._limit.wait_seconds(now)
        if pause > 0:
            return None, pause
        eviction = self._queue.take(now, self.at_once)
        if eviction is not None:
            self._limit.spend()
            return eviction, 0.0
        next_at = self._queue.next_at()
        return None, _LOOK_SECONDS if next_at is None else next_at - now

    def _end(self, eviction: QueuedEviction, done: CommandAnswer | PutOff, began_at: float) -> None:
        now = time.monotonic()
        with self._changed:
            if isinstance(done, PutOff):
                self._close(done, now)
                if done.cluster_seconds > 0:
                    self._concurrency.note_refusal(now)
                if eviction.state is QueueState.ABANDONED:
                    self._queue.finish(eviction)
                    return
                eviction.is_open |= done.is_open
                most_seconds = OPEN_REQUEST_SECONDS if eviction.is_open else WAIT_SECONDS
                if eviction.state is QueueState.RUNNING and now - eviction.queued_at < most_seconds:
                    if done.is_open:
                        self._open()
                        self._respond(eviction, CommandAnswer(Outcome.ACCEPTED, done.reason))
                    self._queue.put_off(eviction, now + done.seconds)
                    return
                done = (
                    CommandAnswer(Outcome.OBSOLETE, "a newer command has come")
                    if eviction.state is QueueState.SUPERSEDED
                    else CommandAnswer(Outcome.FAILED, done.reason)
                )
            else:
                self._open()
                if done.outcome in _CARRIED_OUT:  # the others took fewer requests
                    self._concurrency.note_answer(now - began_at, self._queue.running, now)
            self._respond(eviction, done)  # before `is_running` is false: a stop waits for the last answer
            self._queue.finish(eviction)
            self.seconds.observe(now - eviction.queued_at)

    def _close(self, put_off: PutOff, now: float) -> None:
        if put_off.is_overload:
            self._refused += 1
            if self._refused < MOST_REFUSED:
                return
        self._closed_until = max(self._closed_until, now + put_off.cluster_seconds)
        if put_off.is_of_cluster:
            self._hinder(put_off.reason)

    def _hinder(self, reason: str) -> None:
        if self._hindrance is None:
            log.warning("cluster refuses evictions", cluster=self.name, reason=reason)
        self._hindrance = reason

    def _open(self) -> None:
        self._refused = 0
        if self._hindrance is not None:
            log.info("cluster accepts evictions again", cluster=self.name)
            self._hindrance = None
