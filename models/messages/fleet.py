"""What a fleet publishes of its clusters, on two compacted topics that anyone may read.

`evictstream.clusters` has a `FleetCluster` for each cluster: who it is. `evictstream.fleet` has a `FleetLevel` for each
cluster and, where they are known, for each zone: how it stands. Both are levels, never differences, with instants and
never ages. So the newest record of each key is all there is to know, and a reader that starts late misses nothing. A
record without a value, a tombstone, says that the service no longer knows the cluster, or the zone.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from evictstream.models.messages import codec
from evictstream.models.messages.fields import ApiVersion, Count, Epoch, IncidentId, InstantText, NonEmptyText

LEVEL_KIND: Final = "FleetLevel"
CLUSTER_KIND: Final = "FleetCluster"

MOST_BUCKETS: Final = 30
"""Minutes with deadlines that a level lists; what comes behind them is `later`."""

MOST_HOLDERS: Final = 20
"""Brakes and policies that a level lists, those that hold most."""

MOST_ZONES: Final = 100
"""Zones of a cluster of which records are published, the first ones by name."""

MOST_CLUSTER_LABELS: Final = 50
"""Labels of a cluster. They are in its row, which is written with each heartbeat."""

LONGEST_LABEL_KEY: Final = 317
"""Characters of the key of a label: 253 of a prefix, a slash, 63 of a name, as in Kubernetes."""

LONGEST_LABEL_VALUE: Final = 63
"""Characters of the value of a label, as in Kubernetes."""

LONGEST_PROFILE_NAMESPACE: Final = 63
LONGEST_PROFILE_NAME: Final = 253
LONGEST_CLUSTER_MANAGER: Final = 63
"""Characters, as in Kubernetes."""

_Sequence = Annotated[
    int, Meta(ge=1, description="Grows with each record of a key, also over workers. It says nothing else.")
]
_At = Annotated[InstantText, Meta(description="When it was so, by the clock of the worker.")]


class NodeCounts(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True):
    """Nodes: each is healthy, unhealthy or unknown."""

    healthy: Annotated[Count, Meta(description="Without a `NoExecute` taint of node health.")]
    unhealthy: Annotated[Count, Meta(description="With one.")]
    unknown: Annotated[
        Count, Meta(description="Pods are known on them, they are not; or their taints are too many to decide.")
    ]
    tainted: Annotated[Count, Meta(description="Of the first two, those with any `NoExecute` taint.")]


class DeadlineBucket(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True):
    """Evictions whose deadlines lie in one minute."""

    before: Annotated[InstantText, Meta(description="The end of the minute.")]
    evictions: Count


class HeldBy(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """Evictions that one brake or policy holds."""

    by: Annotated[NonEmptyText, Meta(description="The id of a brake, or `policy/NAME`.")]
    evictions: Count
    oldest_at: Annotated[InstantText, Meta(description="Since when the one is due that was held first.")]
    clauses: Annotated[
        dict[str, Count], Meta(description="Of a policy: how many of them each of its clauses holds.")
    ] = {}


class EvictionCounts(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """Open evictions: each is scheduled, due, issued or retrying."""

    open: Annotated[Count, Meta(description="All: the sum of the next four.")]
    scheduled: Annotated[Count, Meta(description="The deadline lies ahead.")]
    due: Annotated[Count, Meta(description="The deadline has come, and nothing was issued.")]
    issued: Annotated[Count, Meta(description="The first `Evict` was issued, and none has failed.")]
    retrying: Annotated[Count, Meta(description="An `Evict` has failed or was not answered, and is repeated.")]
    failing: Annotated[
        Count, Meta(description="Of those that are retried, those whose newest attempt has failed or was refused.")
    ]
    observed: Annotated[Count, Meta(description="Of those that were issued, those that an executor only observes.")]
    held: Annotated[Count, Meta(description="Of all, those that are due and that a brake or policy holds.")]
    deadlines: Annotated[
        tuple[DeadlineBucket, ...],
        Meta(max_length=MOST_BUCKETS, description="Those that are scheduled, by the minute, the first ones first."),
    ]
    later: Annotated[Count, Meta(description="Those that are scheduled behind the last of these minutes.")]
    held_by: Annotated[
        tuple[HeldBy, ...],
        Meta(max_length=MOST_HOLDERS, description="What holds them, most evictions first; of the whole cluster only."),
    ]
    oldest_due_at: Annotated[
        InstantText | None, Meta(description="Since when the oldest is due that has not ended; absent if none is.")
    ] = None
    built_in_at: Annotated[
        InstantText | None,
        Meta(
            description="When Kubernetes' own controller evicts the first of their pods, if nothing does before; absent"
            " if it evicts none."
        ),
    ] = None


class FeedStanding(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """Whether the feed of a cluster is heard."""

    is_silent: Annotated[bool, Meta(description="It is not heard for too long, and evictions wait for it.")] = (
        msgspec.field(name="silent")
    )
    heard_at: Annotated[
        InstantText | None,
        Meta(description="Until when nothing can have been missed, as of this record; absent without heartbeats."),
    ] = None


class FleetLevel(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """How a cluster, or one of its zones, stands."""

    api_version: ApiVersion
    kind: Annotated[str, Meta(extra_json_schema={"const": LEVEL_KIND})]
    cluster: Annotated[NonEmptyText, Meta(description="Its name, which the key has before a slash.")]
    zone: Annotated[
        NonEmptyText | None, Meta(description="The zone, behind that slash; absent for the whole cluster.")
    ] = None
    sequence: _Sequence
    at: _At
    nodes: NodeCounts
    pods: Annotated[Count, Meta(description="Pods on nodes, as of this record: they alone make no new one.")]
    evictions: EvictionCounts
    feed: Annotated[FeedStanding | None, Meta(description="Of the whole cluster only.")] = None
    has_gap: Annotated[
        bool, Meta(description="Of the whole cluster only: whether evictions wait as input expired unread.")
    ] = msgspec.field(name="gap", default=False)
    brakes: Annotated[
        tuple[NonEmptyText, ...],
        Meta(
            max_length=MOST_HOLDERS,
            description="Of the whole cluster only: ids of brakes in force, whatever they hold, the oldest first.",
        ),
    ] = ()
    incidents: Annotated[
        tuple[IncidentId, ...],
        Meta(
            max_length=MOST_HOLDERS,
            description="Of the whole cluster only: ids of incidents that wait for a person, the oldest first.",
        ),
    ] = ()
    workloads_from: Annotated[
        int | None,
        Meta(
            description="Of the whole cluster only: records of the topic `workloads` with a lower sequence do not"
            " count; absent if workloads are not published."
        ),
    ] = None
    workloads_up_to: Annotated[
        InstantText | None,
        Meta(description="Of the whole cluster only: up to when all that changed of its workloads is published."),
    ] = None


class ProfileRef(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """Where a cluster stands in an inventory: its ClusterProfile (multicluster.x-k8s.io) in a hub cluster."""

    namespace: Annotated[NonEmptyText, Meta(description="Of the ClusterProfile, in the hub.")]
    name: Annotated[NonEmptyText, Meta(description="Of the ClusterProfile.")]
    manager: Annotated[str, Meta(description="Who keeps it: its `spec.clusterManager.name`.")] = ""


class FleetCluster(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """Who a cluster is."""

    api_version: ApiVersion
    kind: Annotated[str, Meta(extra_json_schema={"const": CLUSTER_KIND})]
    cluster: Annotated[NonEmptyText, Meta(description="Its name, as in the key.")]
    sequence: _Sequence
    at: _At
    cluster_uid: Annotated[
        NonEmptyText | None,
        Meta(description="UID of its namespace `kube-system`; absent if its feed does not say."),
    ] = None
    epoch: Annotated[Epoch, Meta(description="Of its resource versions, see `WatchEvent`.")] = 0
    labels: Annotated[dict[str, str], Meta(description="As its feed was told them, or read them in its profile.")] = {}
    profile: Annotated[
        ProfileRef | None, Meta(description="Where it stands in an inventory; absent if its feed reads no profile.")
    ] = None


_level_decoder: Final = msgspec.json.Decoder(FleetLevel)
_cluster_decoder: Final = msgspec.json.Decoder(FleetCluster)


def decode_fleet_level(text: bytes | str) -> FleetLevel:
    """Read how a cluster or zone stands.

    Raises:
        Unreadable: it is no such record.
    """
    level = codec.decode(_level_decoder, text)
    codec.check_kind(level.api_version, level.kind, LEVEL_KIND)
    counts, feed = level.evictions, level.feed
    codec.check_instants(
        at=level.at,
        oldestDueAt=counts.oldest_due_at,
        builtInAt=counts.built_in_at,
        heardAt=None if feed is None else feed.heard_at,
        workloadsUpTo=level.workloads_up_to,
    )
    for bucket in counts.deadlines:
        codec.check_instants(before=bucket.before)
    for holder in counts.held_by:
        codec.check_instants(oldestAt=holder.oldest_at)
    return level


def decode_fleet_cluster(text: bytes | str) -> FleetCluster:
    """Read who a cluster is.

    Raises:
        Unreadable: it is no such record.
    """
    cluster = codec.decode(_cluster_decoder, text)
    codec.check_kind(cluster.api_version, cluster.kind, CLUSTER_KIND)
    codec.check_instants(at=cluster.at)
    return cluster
