"""What keeps the evictions of single clusters up while the worker itself is fine.

Silent feeds, brakes, and evictions without an answer.

Each is in the body of `/readyz`, where it makes no worker unready, and in the log once when it begins and once when it
is over. A worker speaks for its own partitions, so it also says that it is over when these go to another worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import structlog

from evictstream.models.instants import SECOND_US
from evictstream.models.steering.holds import is_of_policy
from evictstream.streams.partition.overdue import NONE_WAITING, Waiting
from evictstream.streams.worker.gates import Gate

if TYPE_CHECKING:
    from evictstream.streams.worker.snapshot import Snapshot

log = structlog.get_logger(__name__)

# An executor that runs answers within seconds, and reports what is queued each 10 s; after 30 s of silence the attempt
# is repeated. So by then two attempts have no answer, and several reports are missing.
UNANSWERED_LIMIT_SECONDS = 60.0


class ClusterSign(NamedTuple):
    """What is wrong with one cluster.

    Attributes:
        gate: `feed`, if that holds its evictions back; none if they were issued and are not answered.
        brake: id of the brake that holds them; none if none does.
        evictions: how many it is about; 0 while a feed is silent and nothing is due.
        reason: what was seen, and what to look at.
    """

    cluster: str
    gate: Gate | None
    evictions: int
    reason: str
    brake: str | None = None


def cluster_signs(snapshot: Snapshot) -> list[ClusterSign]:
    """Return the signs of a snapshot, by cluster."""
    silent: dict[str, Waiting] = {}
    unanswered: dict[str, Waiting] = {}
    held: dict[tuple[str, str], Waiting] = {}
    for view in snapshot.partitions:
        for cluster, since_us in view.silent_since_us.items():
            count = view.waiting.get((Gate.FEED, cluster), NONE_WAITING).count
            silent[cluster] = silent.get(cluster, NONE_WAITING).joined(Waiting(count, since_us))
        for name, part in view.held.items():
            held[name] = held.get(name, NONE_WAITING).joined(part)
        for cluster, part in view.unanswered.items():
            unanswered[cluster] = unanswered.get(cluster, NONE_WAITING).joined(part)
    signs = []
    for cluster, part in silent.items():
        reason = f"its feed has sent no heartbeat for {_seconds(part, snapshot):.0f} s; check that its feed runs"
        signs.append(ClusterSign(cluster, Gate.FEED, part.count, reason))
    for (holder, cluster), part in held.items():
        title, command = (holder, "policy get") if is_of_policy(holder) else (f"brake {holder}", "holds")
        reason = f"{title} holds them, the oldest for {_seconds(part, snapshot):.0f} s; see `evictstream {command}`"
        signs.append(ClusterSign(cluster, None, part.count, reason, brake=holder))
    for cluster, part in unanswered.items():
        age = _seconds(part, snapshot)
        if age > UNANSWERED_LIMIT_SECONDS:
            reason = f"issued, and the oldest is unanswered for {age:.0f} s; check that its executor runs"
            signs.append(ClusterSign(cluster, None, part.count, reason))
    return sorted(signs, key=lambda sign: (sign.cluster, sign.gate or "", sign.brake or ""))


def _seconds(part: Waiting, snapshot: Snapshot) -> float:
    return max(0, snapshot.at_us - part.oldest_at_us) / SECOND_US


class ClusterSigns:
    """Logs when a sign begins and when it is over.

    Attributes:
        shown: those that have begun: cluster, gate and brake, and when that was seen, microseconds UTC.
    """

    def __init__(self) -> None:
        self.shown: dict[tuple[str, Gate | None, str | None], int] = {}

    def look(self, snapshot: Snapshot) -> None:
        """Compare a snapshot with what was logged before. A silent feed counts only while it holds something due."""
        signs = {(sign.cluster, sign.gate, sign.brake): sign for sign in cluster_signs(snapshot) if sign.evictions}
        for place, sign in signs.items():
            if place not in self.shown:
                event = "firing paused" if sign.gate is not None else "evictions unanswered"
                log.warning(
                    event if sign.brake is None else "evictions held",
                    cluster=sign.cluster,
                    evictions=sign.evictions,
                    reason=sign.reason,
                    **what_holds(sign),
                )
        for place, since_us in self.shown.items():
            if place not in signs:
                _log_end(*place, seconds=round((snapshot.at_us - since_us) / SECOND_US))
        self.shown = {place: self.shown.get(place, snapshot.at_us) for place in signs}


def _log_end(cluster: str, gate: Gate | None, brake: str | None, *, seconds: int) -> None:
    if brake is not None:
        log.info("evictions released", cluster=cluster, brake=brake, held_seconds=seconds)
    elif gate is not None:
        log.info("firing resumed", cluster=cluster, gate=str(gate), paused_seconds=seconds)
    else:
        log.info("evictions answered again", cluster=cluster, unanswered_seconds=seconds)


def what_holds(sign: ClusterSign) -> dict[str, str]:
    """Name the gate or the brake of a sign, if there is one."""
    named = {"gate": sign.gate, "brake": sign.brake}
    return {what: str(name) for what, name in named.items() if name is not None}
