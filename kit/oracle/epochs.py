"""Which records of feeds count: none of an ended epoch, no signals of a foreign cluster (docs/messages.md#epochs).

A partition of the service goes by the signals that it has read. In one topic their order is that of the log. The other
topic is read at its own pace, so an epoch may have ended before any of the records that came before its end in their
own topic: whether they count is open, and `other_readings` gives each way.

Limit: in an epoch both topics of a partition name the same UID first.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from evictstream.kit.oracle.reading import Said

Place: TypeAlias = tuple[str, int, str]
"""Cluster, partition, topic."""

Reading: TypeAlias = tuple[list[Said], list[Said]]
"""What counts about one node: of the nodes topic, and of the pods topic."""

SIGNALS = ("HEARTBEAT", "LISTED")
CHANGES = ("Node", "Pod")
MOST_READINGS = 500  # of one node in one run; only what no earlier reading explains needs more than the first


class Epochs:
    """The epochs of all clusters in one run.

    Attributes:
        counting: what counts by the signals of its own topic.
    """

    def __init__(self, said: Iterable[Said]) -> None:
        """Read everything, each topic's records by offset."""
        self.counting: list[Said] = []
        self._begun: dict[Place, list[int]] = defaultdict(list)
        self._uids: dict[Place, str] = {}
        self.counting = [one for one in said if self._counts(one)]

    def _counts(self, one: Said) -> bool:
        if one.kind not in SIGNALS and one.kind not in CHANGES:
            return True
        place = (one.cluster, one.record.partition, one.record.topic)
        newest = max(self._begun[place], default=0)
        if one.epoch < newest or one.kind in CHANGES:
            return one.epoch >= newest
        if one.epoch > newest:
            self._begun[place].append(one.epoch)
            self._uids[place] = one.cluster_uid
        known = self._uids.get(place, "")
        if known and one.cluster_uid not in ("", known):
            return False
        self._uids[place] = known or one.cluster_uid
        return True

    def other_readings(
        self, cluster: str, partition: int, nodes: Sequence[Said], pods: Sequence[Said]
    ) -> Iterator[Reading]:
        """Give what may count instead of all, because an epoch had been ended by the other topic."""
        by_nodes, by_pods = (self._begun.get((cluster, partition, topic), []) for topic in ("nodes", "pods"))
        epochs = sorted({*by_nodes, *by_pods})
        ends = [
            [
                *((epoch, nodes, one) for one in nodes if epoch in by_pods and one.epoch < epoch),
                *((epoch, pods, one) for one in pods if epoch in by_nodes and one.epoch < epoch),
            ]
            for epoch in epochs
        ]
        # First what one epoch explains: with several the ways multiply.
        some = (one for size in range(1, len(ends) + 1) for one in itertools.combinations(ends, size))
        choices = itertools.islice(
            itertools.chain.from_iterable(itertools.product(*one) for one in some), MOST_READINGS
        )
        for choice in choices:
            left = {id(nodes): list(nodes), id(pods): list(pods)}
            for epoch, of, first in choice:
                left[id(of)] = [
                    one for one in left[id(of)] if one.epoch >= epoch or one.record.offset < first.record.offset
                ]
            yield left[id(nodes)], left[id(pods)]
