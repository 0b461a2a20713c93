"""Pods that were made to leave, by anyone, and what the cluster looked like then: the common measure of two runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from evictstream.models.kubernetes.objects import Pod
from evictstream.models.kubernetes.taints import NO_EXECUTE
from evictstream.models.kubernetes.tolerations import Tolerations
from evictstream.models.messages.decoding import decode_pod_record, read_decoded_pod, read_node_record
from evictstream.models.messages.envelope import DEFAULT_LIMITS
from evictstream.models.messages.events import NodeEvent, Origin, PodEvent
from evictstream.models.messages.signals import Signal
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.messages.vocabulary import EventType
from evictstream.streams.recordings.record import RecordedRecord
from evictstream.streams.replay.virtual_partition import MILLISECOND_US

MOST_CHANGES: Final = 256
"""Newest changes of a node's taints that are kept: some minutes of one that flaps."""

OVERFLOWING_SECONDS: Final = 2**63 // 1_000_000_000
"""From here on upstream's seconds do not fit into its nanoseconds (docs/semantics.md, row 33)."""

FINISHED: Final = frozenset({"Succeeded", "Failed"})
_NOWHERE: Final = Origin("", 0, 0)

Taints = frozenset[tuple[str, str]]


class Departure(NamedTuple):
    """One pod that was made to leave.

    Attributes:
        at_us: when it was deleted, or the first attempt was issued, microseconds since 1970.
        name: namespace and name.
    """

    at_us: int
    cluster: str
    pod_uid: str
    name: str
    node: str


class Circumstances(NamedTuple):
    """A pod and its node at an instant.

    Attributes:
        pod: None if it was never seen.
        is_edited: its tolerations are others than at first.
        is_second: another pod had its name before.
        node_is_gone: its node is deleted, or was never seen.
        taints: `NoExecute` of the node.
        lost: taints that the node had while the pod was there, and has not any more.
        gained: taints that the node has, and had not when the pod first met one.
    """

    pod: Pod | None
    is_edited: bool = False
    is_second: bool = False
    node_is_gone: bool = False
    taints: Taints = frozenset()
    lost: Taints = frozenset()
    gained: Taints = frozenset()

    @property
    def is_revalued(self) -> bool:
        """Whether a taint has another value than it had."""
        return bool({key for key, _ in self.lost} & {key for key, _ in self.taints})

    @property
    def overflows(self) -> bool:
        """Whether a toleration has more seconds than upstream can count."""
        tolerations: Tolerations = () if self.pod is None else self.pod.tolerations
        return any((one.toleration_seconds or 0) >= OVERFLOWING_SECONDS for one in tolerations)


def circumstances(
    records: Iterable[RecordedRecord], wanted: Iterable[Departure]
) -> Iterator[tuple[Departure, Circumstances]]:
    """Say for each departure how things stood right before it. Records are in order of time."""
    history = _History()
    waiting = sorted(wanted)
    place = 0
    for record in itertools.chain(records, (None,)):
        while place < len(waiting) and (record is None or waiting[place].at_us <= record.timestamp * MILLISECOND_US):
            yield waiting[place], history.of(waiting[place])
            place += 1
        if record is None or place == len(waiting):
            return
        history.take(record)


def read_event(record: RecordedRecord) -> NodeEvent | PodEvent | None:
    """Read a change of a node or of a bound pod; None for everything else."""
    at_us = record.timestamp * MILLISECOND_US
    found: NodeEvent | PodEvent | Signal
    try:
        if record.topic == "nodes":
            found = read_node_record(record.key, record.value, at_us, _NOWHERE, DEFAULT_LIMITS)
        elif record.topic == "pods":
            decoded = decode_pod_record(record.value, DEFAULT_LIMITS)
            found = read_decoded_pod(decoded, record.key, at_us, _NOWHERE, DEFAULT_LIMITS)
        else:
            return None
    except Unreadable:
        return None
    return found if isinstance(found, NodeEvent | PodEvent) else None


class _SeenPod:
    """A pod: as it is, as it was at first, and how many changes of its node were there before it."""

    __slots__ = ("first_change", "is_second", "pod", "tolerations")

    def __init__(self, pod: Pod, first_change: int, *, is_second: bool) -> None:
        self.pod = pod
        self.tolerations = pod.tolerations
        self.first_change = first_change
        self.is_second = is_second


class _SeenNode:
    """A node: whether it is there, and its taints after each change."""

    __slots__ = ("changes", "forgotten", "is_there")

    def __init__(self) -> None:
        self.is_there = False
        self.changes: list[Taints] = [frozenset()]
        self.forgotten = 0

    @property
    def count(self) -> int:
        return self.forgotten + len(self.changes)

    def change(self, taints: Taints) -> None:
        if taints != self.changes[-1]:
            self.changes.append(taints)
        if len(self.changes) > MOST_CHANGES:
            del self.changes[0]
            self.forgotten += 1


class _History:
    """What was seen of nodes and pods so far."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, str], _SeenNode] = {}
        self._pods: dict[tuple[str, str], _SeenPod] = {}
        self._holders: dict[tuple[str, str, str], str] = {}

    def take(self, record: RecordedRecord) -> None:
        event = read_event(record)
        if event is None:
            return
        cluster = (record.key or b"").decode().partition("/")[0]
        if isinstance(event, NodeEvent):
            node = self._nodes.setdefault((cluster, event.node.name), _SeenNode())
            node.is_there = event.type is not EventType.DELETED
            taints = event.node.taints if node.is_there else ()
            node.change(frozenset((one.key, one.value) for one in taints if one.effect == NO_EXECUTE))
        else:
            self._take_pod(cluster, event.pod)

    def _take_pod(self, cluster: str, pod: Pod) -> None:
        known = self._pods.get((cluster, pod.uid))
        if known is not None:
            known.pod = pod
            return
        name = cluster, pod.namespace, pod.name
        node = self._nodes.setdefault((cluster, pod.node_name), _SeenNode())
        self._pods[cluster, pod.uid] = _SeenPod(pod, node.count - 1, is_second=name in self._holders)
        self._holders[name] = pod.uid

    def of(self, departure: Departure) -> Circumstances:
        seen = self._pods.get((departure.cluster, departure.pod_uid))
        if seen is None:
            return Circumstances(None)
        node = self._nodes[departure.cluster, seen.pod.node_name]
        met = [taints for taints in node.changes[max(0, seen.first_change - node.forgotten) :] if taints]
        now = node.changes[-1]
        return Circumstances(
            pod=seen.pod,
            is_edited=seen.pod.tolerations != seen.tolerations,
            is_second=seen.is_second,
            node_is_gone=not node.is_there,
            taints=now,
            lost=frozenset().union(*met) - now,
            gained=now - (met[0] if met else frozenset()),
        )
