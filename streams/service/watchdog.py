"""The watchdog: ends a worker that waits for something longer than is ever legitimate, and says for what.

A stuck worker keeps its partitions as long as its member thread sends heartbeats, and no worker fires for them. So it
has to end, and its supervisor has to start it again. It leaves the group first, and takes nothing over any more
(`engine.core.permit`), so that its peers need not wait. Outages of brokers do not end a worker at once: the limits are
above all time-outs of its clients, and meanwhile the gates, not the watchdog, hold firing back.

The watchdog is a thread of its own. It needs neither the event loop nor a reader of the log: if writing the last words
blocks as well, the process ends without them. A call that never releases the interpreter stops this thread too. Then
faulthandler's timer, which runs outside of the interpreter and is set anew at each look, writes the stacks and ends.

A process that was frozen as a whole (SIGSTOP, a stalled machine) is not stuck: its waits stood still with it. So ages
grow by the time between two looks, and by little if the second look is late. If it was frozen for longer than
faulthandler's timer, that looks like a call that never releases the interpreter, and it ends as soon as it wakes.
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
LATE_SECONDS = 2 * LOOK_SECONDS  # ages grow by no more from look to look: a later look was itself held up
LAST_WORDS_SECONDS = 2.0  # for stacks, log and a last probe of /livez; then it ends, whatever blocks


class Stuck(NamedTuple):
    """A wait beyond its limit."""

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
    """Write down where each thread is. faulthandler could, but keeps the interpreter while it writes."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "".join(
        f"Thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}\n"
        for ident, frame in sys._current_frames().items()  # noqa: SLF001 - documented, for this very purpose
    )


class Watchdog:
    """Looks at the ages from a thread of its own.

    Attributes:
        limits: the longest legitimate waits, seconds.
        stuck: what it has found; from then on the process ends, even if the wait ends.
        is_stopping: whether the worker stops in order.
    """

    def __init__(
        self,
        ages: Callable[[float], Mapping[WaitKind, float]],
        limits: Mapping[WaitKind, float],
        leave: Callable[..., object],
        permit: Permit | None = None,
    ) -> None:
        """`ages` gives the ages at a moment of the monotonic clock; `leave` ends the process with an error.

        `permit` is extended at each look of the thread that finds nothing, and withdrawn when something is stuck.
        """
        self.stuck: Stuck | None = None
        self._ages = ages
        self.limits = limits
        self._leave = leave
        self._permit = permit or Permit(time.monotonic)
        self._looked_at: float | None = None
        self._watched: Mapping[WaitKind, float] = {}
        self._lock = threading.Lock()  # probes of health look too
        self.is_stopping = False

    def ages(self, now: float) -> Mapping[WaitKind, float]:
        """Give all ages; while the worker stops only that of the loop, since it closes everything else."""
        ages = self._ages(now)
        return {WaitKind.LOOP: ages[WaitKind.LOOP]} if self.is_stopping else ages

    def look(self, now: float) -> Stuck | None:
        """Judge the ages, less the time in which no look was possible; a finding is final."""
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
        """Watch until the process ends."""
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def stopping(self) -> None:
        """Note that the worker stops in order."""
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
        """Say what it was, then end, whatever happens to the last words."""
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
