"""Open evictions, and those that are overdue or wait."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from evictstream.models.eviction import EvictionState, NodeAggregate, Outcome
from evictstream.models.instants import LAST_INSTANT_US
from evictstream.streams.engine.core.timers import Wakeup

_DONE = EvictionState.DONE
_SCHEDULED = EvictionState.SCHEDULED
_OBSERVED = Outcome.OBSERVED


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """Evictions of one cluster that wait behind one gate: how many, and since when the oldest (microseconds UTC)."""

    count: int
    oldest_at_us: int

    def joined(self, other: Waiting) -> Waiting:
        """Return the sum of the counts, with the earlier start."""
        return Waiting(self.count + other.count, min(self.oldest_at_us, other.oldest_at_us))


NONE_WAITING = Waiting(0, LAST_INSTANT_US)


class Overdue(NamedTuple):
    """An eviction whose first or next attempt is due and has not fired.

    Attributes:
        cluster: of the pod.
        since_us: since when the pod has to leave, or when its next attempt became due; microseconds UTC.
        waits_for_feed: whether it waits for its cluster's silent feed, not behind a gate of the whole partition.
    """

    cluster: str
    since_us: int
    waits_for_feed: bool


def overdue(
    aggregates: Mapping[bytes, NodeAggregate], wakeups: Iterable[Wakeup], now_us: int, *, waits_for_feed: bool
) -> Iterator[Overdue]:
    """Yield each overdue eviction of these wake-ups once; an outdated wake-up has none."""
    seen: set[tuple[bytes, str]] = set()
    for _, key, uid in wakeups:
        aggregate = aggregates.get(key)
        pod = aggregate.pods.get(uid) if aggregate is not None else None
        if aggregate is None or pod is None or pod.eviction is None or (key, uid) in seen:
            continue
        eviction = pod.eviction
        owed_us = eviction.owed_us if eviction.state is _SCHEDULED else eviction.next_attempt_us
        if eviction.state is not _SCHEDULED and eviction.outcome is _OBSERVED:
            owed_us = None  # it waits for an executor that acts
        if owed_us is not None and owed_us <= now_us:
            seen.add((key, uid))
            yield Overdue(aggregate.cluster, owed_us, waits_for_feed)


def open_evictions(aggregate: NodeAggregate) -> list[str]:
    """Return the UIDs of the pods of a node whose evictions have not ended."""
    return [uid for uid, pod in aggregate.pods.items() if pod.eviction is not None and pod.eviction.state is not _DONE]


def owed_us(aggregate: NodeAggregate, uid: str, now_us: int) -> int:
    """Return since when a pod has to leave; `now_us` for a pod without an eviction."""
    pod = aggregate.pods.get(uid)
    return now_us if pod is None or pod.eviction is None else pod.eviction.owed_us
