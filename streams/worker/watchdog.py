"""The watchdog: ends a worker that waits for something longer than is ever legitimate, and logs what it waited for.

Where Kafka is away the log says that, and not where threads wait for it.

A stuck worker keeps its partitions as long as its member thread sends heartbeats, and no worker fires for them. So it
has to end, and its supervisor has to start it again. It leaves the group first, and takes no partition over any more
(`engine.core.permit`), so that its peers need not wait. Outages of brokers do not end a worker at once: the limits are
above all time-outs of its clients, and meanwhile the gates, not the watchdog, hold firing back.

The watchdog is a thread of its own. It needs neither the event loop nor a reader of the log: if writing stacks and log
blocks as well, the process ends without them. A call that never releases the interpreter stops this thread too. Then
faulthandler's timer, which runs outside of the interpreter and is set anew at each look, writes the stacks as text and
ends the process.

A process that was frozen as a whole (SIGSTOP, a stalled machine) is not stuck: its waits stood still with it. So an age
grows by the time between two looks, at most by `LATE_SECONDS`. A process that was frozen for longer than faulthandler's
timer ends as soon as it wakes: that looks like a call that never releases the interpreter.
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

from evictstream.streams.engine.core.permit import Permit
from evictstream.streams.engine.core.waits import WaitKind
from evictstream.streams.errors import WorkerStuckError
from evictstream.streams.kafka_reach import REACH
from evictstream.streams.logs import write_at_once

if TYPE_CHECKING:
    from evictstream.streams.settings import Settings

LOOK_SECONDS = 0.5  # much less than any sensible limit
LATE_SECONDS = 2 * LOOK_SECONDS  # most that an age grows between two looks: a later look was itself held up
LAST_WORDS_SECONDS = 2.0  # for stacks, log and a last probe of /livez; then the process ends, whatever blocks


class Stuck(NamedTuple):
    """A wait beyond its limit."""

    wait: WaitKind
    age_seconds: float
    limit_seconds: float


def wait_limits(settings: Settings) -> dict[WaitKind, float]:
    """Return the limit of each age, in seconds."""
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
    """Return the first age beyond its limit; `WaitKind` has causes before their consequences."""
    for wait in WaitKind:
        if wait in ages and ages[wait] > limits[wait]:
            return Stuck(wait, ages[wait], limits[wait])
    return None


def stacks() -> str:
    """Return the stack of each thread. faulthandler could, but holds the interpreter while it writes."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "".join(
        f"Thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}\n"
        for ident, frame in sys._current_frames().items()  # noqa: SLF001 - documented, for this very purpose
    )


class Watchdog:
    """Compares ages with their limits, in a thread of its own.

    Attributes:
        limits: the longest legitimate waits, seconds.
        stuck: the wait beyond its limit; once set, the process ends, even if the wait ends.
        is_stopping: whether the worker stops in order.
    """

    def __init__(
        self,
        ages: Callable[[float], Mapping[WaitKind, float]],
        limits: Mapping[WaitKind, float],
        leave: Callable[..., object],
        permit: Permit | None = None,
    ) -> None:
        """`ages` returns the ages at a monotonic instant (seconds); `leave` ends the process with an error.

        Each look of the thread that finds nothing stuck extends `permit`; one that does withdraws it.
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
        """Return all ages; while the worker stops, only the event loop's: everything else is being closed."""
        ages = self._ages(now)
        return {WaitKind.LOOP: ages[WaitKind.LOOP]} if self.is_stopping else ages

    def look(self, now: float) -> Stuck | None:
        """Compare the ages, less the time in which no look was possible; once `stuck` is set, it stays."""
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
        """Record that the worker stops in order."""
        self.is_stopping = True

    def _run(self) -> None:
        while True:
            now = time.monotonic()
            # Set before the look, so that the last words have their time. If the timer ran out while the process was
            # frozen, this call waits until the timer ends the process; the permit is not extended meanwhile.
            faulthandler.dump_traceback_later(self.limits[WaitKind.LOOP] + LAST_WORDS_SECONDS, exit=True)
            if (stuck := self.look(now)) is not None:
                break
            self._permit.extend(now)
            time.sleep(LOOK_SECONDS)
        self._end(stuck)

    def _end(self, stuck: Stuck) -> None:
        """Leave the group, log stacks and error, then end the process, even if writing blocks."""
        in_any_case = threading.Timer(2 * LAST_WORDS_SECONDS, os._exit, (WorkerStuckError.exit_code,))
        in_any_case.daemon = True
        in_any_case.start()
        self._permit.leave_group()
        kafka = REACH.problem()
        error = WorkerStuckError(
            wait=str(stuck.wait), age_seconds=stuck.age_seconds, limit_seconds=stuck.limit_seconds, kafka=kafka
        )
        write_at_once(
            "worker is stuck",
            wait=error.wait,
            age_seconds=round(error.age_seconds, 1),
            limit_seconds=error.limit_seconds,
            **({} if kafka is None else {"kafka": kafka}),
            stacks=stacks() if kafka is None else "",  # where it hangs is known
        )
        time.sleep(LAST_WORDS_SECONDS)
        self._leave(error)
