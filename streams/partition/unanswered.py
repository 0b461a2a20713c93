"""Evictions that were issued and that no executor has answered since, by cluster.

Kept as steps decide, so nothing is searched for a scrape. What is known of one eviction is in its row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evictstream.streams.partition.overdue import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evictstream.models.eviction import NodeAggregate
    from evictstream.models.eviction.executor_queue import ExecutorQueue


class Unanswered:
    """The unanswered evictions of one partition."""

    __slots__ = ("_since_us",)

    def __init__(self) -> None:
        # By cluster, then by node and UID of the pod, in the order in which they were issued: since when, and when the
        # newest attempt was issued.
        self._since_us: dict[str, dict[tuple[bytes, str], tuple[int, int]]] = {}

    def load(self, pairs: Iterable[tuple[NodeAggregate, str]]) -> None:
        """Take in the open evictions that were loaded, as nodes and UIDs of pods."""
        for aggregate, uid in pairs:
            self.note(aggregate, uid)
        for cluster, since in self._since_us.items():
            self._since_us[cluster] = dict(sorted(since.items(), key=lambda one: one[1]))

    def note(self, aggregate: NodeAggregate, uid: str) -> None:
        """Take in what is known of the eviction of a pod, after a step that has decided something about it."""
        pod = aggregate.pods.get(uid)
        eviction = pod.eviction if pod is not None else None
        since_us = eviction.unanswered_since_us if eviction is not None else None
        place = aggregate.timer_key, uid
        since = self._since_us.setdefault(aggregate.cluster, {})
        if eviction is not None and since_us is not None:
            since[place] = since_us, eviction.issued_at_us or since_us
        else:
            since.pop(place, None)
        if not since:
            del self._since_us[aggregate.cluster]

    def by_cluster(self, queues: Mapping[str, ExecutorQueue]) -> dict[str, Waiting]:
        """Return how many there are in each cluster that has some, and since when the oldest.

        Of a cluster in `queues`, what executors have reported, those that wait there do not count. That alone looks at
        all of them.
        """
        waiting = {}
        for cluster, since in self._since_us.items():
            queue, count, oldest = queues.get(cluster), len(since), next(iter(since.values()), None)
            if queue is not None:
                left = [times for times in since.values() if not queue.holds(times[1])]
                count, oldest = len(left), left[0] if left else None
            if oldest is not None:
                waiting[cluster] = Waiting(count, oldest[0])
        return waiting
