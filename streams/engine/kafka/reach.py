"""Which brokers this process reaches: when to try one again, and whether Kafka is away as a whole.

A worker has a client for each partition and some more, and all of them try a broker that is gone. They share what one
of them has found out: after a failure no client tries that address for a while, which doubles from failure to failure,
and the first success opens it for all. Meanwhile clients are refused at once, as by a closed port, so they ask other
brokers. One log line says that Kafka is away and another that it is back; libraries' lines in between are suppressed.
"""

from __future__ import annotations

import random
import threading
import time
import weakref
from collections.abc import Callable, Hashable
from typing import NamedTuple

import structlog

from evictstream.streams.logs import hush_libraries, let_libraries_speak

log = structlog.get_logger(__name__)

FIRST_PAUSE_SECONDS = 0.05  # a broker that restarts its listener is missed no longer than a transaction takes
LONGEST_PAUSE_SECONDS = 1.0  # evictions go on that late after an outage of any length; an attempt costs a millisecond
JITTER = 0.2  # workers that lost a broker together come back apart

# Shorter outages are a broker's restart or a leader's change, which clients survive; or, with several brokers, the time
# between the failure of one and the success of the next.
AWAY_SECONDS = 0.5


class _Failing(NamedTuple):
    """An address that failed: how often in a row, and when it may be tried again (monotonic)."""

    times: int
    again_at: float


class Reach:
    """What all connections of a process know together; any thread may call it. Times are monotonic seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random) -> None:
        self._now = now
        self._chance = chance
        self._lock = threading.Lock()
        self._failing: dict[Hashable, _Failing] = {}
        self._open: weakref.WeakSet[object] = weakref.WeakSet()
        self._away_since: float | None = None
        self._is_told = False

    def pause_seconds(self, address: Hashable) -> float:
        """Return for how long an address must not be tried; 0 if it may be."""
        with self._lock:
            failing = self._failing.get(address)
            self._tell_if_away()
            return 0.0 if failing is None else max(0.0, failing.again_at - self._now())

    def failed(self, address: Hashable, tried_at: float, *, is_silent: bool = True) -> None:
        """Note that an attempt, begun at that moment, has failed.

        Args:
            address: where.
            tried_at: when it began; attempts that overlap count as one.
            is_silent: no broker answered; else one did, and refused.
        """
        with self._lock:
            before = self._failing.get(address, _Failing(0, 0.0))
            if tried_at >= before.again_at:
                pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(before.times, 10))
                pause *= 1 + JITTER * (2 * self._chance() - 1)
                self._failing[address] = _Failing(before.times + 1, self._now() + pause)
            if is_silent and not self._open and self._away_since is None:
                self._away_since = tried_at
            self._tell_if_away()

    def opened(self, address: Hashable, connection: object) -> None:
        """Note that a connection is made."""
        with self._lock:
            self._failing.pop(address, None)
            self._open.add(connection)
            if self._is_told and self._away_since is not None:
                log.warning(
                    "kafka is back",
                    away_seconds=round(self._now() - self._away_since, 1),
                    lines_kept_back=let_libraries_speak(),
                )
            self._away_since, self._is_told = None, False

    def closed(self, connection: object) -> None:
        """Note that a connection has ended, or was never made."""
        with self._lock:
            self._open.discard(connection)

    def _tell_if_away(self) -> None:
        if self._is_told or self._away_since is None or self._now() - self._away_since < AWAY_SECONDS:
            return
        self._is_told = True
        brokers = sorted(str(address) for address in self._failing)
        log.warning("kafka is away", brokers=brokers)
        hush_libraries()


REACH = Reach()
"""Shared by all connections of this process."""
