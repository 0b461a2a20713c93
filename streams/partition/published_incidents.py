"""What a partition publishes of its incidents, on the topic `incidents` (docs/messages.md#incidents).

When an incident begins or is answered, the worker publishes a record at once; while its numbers change, every ten
seconds. It counts the numbers from the rows, in slices. The pods of all owners of a cluster are counted at most once in
a turn, for all incidents. The end of an incident is a tombstone, which a new owner of the partition writes too: the
cluster's row says which records stand.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evictstream.models.eviction import EvictionState
from evictstream.models.eviction.pod_owners import owner_of
from evictstream.models.instants import SECOND_US, instant_text, microseconds
from evictstream.models.messages.codec import encode
from evictstream.models.messages.incident import (
    INCIDENT_KIND,
    MOST_NODES_LISTED,
    MOST_OWNERS_LISTED,
    Incident,
    IncidentState,
    LosingOwner,
)
from evictstream.models.messages.policy import PolicySpec
from evictstream.models.messages.policy_clauses import GuardMeasure, PolicySelection
from evictstream.models.messages.vocabulary import API_VERSION
from evictstream.models.steering.holds import Subject
from evictstream.models.steering.owner_counts import OwnerCount

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping

    from evictstream.models.eviction import NodeAggregate
    from evictstream.models.eviction.cluster import Cluster
    from evictstream.models.eviction.levels import ClusterLevels
    from evictstream.models.eviction.state import PodState
    from evictstream.models.kubernetes.traits import Owner
    from evictstream.models.steering.incidents import StandingIncident
    from evictstream.streams.engine.core.outbox import Headers, Outbox
    from evictstream.streams.partition.clusters import Clusters
    from evictstream.streams.partition.config import PartitionConfig
    from evictstream.streams.partition.guarding import Guarding

RECOUNT_US: Final = 10 * SECOND_US
"""The time between two records of an incident if only its numbers have changed."""

_QUIET_US: Final = 60 * SECOND_US  # after this time an unchanged incident is published again
_PODS_IN_SLICE: Final = 4_000  # each some 0.5 µs
_PODS_LIKE_A_LOOK: Final = 6  # comparing an eviction with a policy costs as much

# No code may change this list: see `streams.partition.messages`.
INCIDENT_HEADERS: Final[Headers] = [
    ("type", b"io.evictstream.incident.v1"),
    ("content-type", b"application/json"),
]

_SCHEDULED = EvictionState.SCHEDULED  # see `evictstream.models.eviction` for these constants
_DONE = EvictionState.DONE


class _Said(NamedTuple):
    """The last record of an incident.

    Attributes:
        at_us: when it was published.
        mark: the state, answer and revision in it; a change of them is published at once.
        changes: the cluster's number of changes then.
        selected: how many evictions of its policy had not ended.
        empty_us: when a record last had none; 0 if none was seen.
    """

    at_us: int
    mark: tuple[object, ...]
    changes: int
    selected: int
    empty_us: int


class _Counts(NamedTuple):
    """Evictions of an incident, those of its policy among them, and the owners of their pods."""

    evictions: int
    selected: int
    due: int
    leaving: Counter[Owner]


class _BoundPods:
    """How many pods the owners of a cluster have, for one turn.

    The first incident that asks has them counted, in slices. Where the worker publishes owners, it has the number.
    """

    __slots__ = ("_cluster", "_counted")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._counted: Counter[Owner] | None = None

    def of(self, owners: Collection[Owner]) -> Generator[None, None, Counter[Owner]]:
        """Return those of some owners that have pods, each with its number; pods that have gone do not count."""
        workloads = self._cluster.workloads
        if workloads is None and self._counted is None and owners:
            self._counted = yield from self._count()
        counted = self._counted or Counter()
        pods = counted.__getitem__ if workloads is None else workloads.bound
        return +Counter({owner: pods(owner) for owner in owners})

    def _count(self) -> Generator[None, None, Counter[Owner]]:
        bound: Counter[Owner] = Counter()
        seen = 0
        for aggregate in list(self._cluster.nodes.values()):
            for pod in aggregate.pods.values():
                owner = owner_of(pod)
                if owner is not None:
                    bound[owner] += 1
            seen += len(aggregate.pods)
            if seen >= _PODS_IN_SLICE:
                seen = 0
                yield
        return bound


class PublishedIncidents:
    """Publishes the incidents of one partition."""

    __slots__ = ("_clusters", "_config", "_guarding", "_levels", "_next_sequence", "_said")

    def __init__(
        self,
        config: PartitionConfig,
        clusters: Clusters,
        levels: Mapping[str, ClusterLevels],
        *,
        guarding: Guarding,
        next_sequence: Callable[[Cluster, int, Outbox], int],
    ) -> None:
        """`next_sequence` gives the sequence of a cluster's next record, and keeps it."""
        self._config = config
        self._clusters = clusters
        self._levels = levels
        self._guarding = guarding
        self._next_sequence = next_sequence
        self._said: dict[str, _Said] = {}

    def waiting_since_us(self, now_us: int) -> dict[tuple[str, str], int]:
        """Return by policy and cluster since when evictions of an incident wait for a person; of several the earliest.

        An incident that is approved, or has no open eviction, does not wait: the pods may be gone, and the taint stay.
        """
        found: dict[tuple[str, str], int] = {}
        for cluster in self._clusters.by_key.values():
            for standing, _ in self._guarding.of(cluster.name) if cluster.state.incidents else ():
                said = self._said.get(standing.incident.id)
                if said is None or not said.selected or standing.state(now_us) is not IncidentState.WAITING:
                    continue
                place, since_us = (standing.incident.policy, cluster.name), max(standing.waits_from_us, said.empty_us)
                found[place] = min(since_us, found.get(place, since_us))
        return found

    def turn(self, now_us: int, outbox: Outbox) -> Iterator[None]:
        """Publish incidents that have changed. Other tasks may run between two slices; the next turn does the rest."""
        for cluster in list(self._clusters.by_key.values()):
            state = cluster.state
            if not (state.incidents or state.published_incidents):
                continue
            if outbox.is_in_step:
                return
            self._take_back(cluster, outbox)
            bound = _BoundPods(cluster)
            for standing, count in list(self._guarding.of(cluster.name)):
                if not self._is_known(standing, cluster, now_us):
                    place = standing.incident.taint, standing.covered(now_us)
                    of_owners = standing.incident.of == GuardMeasure.OWNERS_LOSING_ALL
                    yield from self._publish(
                        standing,
                        cluster,
                        count.of_span(*place),
                        losing=count.losing(*place) if of_owners and isinstance(count, OwnerCount) else None,
                        bound=bound,
                        now_us=now_us,
                        outbox=outbox,
                    )
                    yield

    def _take_back(self, cluster: Cluster, outbox: Outbox) -> None:
        stand = {incident.id for incident in cluster.state.incidents}
        published = cluster.state.published_incidents
        for name in published:
            if name not in stand:
                self._said.pop(name, None)
                outbox.retract(self._config.incidents_topic, name.encode())
        left = tuple(name for name in published if name in stand)
        if left != published:
            self._clusters.published_incidents(cluster, left, outbox)

    def _is_known(self, standing: StandingIncident, cluster: Cluster, now_us: int) -> bool:
        said = self._said.get(standing.incident.id)
        if said is None or said.mark != self._mark(standing, now_us):
            return False
        age_us = now_us - said.at_us
        if not 0 <= age_us < _QUIET_US:
            return False
        return age_us < RECOUNT_US or said.changes == self._changes(cluster)

    def _mark(self, standing: StandingIncident, now_us: int) -> tuple[object, ...]:
        answer = standing.answer
        return (standing.state(now_us), None if answer is None else answer[1], standing.policy.policy.revision)

    def _changes(self, cluster: Cluster) -> int:
        levels = self._levels.get(cluster.name)
        return 0 if levels is None else levels.changes

    def _publish(
        self,
        standing: StandingIncident,
        cluster: Cluster,
        nodes: list[str],
        *,
        losing: list[Owner] | None,
        bound: _BoundPods,
        now_us: int,
        outbox: Outbox,
    ) -> Iterator[None]:
        """Publish an incident with its nodes, and with the owners that its guard counts; None for other guards."""
        incident, changes = standing.incident, self._changes(cluster)
        counts = yield from self._count(cluster, nodes, standing, now_us)
        owners = yield from bound.of(counts.leaving if losing is None else losing)
        if losing is None:
            owners = Counter({owner: pods for owner, pods in owners.items() if pods == counts.leaving[owner]})
        now = self._clusters.named(cluster.name)
        if outbox.is_in_step or incident.id not in {one.id for one in now.state.incidents}:
            return  # other tasks ran meanwhile: the incident has ended, or a step is half done
        said = self._said.get(incident.id)
        empty_us = now_us if not counts.selected else 0 if said is None else said.empty_us
        self._said[incident.id] = _Said(
            now_us, self._mark(standing, now_us), changes, selected=counts.selected, empty_us=empty_us
        )
        sequence = self._next_sequence(now, now_us, outbox)
        record = _record(standing, cluster.name, sequence, nodes=nodes, counts=counts, owners=owners, now_us=now_us)
        outbox.send(self._config.incidents_topic, incident.id.encode(), encode(record), INCIDENT_HEADERS)
        published = self._clusters.named(cluster.name).state.published_incidents
        if incident.id not in published:
            self._clusters.published_incidents(now, (*published, incident.id), outbox)

    def _count(
        self, cluster: Cluster, nodes: list[str], standing: StandingIncident, now_us: int
    ) -> Generator[None, None, _Counts]:
        taint, picks_pods = standing.incident.taint, _picks_pods(standing.policy.policy.spec)
        evictions = selected = due = seen = 0
        leaving: Counter[Owner] = Counter()
        for name in nodes:
            aggregate = cluster.nodes.get(name)
            if aggregate is None:
                continue
            for pod in aggregate.pods.values():
                eviction = pod.eviction
                if eviction is None or eviction.due.taint.key != taint:
                    continue
                owner = owner_of(pod)
                if owner is not None:
                    leaving[owner] += 1
                if eviction.state is not _DONE:
                    evictions += 1
                    if picks_pods:
                        seen += _PODS_LIKE_A_LOOK
                        selected += standing.policy.select(_subject(aggregate, pod, taint))
                    due += eviction.state is _SCHEDULED and eviction.owed_us <= now_us
            seen += len(aggregate.pods)
            if seen >= _PODS_IN_SLICE:
                seen = 0
                yield
        return _Counts(evictions, selected if picks_pods else evictions, due, leaving)


