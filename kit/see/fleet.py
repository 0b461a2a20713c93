"""The fleet as its two topics tell it: each cluster and zone, and all clusters together."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.messages.fleet import (
    MOST_BUCKETS,
    MOST_HOLDERS,
    DeadlineBucket,
    EvictionCounts,
    FleetCluster,
    FleetLevel,
    HeldBy,
    NodeCounts,
    ProfileRef,
    decode_fleet_cluster,
    decode_fleet_level,
)
from evictstream.models.messages.unreadable import Unreadable

OLDEST_LEVEL_SECONDS: Final = 90.0
"""What is older was not said again: workers say each level again after 60 s."""


class SeenScope(enum.StrEnum):
    """What a line of the fleet is about."""

    FLEET = "fleet"
    CLUSTER = "cluster"
    ZONE = "zone"


class ListedStanding(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """How the fleet, a cluster or a zone stands; of the fleet, sums over its clusters.

    Attributes:
        scope: which of the three.
        clusters: how many; 1 for a cluster or zone.
        silent_feeds: how many of them have a feed that is not heard for too long.
        gaps: how many of them wait because input expired unread.
        at: when it was so; of the fleet, of the cluster that was published first.
        heard_at: when the feed was last heard, as of then; of the fleet, the feed that was heard first.
        cluster_uid: UID of the cluster's namespace `kube-system`.
        profile: its ClusterProfile in a hub.
        unreadable: what of the brakes or policies cannot be read, because of which nothing is evicted in any cluster.
    """

    scope: SeenScope
    cluster: str | None = None
    zone: str | None = None
    clusters: int
    silent_feeds: int
    gaps: int
    at: str
    sequence: int | None = None
    nodes: NodeCounts
    pods: int
    evictions: EvictionCounts
    heard_at: str | None = None
    brakes: tuple[str, ...] = ()
    incidents: tuple[str, ...] = ()
    cluster_uid: str | None = None
    labels: dict[str, str] = {}
    profile: ProfileRef | None = None
    unreadable: dict[str, str] = {}

    @property
    def name(self) -> str:
        """What it is called: the key of its record, or `*` for all clusters."""
        if self.cluster is None:
            return "*"
        return self.cluster if self.zone is None else f"{self.cluster}/{self.zone}"

    def is_old(self, now_us: int) -> bool:
        """Whether no worker has said it again in time."""
        return now_us - instant_us(self.at) > OLDEST_LEVEL_SECONDS * SECOND_US


class FleetView:
    """The newest record of each key. A record that cannot be read leaves the one before, and is told."""

    def __init__(self) -> None:
        self._levels: dict[bytes, FleetLevel] = {}
        self._clusters: dict[str, FleetCluster] = {}

    def take_level(self, key: bytes, value: bytes | None) -> str | None:
        """Take in a record of the fleet topic; returns why it cannot be read."""
        if value is None:
            self._levels.pop(key, None)
            return None
        try:
            self._levels[key] = decode_fleet_level(value)
        except Unreadable as error:
            return str(error)
        return None

    def take_cluster(self, key: bytes, value: bytes | None) -> str | None:
        """Take in a record of the clusters topic; returns why it cannot be read."""
        name = key.decode(errors="replace")
        if value is None:
            self._clusters.pop(name, None)
            return None
        try:
            self._clusters[name] = decode_fleet_cluster(value)
        except Unreadable as error:
            return str(error)
        return None

    def names(self) -> set[str]:
        """Return the names of the clusters."""
        return {level.cluster for level in self._levels.values()}

    def held_by(self, cluster: str | None = None) -> Iterator[HeldBy]:
        """Yield what brakes and policies hold, of one cluster or of each."""
        for level in self._levels.values():
            if level.zone is None and cluster in {None, level.cluster}:
                yield from level.evictions.held_by

    def standings(self, cluster: str | None = None, unreadable: Mapping[str, str] = {}) -> list[ListedStanding]:
        """List the fleet, then its clusters by name; or a cluster, then its zones.

        Args:
            cluster: only this one.
            unreadable: as in `Steering`.
        """
        levels = sorted(self._levels.values(), key=lambda one: (one.cluster, one.zone or ""))
        if cluster is not None:
            return [self._listed(level, unreadable) for level in levels if level.cluster == cluster]
        clusters = [self._listed(level, unreadable) for level in levels if level.zone is None]
        return [together(clusters), *clusters] if clusters else []

    def _listed(self, level: FleetLevel, unreadable: Mapping[str, str]) -> ListedStanding:
        feed, named = level.feed, self._clusters.get(level.cluster)
        return ListedStanding(
            scope=SeenScope.CLUSTER if level.zone is None else SeenScope.ZONE,
            cluster=level.cluster,
            zone=level.zone,
            clusters=1,
            silent_feeds=int(feed is not None and feed.is_silent),
            gaps=int(level.has_gap),
            at=level.at,
            sequence=level.sequence,
            nodes=level.nodes,
            pods=level.pods,
            evictions=level.evictions,
            heard_at=None if feed is None else feed.heard_at,
            brakes=level.brakes,
            incidents=level.incidents,
            cluster_uid=None if named is None else named.cluster_uid,
            labels={} if named is None else named.labels,
            profile=None if named is None else named.profile,
            unreadable=dict(unreadable),
        )


def together(parts: Iterable[ListedStanding]) -> ListedStanding:
    """Return the sums of several clusters, at least one."""
    each = list(parts)
    return ListedStanding(
        scope=SeenScope.FLEET,
        clusters=len(each),
        silent_feeds=sum(one.silent_feeds for one in each),
        gaps=sum(one.gaps for one in each),
        at=min(one.at for one in each),
        nodes=NodeCounts(**_sums(NodeCounts, (one.nodes for one in each))),
        pods=sum(one.pods for one in each),
        evictions=_evictions([one.evictions for one in each]),
        heard_at=min((one.heard_at for one in each if one.heard_at is not None), default=None),
        brakes=tuple(dict.fromkeys(name for one in each for name in one.brakes))[:MOST_HOLDERS],
        incidents=tuple(name for one in each for name in one.incidents)[:MOST_HOLDERS],
        unreadable=each[0].unreadable,
    )


_WITHOUT_SUM: Final = frozenset({"deadlines", "held_by", "oldest_due_at", "built_in_at", "later"})


def _evictions(each: list[EvictionCounts]) -> EvictionCounts:
    minutes: Counter[str] = Counter()
    for counts in each:
        for bucket in counts.deadlines:
            minutes[bucket.before] += bucket.evictions
    ahead = sorted(minutes.items())
    held, since, clauses = Counter[str](), dict[str, str](), dict[str, Counter[str]]()
    for holder in _holders(each):
        held[holder.by] += holder.evictions
        clauses.setdefault(holder.by, Counter()).update(holder.clauses)
        since[holder.by] = min(since.get(holder.by, holder.oldest_at), holder.oldest_at)
    return EvictionCounts(
        **_sums(EvictionCounts, each),
        deadlines=tuple(DeadlineBucket(before=end, evictions=count) for end, count in ahead[:MOST_BUCKETS]),
        later=sum(counts.later for counts in each) + sum(count for _, count in ahead[MOST_BUCKETS:]),
        held_by=tuple(
            HeldBy(by=by, evictions=count, oldest_at=since[by], clauses=dict(clauses[by]))
            for by, count in held.most_common(MOST_HOLDERS)
        ),
        oldest_due_at=min((one.oldest_due_at for one in each if one.oldest_due_at is not None), default=None),
        built_in_at=min((one.built_in_at for one in each if one.built_in_at is not None), default=None),
    )


def _holders(each: Iterable[EvictionCounts]) -> Iterator[HeldBy]:
    for counts in each:
        yield from counts.held_by


def _sums(kind: type[msgspec.Struct], each: Iterable[msgspec.Struct]) -> dict[str, int]:
    """Add up the numbers of structs of a kind, by name."""
    names = [name for name in kind.__struct_fields__ if name not in _WITHOUT_SUM]
    parts = list(each)
    return {name: sum(getattr(one, name) for one in parts) for name in names}
