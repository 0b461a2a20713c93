"""What was recorded of nodes and pods, as the oracle reads it, and what of it may have been known at an instant.

No line of the service is used (`oracle/histories.py`).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from evictstream.kit.oracle.decision import MayStay, MustLeave, expected_decision
from evictstream.kit.oracle.epochs import Epochs
from evictstream.kit.oracle.histories import HeardNode, HeardPod, node_history, pod_histories
from evictstream.kit.oracle.judging import by_node, read_all
from evictstream.kit.oracle.limits import OracleLimits
from evictstream.kit.oracle.reading import Statement
from evictstream.kit.oracle.records import InputRecord, InputTopic
from evictstream.models.messages.decision import DecisionRecord

Place = tuple[InputTopic, int, int]


class Moment(NamedTuple):
    """One node and pod as they may have been when something was decided."""

    node: HeardNode
    pod: HeardPod
    is_built_in_on: bool = False

    @property
    def due(self) -> MustLeave | MayStay:
        return expected_decision(self.node, self.pod, is_built_in_on=self.is_built_in_on)


class Inputs:
    """What was recorded, as the oracle reads it."""

    def __init__(
        self, records: Sequence[InputRecord], limits: OracleLimits, partitions: int, *, lag_us: int = 0
    ) -> None:
        """`lag_us` is how long before a decision the records may have come that it rests on: a replay reads all."""
        self.limits = limits
        self.lag_us = lag_us
        said, _ = read_all(records, limits, partitions)
        self.at: dict[Place, Statement] = {
            (one.record.topic, one.record.partition, one.record.offset): one for one in said
        }
        counting = Epochs(said).counting
        self.beats: dict[str, dict[str, list[int]]] = defaultdict(lambda: {"nodes": [], "pods": []})
        for one in counting:
            if one.kind == "HEARTBEAT":
                self.beats[one.cluster][one.record.topic].append(one.record.append_at_us)
        self._nodes: dict[tuple[str, str], list[HeardNode]] = {}
        self._pods: dict[tuple[str, str], dict[str, list[HeardPod]]] = {}
        for key, of_node in by_node(counting, ()).items():
            self._nodes[key] = node_history(of_node.nodes, limits, of_node.ready)
            self._pods[key] = {uid: one.states for uid, one in pod_histories(of_node.name, of_node.pods).pods.items()}

    def moments(self, it: DecisionRecord, came_us: int) -> Iterator[Moment]:
        """Give what may have been known of the pod and its node."""
        key = it.cluster, it.node
        nodes, pods = self._nodes.get(key, [HeardNode()]), self._pods.get(key, {}).get(it.pod_uid, [HeardPod()])
        for node, pod in itertools.product(self._latest(nodes, came_us), self._latest(pods, came_us)):
            yield Moment(node, pod, self.limits.is_built_in_on(it.cluster))

    def _latest(self, states: Sequence[Any], came_us: int) -> Iterator[Any]:
        """Give the states that may have been known: of one millisecond all, as one was taken in after the other."""
        before = [one for one in states if one.append_at_us < came_us - self.lag_us]
        yield from before[-1:]
        yield from (one for one in states if came_us - self.lag_us <= one.append_at_us <= came_us)

    def is_heard_at(self, it: DecisionRecord, at_us: int, heard_us: int) -> bool:
        """Tell whether a feed may have been heard last then."""
        newest = self.heard_us(it.cluster, at_us)
        if not self.lag_us:
            return heard_us == newest
        beats = self.beats[it.cluster]
        return newest is not None and heard_us <= newest and any(heard_us in found for found in beats.values())

    def heard_us(self, cluster: str, at_us: int) -> int | None:
        """Return the older of the newest heartbeats on both topics."""
        beats = self.beats.get(cluster)
        if beats is None:
            return None
        newest = [max((beat for beat in found if beat <= at_us), default=0) for found in beats.values()]
        return min(newest) if any(newest) else None