def _picks_pods(spec: PolicySpec | None) -> bool:
    """Whether a policy selects some evictions only of the nodes and taints that its guard counts."""
    selected = PolicySelection() if spec is None else spec.selected
    of_nodes = PolicySelection(
        clusters=selected.clusters,
        nodes=selected.nodes,
        taints=selected.taints,
        zones=selected.zones,
        node_labels=selected.node_labels,
    )
    return spec is None or spec.excluded is not None or selected != of_nodes


def _subject(aggregate: NodeAggregate, pod: PodState, taint: str) -> Subject:
    """Return what a selection looks at of an eviction; instants are left out, as it looks at none."""
    node = aggregate.node
    return Subject(
        pod.address.partition("/")[0],
        pod.uid,
        taint,
        0,
        node=aggregate.name,
        zone=None if node is None else node.zone,
        node_labels=None if node is None else node.labels,
        traits=pod.traits,
    )


def _named(owner: Owner) -> tuple[str, str]:
    """Return an owner as incidents name it: its namespace, and `Kind/name`."""
    namespace, kind, name = owner
    return namespace, f"{kind}/{name}"


def _measure(of: str) -> Literal["nodes", "pods", "ownersLosingAll"]:
    """Return what the guard counted; a later version, with more measures, may have found the incident."""
    if of == GuardMeasure.OWNERS_LOSING_ALL:
        return "ownersLosingAll"
    return "pods" if of == GuardMeasure.PODS else "nodes"


