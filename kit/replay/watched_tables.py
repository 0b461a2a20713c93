"""What a recording tells a watcher: the service's own tables follow it, and each change of them is one that was seen.

Listings, epochs, versions, repeats and records that the service would refuse count as they do there, so that a model of
another controller never sees what the service does not.
"""

from __future__ import annotations

import collections
import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.replay.recorded_events import read_event
from evictstream.kit.upstream.taint_eviction import ControllerInput, NodeGone, NodeSeen, PodGone, PodSeen
from evictstream.models.eviction import Due, InputEffect, NodeAggregate, NothingDue, PodState, decide
from evictstream.models.eviction.state import NodeState, TaintState
from evictstream.models.kubernetes.objects import Pod
from evictstream.models.messages.events import NodeEvent, PodEvent, node_name_of
from evictstream.models.messages.signals import Forget, Listed, Signal
from evictstream.models.messages.vocabulary import EventType
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import partition_config

LATE_US: Final = 1_000_000
"""A record that was appended so much after what it says was late."""


class PodStanding(NamedTuple):
    """A pod as the service knows it at an instant, and what it would decide.

    Attributes:
        node: None if it is not known.
        pod: None if it is not known.
        due: what is due for the pod by the rules; None if it is not known.
        is_silent: the feed is silent, so that nothing of its cluster is issued.
        is_late: the record about the node or the pod was read later than it was seen.
        renewed: taints of the node whose later `timeAdded` alone shows that they were away.
    """

    node: NodeState | None
    pod: PodState | None
    due: Due | NothingDue | None
    is_silent: bool
    is_late: bool
    renewed: frozenset[str]


class ObjectSighting(NamedTuple):
    """What a record shows of an object or of a cluster.

    Attributes:
        node: its name; empty where the record is about none.
        at_us: when it was seen, microseconds since 1970.
    """

    cluster: str
    node: str
    at_us: int
    event: NodeEvent | PodEvent | Signal


@dataclasses.dataclass(slots=True)
class _SeenNode:
    """What watchers have seen of a node.

    Attributes:
        uid: its UID; None if it is not there.
        pods: its pods, by UID.
        renewed: since when taints are there that never were seen to be away.
    """

    uid: str | None = None
    pods: dict[str, Pod] = dataclasses.field(default_factory=dict)
    renewed: dict[str, int] = dataclasses.field(default_factory=dict)

    def follow_renewals(self, before: Sequence[TaintState], after: Sequence[TaintState]) -> None:
        """Take note of taints that are others now, although they were there until now."""
        since = {state.taint.key: state.since_us for state in before}
        self.renewed = {
            state.taint.key: state.since_us
            for state in after
            if since.get(state.taint.key, state.since_us) != state.since_us
            or self.renewed.get(state.taint.key) == state.since_us
        }

    def end(self, pod_uid: str, at_us: int) -> list[ControllerInput]:
        """Tell that a pod is gone, if it was known."""
        pod = self.pods.pop(pod_uid, None)
        return [] if pod is None else [PodGone(at_us, pod)]


