"""Questions about open evictions: how many there are, which are late, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from evictstream.models.eviction import EvictionState, NodeAggregate
from evictstream.streams.engine.core.timers import Wakeup

_DONE = EvictionState.DONE


class Overdue(NamedTuple):
    """An eviction that is owed its next step.

    Attributes:
        cluster: of the pod.
        since_us: its deadline, or when its next attempt was owed; microseconds UTC.
        waits_for_feed: whether the silent feed of its cluster is the reason, and not a gate of the whole partition.
    """

    cluster: str
    since_us: int
    waits_for_feed: bool


def overdue(
    aggregates: Mapping[bytes, NodeAggregate], wakeups: Iterable[Wakeup], now_us: int, *, waits_for_feed: bool
) -> Iterator[Overdue]:
    """Give the evictions that these wake-ups are about and that are late, each once; outdated wake-ups give none."""
    seen: set[tuple[bytes, str]] = set()
    for _, key, uid in wakeups:
        aggregate = aggregates.get(key)
        pod = aggregate.pods.get(uid) if aggregate is not None else None
        if aggregate is None or pod is None or pod.eviction is None or (key, uid) in seen:
            continue
        owed_us = pod.eviction.wakeup_us
        if owed_us is not None and owed_us <= now_us:
            seen.add((key, uid))
            yield Overdue(aggregate.cluster, owed_us, waits_for_feed)


def count_open(aggregate: NodeAggregate) -> int:
    """Count the evictions of a node that have not come to their end."""
    return sum(pod.eviction is not None and pod.eviction.state is not _DONE for pod in aggregate.pods.values())


def deadline_us(aggregate: NodeAggregate, uid: str, now_us: int) -> int:
    """Give the deadline of a pod's eviction; now for a pod without one."""
    pod = aggregate.pods.get(uid)
    return now_us if pod is None or pod.eviction is None else pod.eviction.due.deadline_us
