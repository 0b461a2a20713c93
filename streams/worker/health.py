"""The answers to probes: a worker is alive while nothing is stuck, and ready while its timers may fire.

`/livez` is for supervisors: 503 means that the process ends by itself within seconds. `/readyz` is for roll-outs and
alerts: it is 503 too while a broker is away, a takeover runs or a gate is closed, which a restart does not mend.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evictstream.streams.engine.core.waits import WaitKind
from evictstream.streams.health.endpoint import OK, UNAVAILABLE, Report
from evictstream.streams.kafka_reach import REACH
from evictstream.streams.worker.cluster_signs import cluster_signs, what_holds

if TYPE_CHECKING:
    from evictstream.streams.worker.snapshot import Snapshot
    from evictstream.streams.worker.watchdog import Watchdog

OLDEST_SNAPSHOT_SECONDS = 5.0  # of one a second; the event loop takes them, and while it is stuck, no timer fires


class Health:
    """Answers probes, from any thread."""

    def __init__(self, watchdog: Watchdog, snapshot: Callable[[], Snapshot]) -> None:
        self._watchdog = watchdog
        self._snapshot = snapshot

    def live(self, now: float) -> Report:
        """Report whether anything is stuck, and all ages; `now` is monotonic seconds."""
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
        """Report whether the timers of all partitions may fire, and the reason for each that may not.

        What is wrong with single clusters is said too; it leaves the worker ready, which serves the others.
        """
        snapshot = self._snapshot()
        reasons: list[dict[str, object]] = []
        loop_age = self._watchdog.ages(now)[WaitKind.LOOP]
        if loop_age > OLDEST_SNAPSHOT_SECONDS:
            reasons.append(
                {"reason": f"the event loop has been blocked for {loop_age:.1f} s; check the CPU of this machine"}
            )
        kafka = REACH.problem()
        if kafka is not None:
            reasons.append({"reason": kafka})
        if self._watchdog.is_stopping:
            reasons.append({"reason": "the worker is stopping"})
        if not snapshot.is_settled:
            reasons.append({"reason": "partitions are being assigned or taken over; wait"})
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
        signs = cluster_signs(snapshot)
        if signs:
            body["clusters"] = [
                {"cluster": sign.cluster} | what_holds(sign) | {"evictions": sign.evictions, "reason": sign.reason}
                for sign in signs
            ]
        return Report(UNAVAILABLE if reasons else OK, body)