class WatchedTables:
    """All partitions of a service, and the changes passed on from them."""

    def __init__(self, settings: Settings, *, partitions: int) -> None:
        """Know nothing yet. `settings` gives rules and limits, `partitions` is the count of the recorded topics."""
        own = settings.model_copy(update={"topic_prefix": "", "partitions": partitions})
        config = partition_config(own, settings.max_record_bytes)
        self._config = dataclasses.replace(
            config, now_us=lambda: self._now_us, clock_skew_us=None, on_epoch=lambda _: None
        )
        self._topics: dict[Role, str] = {"nodes": config.nodes_topic, "pods": config.pods_topic}
        self._partitions: dict[int, EvictionPartition] = {}
        self._seen: dict[tuple[int, str], dict[str, _SeenNode]] = {}
        self._late: set[tuple[str, str]] = set()
        self._now_us = 0

    def read(self, record: RecordedRecord) -> ObjectSighting | None:
        """Read a record; None if it is none of nodes and pods, or the service refuses it."""
        event = read_event(record, self._config.limits)
        if event is None:
            return None
        node = "" if isinstance(event, Signal) else node_name_of(event)
        at_us = event.at_us if isinstance(event, NodeEvent | PodEvent | Listed) else record.appended_us
        return ObjectSighting(record.cluster, node, at_us, event)

    def apply(self, record: RecordedRecord, sighting: ObjectSighting) -> list[ControllerInput]:
        """Apply the next record, in order of time.

        Returns:
            What watchers of its cluster see. Instants are those that the record names, and may go back.
        """
        event, topic = sighting.event, self._topics[record.topic]
        appended_us = record.appended_us
        self._now_us = max(self._now_us, appended_us)
        logic, counts = self._partition(record.partition), self._config.counters.of_input(topic)
        before, known_before = _taints(logic.known_node(sighting.cluster, sighting.node)), _news(counts)
        collections.deque(logic.apply(topic, [record], Outbox()), maxlen=0)
        if isinstance(event, Listed | Forget):
            return list(self._ended(record.partition, event))
        if isinstance(event, Signal):
            return []
        if appended_us - event.at_us > LATE_US:
            self._late.add((sighting.cluster, event.pod.uid if isinstance(event, PodEvent) else event.node.uid))
        if _news(counts) == known_before:
            return []
        nodes = self._seen.setdefault((record.partition, sighting.cluster), {})
        seen = nodes.setdefault(sighting.node, _SeenNode())
        node = logic.known_node(sighting.cluster, sighting.node)
        if isinstance(event, PodEvent):
            changes = _pod_changes(seen, event, node)
        else:
            seen.follow_renewals(before, _taints(node))
            changes = _node_changes(seen, event, node)
        _drop_empty(nodes, sighting.node)
        return changes

    def node(self, cluster: str, name: str) -> NodeState | None:
        """Return what the service knows of a node now."""
        aggregate = self._aggregate(cluster, name)
        return None if aggregate is None else aggregate.node

    def standing(self, cluster: str, node: str, pod_uid: str, at_us: int) -> PodStanding:
        """Say what the service knows of a pod now, which is an instant not before the last record."""
        aggregate = self._aggregate(cluster, node)
        state = None if aggregate is None else aggregate.node
        pod = None if aggregate is None else aggregate.pods.get(pod_uid)
        place = self._place(cluster)
        seen = self._seen.get((place, cluster), {}).get(node, _SeenNode())
        return PodStanding(
            node=state,
            pod=pod,
            due=None if pod is None else decide(state, pod, self._config.rules.of(cluster)),
            is_silent=self._partition(place).is_silent(cluster, at_us),
            is_late=(cluster, pod_uid) in self._late or (state is not None and (cluster, state.uid) in self._late),
            renewed=frozenset(seen.renewed),
        )

    def _aggregate(self, cluster: str, node: str) -> NodeAggregate | None:
        return self._partition(self._place(cluster)).known_node(cluster, node)

    def _place(self, cluster: str) -> int:
        return partition_of(cluster.encode(), self._config.partitions)

    def _ended(self, place: int, signal: Listed | Forget) -> Iterator[ControllerInput]:
        """Tell what a listing did not hold, or what an operator took out."""
        nodes = self._seen.get((place, signal.cluster), {})
        for name in [name for name in nodes if isinstance(signal, Forget) or signal.covers(name)]:
            seen = nodes[name]
            aggregate = self._partition(place).known_node(signal.cluster, name)
            for uid in [uid for uid in seen.pods if aggregate is None or uid not in aggregate.pods]:
                yield from seen.end(uid, signal.at_us)
            if seen.uid is not None and (aggregate is None or aggregate.node is None):
                seen.uid = None
                yield NodeGone(signal.at_us, name)
            _drop_empty(nodes, name)

    def _partition(self, number: int) -> EvictionPartition:
        if number not in self._partitions:
            self._partitions[number] = EvictionPartition(number, self._config)
        return self._partitions[number]


def _pod_changes(seen: _SeenNode, event: PodEvent, aggregate: NodeAggregate | None) -> list[ControllerInput]:
    if aggregate is None or event.pod.uid not in aggregate.pods:
        return seen.end(event.pod.uid, event.at_us)
    seen.pods[event.pod.uid] = event.pod
    return [PodSeen(event.at_us, event.pod)]


def _node_changes(seen: _SeenNode, event: NodeEvent, aggregate: NodeAggregate | None) -> list[ControllerInput]:
    if aggregate is None or aggregate.node is None:
        seen.uid = None
        return [NodeGone(event.at_us, event.node.name)]
    if event.type is EventType.DELETED:
        return []  # of an earlier node of this name
    seen.uid = event.node.uid
    return [NodeSeen(event.at_us, event.node)]


def _drop_empty(nodes: dict[str, _SeenNode], name: str) -> None:
    seen = nodes[name]
    if seen.uid is None and not seen.pods:
        del nodes[name]


def _taints(aggregate: NodeAggregate | None) -> tuple[TaintState, ...]:
    return () if aggregate is None or aggregate.node is None else aggregate.node.taints


def _news(counts: Counter[str]) -> int:
    """Count the records that were neither refused nor outdated, nor beyond a limit."""
    return counts[InputEffect.CHANGED] + counts[InputEffect.UNCHANGED]