def _record(
    standing: StandingIncident,
    cluster: str,
    sequence: int,
    *,
    nodes: list[str],
    counts: _Counts,
    owners: Counter[Owner],
    now_us: int,
) -> Incident:
    incident, policy, found = standing.incident, standing.policy.policy, standing.answer
    answer, from_us = (None, None) if found is None else found
    largest = sorted(owners.items(), key=lambda one: (-one[1], _named(one[0])))[:MOST_OWNERS_LISTED]
    return Incident(
        api_version=API_VERSION,
        kind=INCIDENT_KIND,
        id=incident.id,
        sequence=sequence,
        at=instant_text(now_us),
        cluster=cluster,
        policy=policy.name,
        revision=policy.revision,
        taint=incident.taint,
        zone=incident.zone,
        node=incident.node,
        of=_measure(incident.of),
        state=standing.state(now_us),
        since=instant_text(incident.from_us),
        opened_at=instant_text(incident.opened_us),
        opened_with=incident.nodes,
        allowed=incident.limit,
        known=incident.known,
        nodes=len(nodes),
        first_nodes=tuple(nodes[:MOST_NODES_LISTED]),
        evictions=counts.evictions,
        selected=None if counts.selected == counts.evictions else counts.selected,
        due=counts.due,
        losing_all=len(owners),
        owners=tuple(
            LosingOwner(namespace=namespace, owner=owner, pods=pods)
            for (namespace, owner), pods in ((_named(one), count) for one, count in largest)
        ),
        answered_at=None if from_us is None else instant_text(from_us),
        answered_by=None if answer is None else answer.by,
        answered_why=None if answer is None else answer.why,
        expires_at=None
        if answer is None or answer.expires_at is None
        else instant_text(microseconds(answer.expires_at)),
        releases_at=None if standing.release_us is None else instant_text(standing.release_us),
    )
