"""What a worker says of itself: alive while nothing is stuck, ready while its timers may fire.

`/livez` is for whoever restarts: 503 means that the process ends by itself within seconds. `/readyz` is for whoever
rolls out or alerts: 503 also while a broker is away, a take-over runs or a gate is closed, which no restart mends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from evictstream.streams.engine.core.waits import WaitKind

if TYPE_CHECKING:
    from evictstream.streams.service.snapshot import Snapshot
    from evictstream.streams.service.watchdog import Watchdog

OK = 200
UNAVAILABLE = 503
OLDEST_SNAPSHOT_SECONDS = 5.0  # one is taken each second; if the loop has not come round, nothing fires either


class Report(msgspec.Struct, frozen=True):
    """An answer: its HTTP status, and its JSON body."""

    status: int
    body: dict[str, object]


class Health:
    """Answers from any thread."""

    def __init__(self, watchdog: Watchdog, snapshot: Callable[[], Snapshot]) -> None:
        """``snapshot`` gives the newest one."""
        self._watchdog = watchdog
        self._snapshot = snapshot

    def live(self, now: float) -> Report:
        """Say whether anything is stuck, and all ages, at `now` of the monotonic clock."""
        stuck = self._watchdog.look(now)
        body: dict[str, object] = {"status": "ok" if stuck is None else "stuck"}
        if stuck is not None:
            body |= {
                "stuck": str(stuck.wait),
                "ageSeconds": round(stuck.age_seconds, 3),
                "limitSeconds": stuck.limit_seconds,
            }
        body["agesSeconds"] = {str(wait): round(age, 3) for wait, age in self._watchdog.ages(now).items()}
        return Report(OK if stuck is None else UNAVAILABLE, body)

    def ready(self, now: float) -> Report:
        """Say whether the timers of all partitions may fire at `now`, and if not, which may not and why."""
        snapshot = self._snapshot()
        reasons: list[dict[str, object]] = []
        loop_age = self._watchdog.ages(now)[WaitKind.LOOP]
        if loop_age > OLDEST_SNAPSHOT_SECONDS:
            reasons.append({"reason": f"the event loop has not come round for {loop_age:.1f} s"})
        if self._watchdog.is_stopping:
            reasons.append({"reason": "the worker stops"})
        if not snapshot.is_settled:
            reasons.append({"reason": "the group assigns, or what it has assigned is not taken over yet"})
        reasons += [
            {"partition": view.partition, "gate": str(view.closed.gate), "reason": view.closed.reason}
            for view in snapshot.partitions
            if view.closed is not None
        ]
        body: dict[str, object] = {
            "status": "not ready" if reasons else "ready",
            "partitions": [view.partition for view in snapshot.partitions],
            "reasons": reasons,
        }
        return Report(UNAVAILABLE if reasons else OK, body)
