"""What a partition publishes of its clusters (docs/messages.md#fleet); `published_incidents.py` has the incidents.

Once a second it looks at each cluster; what has changed goes into the outbox, and so into the transaction of the rows
that it speaks of. Steps only count (`models.eviction.levels`). A cluster's row has the sequence of its newest record: a
new owner goes on from there, and knows whose records it has to take back. It publishes each cluster once, as it has no
other way to know that what stands there is still right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from evictstream.models.eviction.levels import ClusterLevels, HeldCount, Levels
from evictstream.models.instants import MILLISECOND_US, SECOND_US, instant_text
from evictstream.models.messages.codec import encode
from evictstream.models.messages.fleet import (
    CLUSTER_KIND,
    LEVEL_KIND,
    MOST_HOLDERS,
    MOST_ZONES,
    EvictionCounts,
    FeedStanding,
    FleetCluster,
    FleetLevel,
    NodeCounts,
)
from evictstream.models.messages.vocabulary import API_VERSION
from evictstream.streams.partition.published_incidents import PublishedIncidents
from evictstream.streams.partition.published_workloads import PublishedWorkloads

if TYPE_CHECKING:
    from evictstream.models.eviction.cluster import Cluster
    from evictstream.models.steering.brakes import Brakes
    from evictstream.streams.engine.core.outbox import Headers, Outbox
    from evictstream.streams.partition.clusters import Clusters
    from evictstream.streams.partition.config import PartitionConfig
    from evictstream.streams.partition.firing import Firing

QUIET_US: Final = 60 * SECOND_US
"""After so long a level is published again though nothing has changed: it shows that somebody still says so."""

_LOOKS_IN_SLICE: Final = 1_000  # each 1 to 2 µs
_LOOKS_LIKE_A_COUNT: Final = 10  # finding that nothing has changed after all costs as much
_LOOKS_LIKE_A_RECORD: Final = 30  # publishing one costs as much

_JSON: Final = ("content-type", b"application/json")
# Nobody may change these lists: see `streams.partition.messages`.
LEVEL_HEADERS: Final[Headers] = [("type", b"io.evictstream.fleet-level.v1"), _JSON]
CLUSTER_HEADERS: Final[Headers] = [("type", b"io.evictstream.fleet-cluster.v1"), _JSON]

_NO_LEVELS: Final = ClusterLevels()  # of a cluster without nodes; nothing is counted there


class _Standing(NamedTuple):
    """What of a level makes a new record if it changes; of a zone only the first two."""

    nodes: NodeCounts
    evictions: EvictionCounts
    is_silent: bool = False
    has_gap: bool = False
    brakes: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    workloads: tuple[int | None, int | None] = (None, None)


class _Published(NamedTuple):
    """What was published of a cluster or zone last; `mark` is what all of it but the time was made of.

    It has the counts themselves besides how often they changed: those of a zone that was left and entered again between
    two looks begin anew, with as many changes perhaps.
    """

    at_us: int
    mark: tuple[object, ...]
    standing: _Standing

    def is_fresh(self, now_us: int) -> bool:
        """Whether it need not be said again; a clock that went back says nothing."""
        return 0 <= now_us - self.at_us < QUIET_US


class _BrakesInForce:
    """The ids of the brakes that have not ended, by cluster, for one turn."""

    def __init__(self, brakes: Brakes, now_us: int) -> None:
        self._everywhere: list[tuple[int, str]] = []
        self._by_cluster: dict[str, list[tuple[int, str]]] = {}
        for standing in sorted(brakes.in_force(now_us), key=lambda one: one.appended_us):
            named = (standing.appended_us, standing.brake.id)
            for name in standing.brake.clusters:
                self._by_cluster.setdefault(name, []).append(named)
            if not standing.brake.clusters:
                self._everywhere.append(named)

    def of(self, cluster: str) -> tuple[str, ...]:
        """Return the oldest ones of a cluster."""
        if not (self._everywhere or self._by_cluster):
            return ()
        both = self._everywhere[:MOST_HOLDERS] + self._by_cluster.get(cluster, [])[:MOST_HOLDERS]
        return tuple(name for _, name in sorted(both)[:MOST_HOLDERS])


class PublishedFleet:
    """Publishes the clusters of one partition.

    Attributes:
        levels: how clusters with nodes stand.
    """

    __slots__ = ("_clusters", "_config", "_firing", "_identities", "_incidents", "_published", "_workloads", "levels")

    def __init__(
        self, config: PartitionConfig, clusters: Clusters, levels: Mapping[str, ClusterLevels], firing: Firing
    ) -> None:
        self._config = config
        self._clusters = clusters
        self.levels = levels
        self._firing = firing
        self._published: dict[bytes, _Published] = {}
        self._identities: dict[str, tuple[object, ...]] = {}
        self._incidents = PublishedIncidents(
            config, clusters, levels, guarding=firing.guarding, next_sequence=self._next_sequence
        )
        self._workloads = PublishedWorkloads(config, firing.held, self._next_sequence)

    def turn(self, now_us: int, outbox: Outbox) -> Iterator[None]:
        """Publish what has changed since the last turn; at most one turn a second.

        Between two slices, of 2 ms, others may run. Nothing is published while a step is half done: its rows are put
        aside, and a record would speak of them. What is left out waits for the next turn.
        """
        self._firing.look_at_policies()
        brakes = _BrakesInForce(self._config.brakes(), now_us)
        cost = 0
        for cluster in list(self._clusters.by_key.values()):
            if outbox.is_in_step:
                return
            cost += self._look(cluster, now_us, brakes, outbox)
            yield from self._workloads.look(cluster, now_us, outbox)
            if cost >= _LOOKS_IN_SLICE:
                cost = 0
                yield
        yield from self._incidents.turn(now_us, outbox)

    def incidents_since_us(self, now_us: int) -> dict[tuple[str, str], int]:
        """Return since when evictions of an incident wait for a person, the longest, by policy and cluster."""
        return self._incidents.waiting_since_us(now_us)

    def _look(self, cluster: Cluster, now_us: int, brakes: _BrakesInForce, outbox: Outbox) -> int:
        """Publish what has changed of a cluster; returns what that cost."""
        cluster = self._clusters.named(cluster.name)  # while others ran, it may have been dropped
        if not (cluster.nodes or cluster.state.is_heard):
            self._take_back(cluster, outbox)
            return 1
        levels = self.levels.get(cluster.name, _NO_LEVELS)
        self._workloads.begin(cluster, now_us, outbox)
        cost = 1 + self._look_at_whole(cluster, levels, now_us, brakes.of(cluster.name), outbox)
        if levels.zones or cluster.state.published_zones:
            cost += self._look_at_zones(cluster, levels, now_us, outbox)
        state = cluster.state
        identity = (state.uid, state.epoch, state.labels, state.profile)
        if identity != self._identities.get(cluster.name):
            self._identities[cluster.name] = identity
            named = _identity_of(cluster, self._next_sequence(cluster, now_us, outbox), now_us)
            outbox.send(self._config.clusters_topic, cluster.key, encode(named), CLUSTER_HEADERS)
            cost += _LOOKS_LIKE_A_RECORD
        return cost

    def _look_at_whole(
        self, cluster: Cluster, levels: ClusterLevels, now_us: int, brakes: tuple[str, ...], outbox: Outbox
    ) -> int:
        (held, clauses), state = self._firing.held_by_clause(cluster.name), cluster.state
        is_silent = state.is_silent(now_us - self._config.feed_silence_us)
        has_gap = self._clusters.gap is not None
        incidents = self._firing.guarding.waiting(cluster.name, now_us)[:MOST_HOLDERS] if state.incidents else ()
        workloads = self._workloads.marks(cluster.name)
        key = level_key(cluster.name)
        mark = (levels, levels.changes, is_silent, has_gap, brakes, incidents, held, clauses, workloads)
        if self._is_known(key, levels, mark, now_us):
            return 0
        holders = [
            HeldCount(by, waits.count, waits.oldest_at_us, tuple(clauses.get(by, {}).items()))
            for by, waits in held.items()
        ]
        holders.sort(key=lambda one: (-one.evictions, one.by))
        standing = _Standing(
            nodes=levels.nodes(),
            evictions=levels.evictions(now_us, sum(one.evictions for one in holders), holders),
            is_silent=is_silent,
            has_gap=has_gap,
            brakes=brakes,
            incidents=incidents,
            workloads=workloads,
        )
        if not self._is_new(key, standing, mark, now_us):
            return _LOOKS_LIKE_A_COUNT
        heard_at = None if state.heard_at_us is None else instant_text(state.heard_at_us)
        self._send(
            cluster,
            "",
            standing,
            pods=len(cluster.addresses),
            now_us=now_us,
            outbox=outbox,
            feed=FeedStanding(is_silent=is_silent, heard_at=heard_at),
        )
        return _LOOKS_LIKE_A_RECORD

    def _look_at_zones(self, cluster: Cluster, levels: ClusterLevels, now_us: int, outbox: Outbox) -> int:
        held, pods, cost = self._firing.held_in_zones(cluster.name), Counter[str](), 0
        zones = tuple(sorted(levels.zones)[:MOST_ZONES])
        for zone in zones:
            of_zone, key = levels.zones[zone], level_key(cluster.name, zone)
            mark = (of_zone, of_zone.changes, held[zone])
            if self._is_known(key, of_zone, mark, now_us):
                cost += 1
                continue
            cost += _LOOKS_LIKE_A_COUNT
            standing = _Standing(of_zone.nodes(), of_zone.evictions(now_us, held[zone]))
            if self._is_new(key, standing, mark, now_us):
                if not pods:
                    for node in cluster.nodes.values():
                        pods[node.counted_in] += len(node.pods)
                self._send(cluster, zone, standing, pods=pods[zone], now_us=now_us, outbox=outbox)
                cost += _LOOKS_LIKE_A_RECORD
        before = cluster.state.published_zones
        for zone in before:
            if zone not in zones:
                self._retract(level_key(cluster.name, zone), outbox)
        if zones != before:
            self._clusters.published(cluster, cluster.state.published, zones, outbox)
        return cost

    def _is_known(self, key: bytes, levels: Levels, mark: tuple[object, ...], now_us: int) -> bool:
        """Whether nothing can have changed since the last record: nothing was counted, and no deadline has come."""
        before = self._published.get(key)
        return before is not None and before.is_fresh(now_us) and mark == before.mark and not levels.scheduled

    def _is_new(self, key: bytes, standing: _Standing, mark: tuple[object, ...], now_us: int) -> bool:
        """Whether a standing is to be published: it is another one, or it was not said for long."""
        before = self._published.get(key)
        if before is not None and before.is_fresh(now_us) and standing == before.standing:
            self._published[key] = before._replace(mark=mark)
            return False
        self._published[key] = _Published(now_us, mark, standing)
        return True

    def _send(
        self,
        cluster: Cluster,
        zone: str,
        standing: _Standing,
        *,
        pods: int,
        now_us: int,
        outbox: Outbox,
        feed: FeedStanding | None = None,
    ) -> None:
        first, up_to_us = standing.workloads
        level = FleetLevel(
            api_version=API_VERSION,
            kind=LEVEL_KIND,
            cluster=cluster.name,
            zone=zone or None,
            sequence=self._next_sequence(cluster, now_us, outbox),
            at=instant_text(now_us),
            nodes=standing.nodes,
            pods=pods,
            evictions=standing.evictions,
            feed=feed,
            has_gap=standing.has_gap,
            brakes=standing.brakes,
            incidents=standing.incidents,
            workloads_from=first,
            workloads_up_to=None if up_to_us is None else instant_text(up_to_us),
        )
        outbox.send(self._config.fleet_topic, level_key(cluster.name, zone), encode(level), LEVEL_HEADERS)

    def _next_sequence(self, cluster: Cluster, now_us: int, outbox: Outbox) -> int:
        """Return the sequence of the next record, which the cluster's row keeps.

        The clock gives the least: a worker of a version that knows no sequence drops it from the row.
        """
        sequence = max(cluster.state.published + 1, now_us // MILLISECOND_US)
        self._clusters.published(cluster, sequence, cluster.state.published_zones, outbox)
        return sequence

    def _take_back(self, cluster: Cluster, outbox: Outbox) -> None:
        """Write tombstones for a cluster that is forgotten, or of which nothing is left."""
        self._workloads.take_back(cluster, outbox)
        self._identities.pop(cluster.name, None)
        for zone in ("", *cluster.state.published_zones) if cluster.state.published else ():
            self._retract(level_key(cluster.name, zone), outbox)
        if cluster.state.published:
            outbox.retract(self._config.clusters_topic, cluster.key)
            self._clusters.published(cluster, 0, (), outbox)

    def _retract(self, key: bytes, outbox: Outbox) -> None:
        self._published.pop(key, None)
        outbox.retract(self._config.fleet_topic, key)


def level_key(cluster: str, zone: str = "") -> bytes:
    """Return the key of how a cluster, or a zone of it, stands."""
    return f"{cluster}/{zone}".encode()


def _identity_of(cluster: Cluster, sequence: int, now_us: int) -> FleetCluster:
    state = cluster.state
    return FleetCluster(
        api_version=API_VERSION,
        kind=CLUSTER_KIND,
        cluster=cluster.name,
        sequence=sequence,
        at=instant_text(now_us),
        cluster_uid=state.uid or None,
        epoch=state.epoch,
        labels=state.labels,
        profile=state.profile,
    )
