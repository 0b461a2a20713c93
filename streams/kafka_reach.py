"""Whether this process reaches Kafka, and which brokers: when to try one again, and whether Kafka is away as a whole.

All clients of a process say here what they find, those of aiokafka and those of kafka-python. Kafka is away where no
broker accepts a connection, and also where connections stand and nothing that is asked is answered: the broker is
frozen, its disk hangs, or a firewall drops what is sent. One log line says that Kafka is away and another that it is
back; libraries' lines in between are suppressed, and probes name Kafka.

A worker has a client for each partition and some more, and all of them try a broker that is gone. After a failure no
client tries that address for a while, which doubles from failure to failure; then one tries while the others wait, and
its success opens the way for all. Who waits is refused at once, as by a closed port, and so asks other brokers.
"""

from __future__ import annotations

import random
import threading
import time
import weakref
from collections.abc import Callable, Hashable
from typing import NamedTuple

import structlog

from evictstream.streams.logs import AFTERMATH_SECONDS, LibraryHush

log = structlog.get_logger(__name__)

_FIRST_PAUSE_SECONDS = 0.05  # a broker that restarts its listener is missed no longer than a transaction takes
LONGEST_PAUSE_SECONDS = 1.0  # evictions go on that late after an outage of any length; an attempt costs a millisecond
JITTER = 0.2  # workers that lost a broker together come back apart

# Shorter outages are a broker's restart or a leader's change, which clients survive; or, with several brokers, the time
# between the failure of one and the success of the next.
AWAY_SECONDS = 0.5

# No broker that is well leaves everything unanswered for so long: heartbeats and fetches are asked several times in it.
# Before the first request of a client times out, after six seconds, and its library says so.
SILENT_SECONDS = 5.0

_LOOK_SECONDS = 0.25  # between looks of the thread that notices silence; nothing else happens while all wait

# After so long without a look this process itself stood still: answers may be there that it has not read yet.
STOOD_STILL_SECONDS = 1.0


class _Failing(NamedTuple):
    """An address that failed: how often in a row, when last, and when it may be tried again (monotonic)."""

    times: int
    failed_at: float
    again_at: float


class Reach:
    """What all connections of a process know together; any thread may call it. Times are monotonic seconds.

    Attributes:
        hush: keeps back what libraries log while Kafka is away.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random) -> None:
        self.hush = LibraryHush()
        self._now = now
        self._chance = chance
        self._lock = threading.Lock()
        self._failing: dict[Hashable, _Failing] = {}
        self._open: weakref.WeakSet[object] = weakref.WeakSet()
        self._away_since: float | None = None
        self._unanswered_since: float | None = None
        self._reported_since: float | None = None
        self._is_hushed = False  # before anything was said
        self._watcher: threading.Thread | None = None
        self._looked_at: float | None = None

    @property
    def is_watched(self) -> bool:
        """Whether this process serves for long and says when Kafka is away. Short commands have errors of their own."""
        return self._watcher is not None

    def watch(self) -> None:
        """Look regularly from now on, in a thread, whether Kafka still answers."""
        with self._lock:
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._look_on, name="kafka reach", daemon=True)
                self._watcher.start()

    def _look_on(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Log if Kafka has been away for long enough. In a process that is watched, call it several times a second."""
        with self._lock:
            if self._stood_still() and self._unanswered_since is not None:
                self._unanswered_since = self._now()
            self._looked_at = self._now()
            self._tell_if_away()

    def problem(self) -> str | None:
        """Say that Kafka is away, or `None`."""
        with self._lock:
            self._tell_if_away()
            if self._reported_since is None:
                return None
            seconds = self._now() - self._reported_since
            return f"Kafka unavailable: no broker has answered for {seconds:.0f} s; check the brokers"

    def asked(self) -> None:
        """Note that a broker was asked for something that it answers at once."""
        if self._unanswered_since is None:
            self._unanswered_since = self._now()

    def answered(self) -> None:
        """Note that a broker has answered, whatever."""
        self._unanswered_since = None
        if self._reported_since is not None:
            with self._lock:
                self._tell_back()

    def pause_seconds(self, address: Hashable) -> float:
        """Return for how long an address must not be tried; 0 if it may be."""
        with self._lock:
            failing = self._failing.get(address)
            self._tell_if_away()
            return 0.0 if failing is None else max(0.0, failing.again_at - self._now())

    def trying(self, address: Hashable) -> None:
        """Note that an attempt begins. Of an address that has failed, other clients wait a pause for its outcome."""
        with self._lock:
            failing = self._failing.get(address)
            if failing is not None:
                self._failing[address] = failing._replace(again_at=self._now() + self._pause_after(failing.times))

    def failed(self, address: Hashable, tried_at: float, *, is_silent: bool = True) -> None:
        """Note that an attempt, begun at that moment, has failed.

        Args:
            address: where.
            tried_at: when it began; attempts that overlap count as one.
            is_silent: no broker answered; else one did, and refused.
        """
        with self._lock:
            before = self._failing.get(address)
            if before is None or tried_at > before.failed_at:
                now, times = self._now(), 1 if before is None else before.times + 1
                self._failing[address] = _Failing(times, now, now + self._pause_after(times))
            if is_silent:
                self._missed(tried_at)

    def _pause_after(self, times: int) -> float:
        pause = min(LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** min(times - 1, 10))
        return pause * (1 + JITTER * (2 * self._chance() - 1))

    def _missed(self, tried_at: float) -> None:
        if not self._open and self._away_since is None:
            self._away_since = tried_at
            self._hush()
        self._tell_if_away()

    def opened(self, address: Hashable, connection: object) -> None:
        """Note that a connection is made: a broker has answered on it."""
        with self._lock:
            self._failing.pop(address, None)
            self._open.add(connection)
            self._unanswered_since = None
            self._tell_back()

    def closed(self, connection: object) -> None:
        """Note that a connection has ended, or was never made."""
        with self._lock:
            self._open.discard(connection)
            if not self._open:
                self._hush()

    def _hush(self) -> None:
        """Let libraries say nothing from the last connection's end on: what comes of it is one line, or none."""
        if self.is_watched and self._reported_since is None:
            self._is_hushed = True
            self.hush.begin()

    def _stood_still(self) -> bool:
        return self._looked_at is not None and self._now() - self._looked_at > STOOD_STILL_SECONDS

    def _tell_back(self) -> None:
        if self._reported_since is not None:
            log.warning(
                "Kafka available again",
                away_seconds=round(self._now() - self._reported_since, 1),
                lines_kept_back=self.hush.end(AFTERMATH_SECONDS),
            )
        elif self._is_hushed:
            self.hush.end()
        self._is_hushed = False
        self._away_since = self._reported_since = None

    def _tell_if_away(self) -> None:
        if self._reported_since is not None:
            return
        now, silent_since = self._now(), self._unanswered_since
        if self._away_since is not None and now - self._away_since >= AWAY_SECONDS:
            self._reported_since = self._away_since
        elif silent_since is not None and now - silent_since >= SILENT_SECONDS and not self._stood_still():
            self._reported_since = silent_since
        else:
            return
        brokers = sorted(str(address) for address in self._failing)  # none where connections stand
        log.warning("Kafka unavailable", **({"brokers": brokers} if brokers else {}))
        self.hush.begin()


REACH = Reach()
"""Shared by all connections of this process."""
