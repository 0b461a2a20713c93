"""The watchdog: ends a worker that waits for something longer than is ever legitimate, and says for what.

A worker that is stuck keeps its partitions as long as its member thread sends heartbeats, and nobody fires for them. So
it has to end, and its supervisor to start it again. Its peers need not wait for that: it leaves the group first, and
takes nothing over any more (`engine.core.permit`). What an outage explains is waited for: the limits lie above all
time-outs of ours, and gates, not the watchdog, are what holds firing back meanwhile.

It is a thread of its own that needs neither the event loop nor a log that somebody reads: when writing the last words
blocks as well, the process ends without them. A call that never lets go of the interpreter stops this thread too; then
faulthandler's timer, which is re-armed at each look and runs outside of the interpreter, writes the stacks and ends.

A process that was frozen as a whole (SIGSTOP, a stalled machine) is not stuck: what it waited for stood still with it.
So ages grow by the time between two looks, and by little where the second one is late. If it was frozen for longer than
faulthandler's timer, nobody can tell that from a call that never lets go, and it ends in the moment in which it wakes.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import structlog

from evictstream.streams.engine.core.permit import Permit
from evictstream.streams.engine.core.waits import WaitKind
from evictstream.streams.errors import WorkerStuckError
from evictstream.streams.logs import without_secrets

if TYPE_CHECKING:
    from evictstream.streams.settings import Settings

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.5  # much less than any sensible limit
LATE_SECONDS = 2 * LOOK_SECONDS  # ages grow by no more from look to look: a later one was held up itself
LAST_WORDS_SECONDS = 2.0  # for stacks, log and a last probe of /livez; then it ends, whatever hangs


class Stuck(NamedTuple):
    """What has been waited for too long."""

    wait: WaitKind
    age_seconds: float
    limit_seconds: float


def limits_of(settings: Settings) -> dict[WaitKind, float]:
    """Give the limit of each age, in seconds."""
    return {
        WaitKind.LOOP: settings.stall_limit_seconds,
        WaitKind.TIMERS: settings.stall_limit_seconds,
        WaitKind.CHANGELOG: settings.write_limit_seconds,
        WaitKind.COMMIT: settings.write_limit_seconds,
        WaitKind.INPUT: settings.write_limit_seconds,
        WaitKind.OWNERSHIP: settings.broker_silence_limit_seconds,
        WaitKind.FETCH: settings.broker_silence_limit_seconds,
        WaitKind.HEARTBEAT: settings.broker_silence_limit_seconds,
    }


def find_stuck(ages: Mapping[WaitKind, float], limits: Mapping[WaitKind, float]) -> Stuck | None:
    """Name the first age beyond its limit, in the order in which one explains the next."""
    for wait in WaitKind:
        if wait in ages and ages[wait] > limits[wait]:
            return Stuck(wait, ages[wait], limits[wait])
    return None


def stacks() -> str:
    """Write down where each thread stands. faulthandler could, but holds on to the interpreter while it writes."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "".join(
        f"Thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}\n"
        for ident, frame in sys._current_frames().items()  # noqa: SLF001 - documented, for this very purpose
    )


class Watchdog:
    """Looks at the ages from a thread of its own.

    Attributes:
        limits: the longest legitimate waits, seconds.
        stuck: what it has found; from then on the process ends, also if the wait ends.
        is_stopping: whether the worker stops in order.

    """

    def __init__(
        self,
        ages: Callable[[float], Mapping[WaitKind, float]],
        limits: Mapping[WaitKind, float],
        leave: Callable[..., object],
        permit: Permit | None = None,
    ) -> None:
        """``ages`` are asked for a moment of the monotonic clock; ``leave`` ends the process, with the error given.

        ``permit`` is extended at each look of the thread that finds nothing, and withdrawn when something is stuck.
        """
        self.stuck: Stuck | None = None
        self._ages = ages
        self.limits = limits
        self._leave = leave
        self._permit = permit or Permit(time.monotonic)
        self._looked_at: float | None = None
        self._watched: Mapping[WaitKind, float] = {}
        self._lock = threading.Lock()  # probes of health look as well
        self.is_stopping = False

    def ages(self, now: float) -> Mapping[WaitKind, float]:
        """Give all ages; while the worker stops, only that of the loop, since it lets go of everything else."""
        ages = self._ages(now)
        return {WaitKind.LOOP: ages[WaitKind.LOOP]} if self.is_stopping else ages

    def look(self, now: float) -> Stuck | None:
        """Judge the ages, less the time in which nobody could look; what was found once stays found."""
        with self._lock:
            if self.stuck is None:
                self._watched = self._ages_watched(now)
                self.stuck = find_stuck(self._watched, self.limits)
            if self.stuck is not None:
                self._permit.withdraw()
            return self.stuck

    def _ages_watched(self, now: float) -> Mapping[WaitKind, float]:
        ages, before, self._looked_at = self.ages(now), self._looked_at, now
        if before is None:
            return ages
        grown = min(now - before, LATE_SECONDS)
        return {wait: min(age, self._watched.get(wait, 0.0) + grown) for wait, age in ages.items()}

    def start(self) -> None:
        """Begin to watch; it goes on until the process ends."""
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def stopping(self) -> None:
        """Be told that the worker stops in order."""
        self.is_stopping = True

    def _run(self) -> None:
        while True:
            now = time.monotonic()
            # Before anything is found, so that the last words have their time. When the timer has run out in a process
            # that stood still, this waits for the end that it makes; nothing is permitted meanwhile.
            faulthandler.dump_traceback_later(self.limits[WaitKind.LOOP] + LAST_WORDS_SECONDS, exit=True)
            if (stuck := self.look(now)) is not None:
                break
            self._permit.extend(now)
            time.sleep(LOOK_SECONDS)
        self._end(stuck)

    def _end(self, stuck: Stuck) -> None:
        """Say what it was, then end: in any case, whatever the last words meet."""
        error = WorkerStuckError(wait=str(stuck.wait), age_seconds=stuck.age_seconds, limit_seconds=stuck.limit_seconds)
        in_any_case = threading.Timer(2 * LAST_WORDS_SECONDS, os._exit, (error.exit_code,))
        in_any_case.daemon = True
        in_any_case.start()
        self._permit.leave_group()
        os.write(sys.stderr.fileno(), without_secrets(stacks()).encode())
        log.critical(
            "worker is stuck", wait=error.wait, age_seconds=error.age_seconds, limit_seconds=error.limit_seconds
        )
        time.sleep(LAST_WORDS_SECONDS)
        self._leave(error)
