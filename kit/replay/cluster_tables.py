"""What a service knows of clusters, at the end of a recording or now: its own tables, and facts that people ask for.

Records go through the service's own logic without its timers, so that windows, listings, epochs and versions count as
they do there. Labels, owners and scheduling constraints are read separately: the service does not use them.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from evictstream.kit.recordings.record import INPUT_ROLES, RecordedRecord, Role
from evictstream.kit.replay.asked_pod import AskedPod, Match
from evictstream.kit.replay.pod_observer import ObservedPod
from evictstream.kit.replay.recorded_steering import RecordedSteering
from evictstream.kit.replay.standing_holds import StandingHold, standing_hold
from evictstream.kit.replay.story import Teller
from evictstream.kit.replay.why_nothing import why_nothing
from evictstream.kit.what_if.facts import NodeFacts, PodFacts, read_node_facts, read_pod_facts
from evictstream.kit.what_if.preview import PreviewCluster, PreviewNode
from evictstream.models.eviction.cluster import EpochBegun
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.resource_versions import is_older
from evictstream.models.messages.unreadable import Unreadable
from evictstream.models.steering.incidents import standing_incidents
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.worker.service_config import partition_config
from evictstream.streams.worker.stored_rows import ENGINE_KEYS

if TYPE_CHECKING:
    from evictstream.models.eviction import NodeAggregate
    from evictstream.models.kubernetes.resource_versions import Version
    from evictstream.models.steering.holds import Holder
    from evictstream.streams.settings import Settings

RUN_RECORDS: Final = 1_000
"""Records that are taken at once; what they would make the service say is dropped then."""


class ClusterTables:
    """All partitions of a service.

    Attributes:
        at_us: latest time of a record so far, microseconds since 1970; 0 before the first.
        unreadable: records that the service would refuse.
        epochs: that clusters have begun so far.
        steering: brakes and policies that were recorded so far.
    """

    def __init__(self, settings: Settings, *, partitions: int) -> None:
        """Know nothing yet. `settings` gives rules and limits, `partitions` is the count of the recorded topics."""
        own = settings.model_copy(update={"topic_prefix": "", "partitions": partitions})
        config = partition_config(own, settings.max_record_bytes)
        self.epochs: list[EpochBegun] = []
        self._config = dataclasses.replace(config, on_epoch=self.epochs.append)
        self._topics: dict[Role, str] = {
            "nodes": self._config.nodes_topic,
            "pods": self._config.pods_topic,
            "results": self._config.results_topic,
        }
        self._partitions: dict[int, EvictionPartition] = {}
        self._facts: dict[tuple[str, str], tuple[Version, NodeFacts | PodFacts]] = {}
        self.steering = RecordedSteering()
        self.at_us = 0
        self.unreadable = 0

    def load(self, partition: int, key: bytes, value: bytes | None) -> None:
        """Take one row of a partition over, as a worker does. Raises `RowError`."""
        if key not in ENGINE_KEYS:
            self._partition(partition).load(key, value)

    def loaded(self) -> None:
        """Say that all rows of all partitions are there."""
        for logic in self._partitions.values():
            logic.loaded()

    def take(self, records: Iterable[RecordedRecord]) -> None:
        """Apply records, each partition's in their order; outputs are passed over."""
        inputs = self._inputs(records)
        while taken := list(itertools.islice(inputs, RUN_RECORDS)):
            for (partition, topic), run in itertools.groupby(taken, lambda one: (one.partition, one.topic)):
                self._apply(partition, self._topics[topic], list(run))
            self.take_facts(taken)

    def _inputs(self, records: Iterable[RecordedRecord]) -> Iterator[RecordedRecord]:
        for record in records:
            if record.topic in INPUT_ROLES:
                yield record
            elif self.steering.wants(record):
                self.steering.take(record)

    def take_facts(self, records: Iterable[RecordedRecord]) -> None:
        """Read of records only what the tables of the service do not hold."""
        for record in records:
            self.at_us = max(self.at_us, record.appended_us)
            if record.value is None or record.topic not in ("nodes", "pods"):
                continue
            try:
                read = (read_node_facts if record.topic == "nodes" else read_pod_facts)(record.value)
            except Unreadable:
                continue  # counted where the service's logic has taken it
            name = record.cluster, read.uid
            kept = self._facts.get(name)
            if kept is not None and is_older(read.version, kept[0]):
                continue
            if read.facts is not None:
                self._facts[name] = read.version, read.facts
            elif read.uid:
                self._facts.pop(name, None)

    @property
    def clusters(self) -> list[str]:
        """Those of which a node is known."""
        return sorted({node.cluster for node in self._aggregates() if node.node is not None})

    def cluster(self, name: str) -> PreviewCluster:
        """Return what is known of a cluster; empty if nothing is."""
        nodes, pods = dict[str, PreviewNode](), dict[str, PodFacts]()
        for node in self._aggregates():
            if node.cluster != name or node.node is None:
                continue
            nodes[node.name] = PreviewNode(node, self._node_facts(node))
            for uid in node.pods:
                facts = self._facts.get((name, uid))
                if facts is not None and isinstance(facts[1], PodFacts):
                    pods[uid] = facts[1]
        return PreviewCluster(nodes=nodes, pods=pods)

    def observed_pods(self, asked: AskedPod, at_us: int) -> Iterator[ObservedPod]:
        """Give the pods that match, each with how it stands with it now, which is `at_us`."""
        for node in self._aggregates():
            for pod in node.pods.values():
                namespace, _, name = pod.address.partition("/")
                match = asked.match(namespace, name, pod.uid)
                if match is not Match.NONE:
                    observed = ObservedPod(
                        cluster=node.cluster, namespace=namespace, name=name, uid=pod.uid, match=match, node=node.name
                    )
                    why = why_nothing(node, pod.uid, self._config.rules.of(node.cluster))
                    observed.note(instant_text(at_us), Teller.RECORDED, why)
                    yield observed

    def holds(
        self, holders: Mapping[str, Sequence[Holder]], uids: Collection[str], at_us: int
    ) -> Iterator[StandingHold]:
        """Give what holds the evictions of some pods at an instant; `holders` are brakes and policies by cluster.

        Incidents are those of the rows.
        """
        guarded = dict(holders)
        for logic in self._partitions.values():
            for cluster, incident in logic.firing.guarding.standing():
                if cluster in guarded:
                    guarded[cluster] = (*guarded[cluster], *standing_incidents([incident], guarded[cluster]))
        for node in self._aggregates():
            rules = self._config.rules.of(node.cluster)
            for uid in uids if node.cluster in guarded else ():
                pod = node.pods.get(uid)
                hold = None if pod is None else standing_hold(node, pod, guarded[node.cluster], at_us, rules=rules)
                if hold is not None:
                    yield hold

    def addresses(self, cluster: str | None = None) -> Iterator[str]:
        """Give NAMESPACE/NAME of each pod that is known, or of those of one cluster."""
        nodes = (node for node in self._aggregates() if cluster in (None, node.cluster))
        return (pod.address for node in nodes for pod in node.pods.values())

    def _node_facts(self, aggregate: NodeAggregate) -> NodeFacts:
        """Return the facts of a node that exists; without a record of it, its `NoExecute` taints alone are known."""
        node = aggregate.node
        assert node is not None  # noqa: S101 - the caller has looked
        facts = self._facts.get((aggregate.cluster, node.uid))
        if facts is not None and isinstance(facts[1], NodeFacts):
            return facts[1]
        return NodeFacts(taints=tuple(state.taint for state in node.taints))

    def _aggregates(self) -> Iterable[NodeAggregate]:
        return itertools.chain.from_iterable(logic.known_nodes() for logic in self._partitions.values())

    def _partition(self, number: int) -> EvictionPartition:
        if number not in self._partitions:
            self._partitions[number] = EvictionPartition(number, self._config)
        return self._partitions[number]

    def _apply(self, partition: int, topic: str, records: list[RecordedRecord]) -> None:
        outbox = Outbox()
        collections.deque(self._partition(partition).apply(topic, records, outbox), maxlen=0)
        self.unreadable += len(outbox.take().messages.get(self._config.dead_letters_topic, ()))


def until(records: Iterable[RecordedRecord], at_us: int | None) -> Iterator[RecordedRecord]:
    """Give the records up to an instant, None for all; later ones are passed over."""
    for record in records:
        if at_us is None or record.appended_us <= at_us:
            yield record
