"""Evictions that were issued and have not ended, by cluster, and those that no executor has answered since.

Kept as steps decide, so nothing is searched for a scrape. What is known of one eviction is in its row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from evictstream.models.eviction.transitions import OUTSTANDING
from evictstream.streams.partition.overdue import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evictstream.models.eviction import NodeAggregate
    from evictstream.models.eviction.executor_queue import ExecutorQueue

_Place = tuple[bytes, str]
"""A node, and the UID of a pod on it."""

_Value = TypeVar("_Value")


class IssuedEvictions:
    """The issued evictions of one partition."""

    __slots__ = ("_owed_us", "_unanswered_since_us")

    def __init__(self) -> None:
        # Both by cluster, in the order in which they were issued, which is that of their deadlines but for edits.
        # When the pod had to leave:
        self._owed_us: dict[str, dict[_Place, int]] = {}
        # Since when it is unanswered, and when the newest attempt was issued:
        self._unanswered_since_us: dict[str, dict[_Place, tuple[int, int]]] = {}

    def load(self, pairs: Iterable[tuple[NodeAggregate, str]]) -> None:
        """Take in the open evictions that were loaded, as nodes and UIDs of pods."""
        for aggregate, uid in pairs:
            self.note(aggregate, uid)
        for cluster, owed in self._owed_us.items():
            self._owed_us[cluster] = dict(sorted(owed.items(), key=lambda one: one[1]))
        for cluster, since in self._unanswered_since_us.items():
            self._unanswered_since_us[cluster] = dict(sorted(since.items(), key=lambda one: one[1]))

    def note(self, aggregate: NodeAggregate, uid: str) -> None:
        """Take in what is known of the eviction of a pod, after a step that has decided something about it."""
        pod = aggregate.pods.get(uid)
        eviction = pod.eviction if pod is not None else None
        owed_us, unanswered = None, None
        if eviction is not None and eviction.state in OUTSTANDING:
            owed_us, since_us = eviction.owed_us, eviction.unanswered_since_us
            unanswered = (since_us, eviction.issued_at_us or since_us) if since_us is not None else None
        place = aggregate.timer_key, uid
        _put(self._owed_us, aggregate.cluster, place, owed_us)
        _put(self._unanswered_since_us, aggregate.cluster, place, unanswered)

    def oldest_owed_us(self) -> dict[str, int]:
        """Return since when the oldest issued eviction is due, in each cluster that has some."""
        return {cluster: next(iter(owed.values())) for cluster, owed in self._owed_us.items()}

    def unanswered(self, queues: Mapping[str, ExecutorQueue]) -> dict[str, Waiting]:
        """Return how many are unanswered in each cluster that has some, and since when the oldest.

        Of a cluster in `queues`, what executors have reported, those that wait there do not count. That alone looks at
        all of them.
        """
        waiting = {}
        for cluster, since in self._unanswered_since_us.items():
            queue, count, oldest = queues.get(cluster), len(since), next(iter(since.values()), None)
            if queue is not None:
                left = [times for times in since.values() if not queue.holds(times[1])]
                count, oldest = len(left), left[0] if left else None
            if oldest is not None:
                waiting[cluster] = Waiting(count, oldest[0])
        return waiting


def _put(by_cluster: dict[str, dict[_Place, _Value]], cluster: str, place: _Place, value: _Value | None) -> None:
    """Put a value at its place, or, for None, take away what is there. One that changes keeps its turn."""
    if value is not None:
        by_cluster.setdefault(cluster, {})[place] = value
        return
    of_cluster = by_cluster.get(cluster, {})
    of_cluster.pop(place, None)
    if not of_cluster:
        by_cluster.pop(cluster, None)
