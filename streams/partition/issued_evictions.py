"""Evictions that were issued and have not ended, by cluster, and those that no executor has answered since.

Kept as steps decide, so nothing is searched for a scrape. What is known of one eviction is in its row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from evictstream.models.eviction.transitions import OUTSTANDING
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.partition.overdue import Waiting

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from evictstream.models.eviction import NodeAggregate
    from evictstream.models.eviction.executor_queue import ExecutorQueue

_OBSERVED = Outcome.OBSERVED

_Place = tuple[bytes, str]
"""A node, and the UID of a pod on it."""

_Value = TypeVar("_Value")


class IssuedEvictions:
    """The issued evictions of one partition."""

    __slots__ = ("_observed", "_owed_us", "_unanswered_since_us")

    def __init__(self) -> None:
        # All by cluster, in the order in which they were issued, which is that of their deadlines but for edits.
        # When the pod had to leave:
        self._owed_us: dict[str, dict[_Place, int]] = {}
        # Since when it is unanswered, and when the newest attempt was issued:
        self._unanswered_since_us: dict[str, dict[_Place, tuple[int, int]]] = {}
        # Those whose newest attempt was observed, and no more:
        self._observed: dict[str, dict[_Place, bool]] = {}

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
        owed_us, unanswered, is_observed = None, None, False
        if eviction is not None and eviction.state in OUTSTANDING:
            owed_us, since_us = eviction.owed_us, eviction.unanswered_since_us
            unanswered = (since_us, eviction.issued_at_us or since_us) if since_us is not None else None
            is_observed = eviction.outcome is _OBSERVED
        place = aggregate.timer_key, uid
        _put(self._owed_us, aggregate.cluster, place, owed_us)
        _put(self._unanswered_since_us, aggregate.cluster, place, unanswered)
        _put(self._observed, aggregate.cluster, place, is_observed or None)

    def observed_of(self, cluster: str) -> Iterable[_Place]:
        """Give those of a cluster that were observed, and no more."""
        return self._observed.get(cluster, ())

    def oldest_owed_us(self, unreported: Collection[str]) -> dict[str, int]:
        """Return since when the oldest issued eviction is due, in each cluster that has some.

        In a cluster of `unreported` no executor has ever acted: what was observed there does not count.
        """
        oldest = {}
        for cluster, owed in self._owed_us.items():
            observed = self._observed.get(cluster, {}) if cluster in unreported else {}
            owed_us = next((owed_us for place, owed_us in owed.items() if place not in observed), None)
            if owed_us is not None:
                oldest[cluster] = owed_us
        return oldest

    def unanswered(self, queues: Mapping[str, ExecutorQueue], unreported: Collection[str]) -> dict[str, Waiting]:
        """Return how many are unanswered in each cluster that has some, and since when the oldest.

        Of a cluster in `queues`, what executors have reported, those that wait there do not count. In a cluster of
        `unreported` no executor has ever acted: what was observed there has its answer. Only in these two it looks at
        all of them.
        """
        waiting = {}
        for cluster, since in self._unanswered_since_us.items():
            queue, count, oldest = queues.get(cluster), len(since), next(iter(since.values()), None)
            observed = self._observed.get(cluster, {}) if cluster in unreported else {}
            if queue is not None or observed:
                left = [
                    times
                    for place, times in since.items()
                    if place not in observed and (queue is None or not queue.holds(times[1]))
                ]
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
