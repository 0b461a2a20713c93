"""The state of a worker's partitions, taken on the event loop once a second for probes and metrics in other threads.

A snapshot never changes, so its readers need no lock. While the event loop is stuck, they read the last one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evictstream.models.instants import SECOND_US
from evictstream.streams.partition.overdue import NONE_WAITING, Waiting
from evictstream.streams.worker.gates import Closed, Gate

if TYPE_CHECKING:
    from evictstream.streams.engine.core.writer import PartitionWriter
    from evictstream.streams.worker.freshness import Freshness
    from evictstream.streams.worker.served_partition import ServedPartition

COUNTED_OVERDUE = 10_000  # most wake-ups counted behind one closed gate, 5 ms of the event loop


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionView:
    """The state of one partition.

    Attributes:
        partition: its number.
        caught_up: whether it has read its inputs to the end that they had at takeover.
        closed: its first closed gate, behind which due timers wait; `None` if all are open.
        view_age_seconds: time since it was last known to have applied everything in the log; may be infinite.
        lag_seconds: append time of the newest record less that of the newest applied one, by input topic; may be
            infinite.
        lag_records: offsets not applied yet, by input topic.
        pending: open evictions by cluster, 0 for known clusters without one.
        waiting: due evictions that may not fire, by gate and cluster.
        held: due evictions that a brake or policy holds, by its name and cluster.
        incidents_since_us: since when evictions of an incident wait for a person, the longest, by policy and cluster;
            microseconds UTC.
        unanswered: evictions that were issued and not answered since, by cluster.
        owed_since_us: since when the oldest eviction is due that has not ended, by cluster; microseconds UTC.
        silent_since_us: append time of the newest heartbeat of each feed that is silent for too long, by cluster.
    """

    partition: int
    caught_up: bool
    closed: Closed | None
    view_age_seconds: float
    lag_seconds: Mapping[str, float]
    lag_records: Mapping[str, int]
    pending: Mapping[str, int]
    waiting: Mapping[tuple[Gate, str], Waiting]
    unanswered: Mapping[str, Waiting] = dataclasses.field(default_factory=dict)
    owed_since_us: Mapping[str, int] = dataclasses.field(default_factory=dict)
    silent_since_us: Mapping[str, int] = dataclasses.field(default_factory=dict)
    held: Mapping[tuple[str, str], Waiting] = dataclasses.field(default_factory=dict)
    incidents_since_us: Mapping[tuple[str, str], int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot:
    """All partitions of a worker.

    Attributes:
        is_settled: whether all assigned partitions are taken over; false before the first assignment.
        partitions: the partitions that are taken over, in order.
        at_us: when it was taken, microseconds UTC.
    """

    is_settled: bool = False
    partitions: tuple[PartitionView, ...] = ()
    at_us: int = 0


def view_of(
    writer: PartitionWriter[ServedPartition], closed: Closed | None, freshness: Freshness, now_us: int
) -> PartitionView:
    """Make the view of one partition whose first closed gate is `closed`; `now_us` is wall-clock time."""
    logic, lag, number = writer.logic, freshness.lag, writer.partition
    waiting, held = _waiting(logic, closed, now_us), logic.held_back()
    age = freshness.age_seconds(number)
    return PartitionView(
        partition=number,
        caught_up=writer.caught_up,
        closed=closed,
        view_age_seconds=age,
        lag_seconds={
            topic: lag.seconds((topic, number), position, writer.appended_ms.get(topic))
            for topic, position in writer.positions.items()
        },
        lag_records={topic: lag.records((topic, number), p) for topic, p in writer.positions.items()},
        pending=logic.open_evictions(),
        waiting=waiting,
        unanswered=logic.unanswered(now_us),
        owed_since_us=_owed(logic, *waiting.items(), *held.items()),
        # A heartbeat that is there and not read yet does not make a feed silent: brokers may be away from this worker.
        silent_since_us={} if math.isinf(age) else logic.silent_since_us(now_us - int(age * SECOND_US)),
        held=held,
        incidents_since_us=logic.published.incidents_since_us(now_us),
    )


def _waiting(logic: ServedPartition, closed: Closed | None, now_us: int) -> dict[tuple[Gate, str], Waiting]:
    waiting: dict[tuple[Gate, str], Waiting] = {}
    for late in logic.overdue(now_us, COUNTED_OVERDUE):
        if late.waits_for_feed:
            gate = Gate.FEED
        elif closed is not None:
            gate = closed.gate
        else:
            break  # no gate is closed, so the rest fires in the next turn; those that wait for their feed came first
        place = (gate, late.cluster)
        waiting[place] = waiting.get(place, NONE_WAITING).joined(Waiting(1, late.since_us))
    return waiting


def _owed(logic: ServedPartition, *waiting: tuple[tuple[str, str], Waiting]) -> dict[str, int]:
    owed = logic.issued_since_us()
    for (_, cluster), part in waiting:
        owed[cluster] = min(owed.get(cluster, part.oldest_at_us), part.oldest_at_us)
    return owed
