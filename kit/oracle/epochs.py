"""Which records of feeds count: none of an ended epoch, no signals of a foreign cluster (docs/messages.md#epochs).

A partition of the service follows the signals that it has read. Within a topic their order is that of the log. The
other topic is read independently, so an epoch may have ended before some of its records are read there. Whether those
count is open, and `other_readings` gives each possibility.

Limit: in an epoch both topics of a cluster name the same UID first.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from evictstream.kit.oracle.reading import Statement

_Place: TypeAlias = tuple[str, str]
"""Cluster and topic."""

EpochReading: TypeAlias = tuple[list[Statement], list[Statement]]
"""The records about one node that count: of the nodes topic, and of the pods topic, as in `OfNode`."""

_SIGNALS = ("HEARTBEAT", "LISTED")
_CHANGES = ("Node", "Pod")
MOST_READINGS = 500  # of one node in one run; later ones are tried only if no earlier one explains the run


class Epochs:
    """The epochs of all clusters in one run.

    Attributes:
        counting: the statements that count by the signals of their own topic.
    """

    def __init__(self, statements: Iterable[Statement]) -> None:
        """Read everything, each topic's records by offset."""
        self._begun: dict[_Place, list[int]] = defaultdict(list)
        self._uids: dict[_Place, str] = {}
        self.counting = [statement for statement in statements if self._counts(statement)]

    def _counts(self, statement: Statement) -> bool:
        if statement.kind not in _SIGNALS and statement.kind not in _CHANGES:
            return True
        place = (statement.cluster, statement.record.topic)
        newest = max(self._begun[place], default=0)
        if statement.epoch < newest or statement.kind in _CHANGES:
            return statement.epoch >= newest
        if statement.epoch > newest:
            self._begun[place].append(statement.epoch)
            self._uids[place] = statement.cluster_uid
        uid = self._uids.get(place, "")
        if uid and statement.cluster_uid not in ("", uid):
            return False
        self._uids[place] = uid or statement.cluster_uid
        return True

    def other_readings(
        self, cluster: str, nodes: Sequence[Statement], pods: Sequence[Statement]
    ) -> Iterator[EpochReading]:
        """Give the alternatives in which the other topic had already ended an epoch."""
        by_nodes, by_pods = (self._begun.get((cluster, topic), []) for topic in ("nodes", "pods"))
        epochs = sorted({*by_nodes, *by_pods})
        starts = [
            [
                *((epoch, nodes, statement) for statement in nodes if epoch in by_pods and statement.epoch < epoch),
                *((epoch, pods, statement) for statement in pods if epoch in by_nodes and statement.epoch < epoch),
            ]
            for epoch in epochs
        ]
        # First the readings with one epoch: with several, the combinations multiply.
        groups = (group for size in range(1, len(starts) + 1) for group in itertools.combinations(starts, size))
        choices = itertools.islice(
            itertools.chain.from_iterable(itertools.product(*group) for group in groups), MOST_READINGS
        )
        for choice in choices:
            counting = {id(nodes): list(nodes), id(pods): list(pods)}
            for epoch, topic, first in choice:
                counting[id(topic)] = [
                    statement
                    for statement in counting[id(topic)]
                    if statement.epoch >= epoch or statement.record.offset < first.record.offset
                ]
            yield counting[id(nodes)], counting[id(pods)]
