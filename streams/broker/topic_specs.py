"""The specification of evictstream's topics, computed from settings; nothing here talks to Kafka.

| topic | time stamps | kept | must hold |
|---|---|---|---|
| nodes, pods, results | append time | by time | partition count, policy, time stamps |
| commands, decisions, dead letters | free | by time | partition count, policy |
| feeds | free | compacted | policy |
| clusters, fleet, incidents, workloads | free | compacted | partition count, policy |
| brakes, policies | append time | compacted | partition count, policy, time stamps |
| state changelog | append time | compacted | partition count, policy, time stamps |

"Free" means that any value is accepted. If a topic differs in what it "must hold", workers and feeds that use it refuse
to start (feeds accept any partition count); any other difference is a warning. `evictstream topics check` names both.
A changed specification changes no topic that exists: `declare_topics` only creates missing ones. Retention and the like
come from `streams.settings.topics`.

The broker stamps inputs because deadlines count from append times, and brakes and policies because their ends do. It
stamps the changelog because the worker compares its own clock with those append times. Every topic takes records as
large as the largest object: a dead letter is the record as it came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from evictstream.streams.settings import Settings

CLEANUP_POLICY: Final = "cleanup.policy"
TIMESTAMP_TYPE: Final = "message.timestamp.type"

# Size at which a segment of the changelog closes. Kafka compacts closed segments only, and each partition has an open
# one. With Kafka's default of 1 GiB the open segments of a fleet with 2,000 changes a second would grow for an hour, to
# about 2 GB. With 64 MiB those of four partitions could still hold six times the 40 MB that 150,000 pods take.
_CHANGELOG_SEGMENT_BYTES = 16 * 1024 * 1024
# The same for what is published, of which a cluster that changes has a kilobyte each second: who reads it from its
# beginning reads at most some of these of each partition.
_PUBLISHED_SEGMENT_BYTES = 4 * 1024 * 1024
_MILLISECONDS_PER_HOUR = 3_600_000
_MILLISECONDS_PER_MINUTE = 60_000


@dataclasses.dataclass(frozen=True, slots=True)
class TopicSpec:
    """The specification of one topic.

    Attributes:
        name: full name, prefix included.
        partitions: their count.
        replication_factor: copies of each partition.
        configs: Kafka's topic settings by name, values as Kafka writes them; other settings are free.
        essential: names of `configs`, or `partitions`, without which evictstream would decide wrongly. Any other
            difference makes it slower or less safe.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    essential: frozenset[str]


def topic_specs(settings: Settings) -> tuple[TopicSpec, ...]:
    """Return the specification of every topic.

    In this order: inputs, outputs, changelog, feeds, brakes, policies, clusters, fleet, incidents, workloads.
    """
    return (
        *(_input(settings, name) for name in settings.input_topics),
        _output(settings, settings.commands_topic, settings.command_retention_hours),
        _output(settings, settings.decisions_topic, settings.decision_retention_hours),
        _output(settings, settings.dead_letters_topic, settings.dead_letter_retention_hours),
        _changelog(settings),
        _feeds(settings),
        _steering(settings, settings.brakes_topic),
        _steering(settings, settings.policies_topic),
        _published(settings, settings.clusters_topic),
        _published(settings, settings.fleet_topic),
        _published(settings, settings.incidents_topic),
        _published(settings, settings.workloads_topic),
    )


def _input(settings: Settings, name: str) -> TopicSpec:
    return TopicSpec(
        name=name,
        partitions=settings.partitions,
        replication_factor=settings.replication_factor,
        configs={
            CLEANUP_POLICY: "delete",
            TIMESTAMP_TYPE: "LogAppendTime",
            "retention.ms": _milliseconds(settings.input_retention_hours),
            **_common(settings),
        },
        essential=frozenset({"partitions", CLEANUP_POLICY, TIMESTAMP_TYPE}),
    )


def _output(settings: Settings, name: str, retention_hours: float) -> TopicSpec:
    return TopicSpec(
        name=name,
        partitions=settings.partitions,
        replication_factor=settings.replication_factor,
        configs={CLEANUP_POLICY: "delete", "retention.ms": _milliseconds(retention_hours), **_common(settings)},
        # Compaction would keep one command per cluster and drop the rest. A partition's messages go to the partition of
        # the same number, in the transaction of its rows, so the count must be that of the inputs.
        essential=frozenset({"partitions", CLEANUP_POLICY}),
    )


def _feeds(settings: Settings) -> TopicSpec:
    return TopicSpec(
        name=settings.feeds_topic,
        partitions=1,  # it has one record for each cluster
        replication_factor=settings.replication_factor,
        configs={CLEANUP_POLICY: "compact", **_common(settings)},
        essential=frozenset({CLEANUP_POLICY}),
    )


def _steering(settings: Settings, name: str) -> TopicSpec:
    return TopicSpec(
        name=name,
        partitions=1,  # who reads it to its end knows all of them, in one order
        replication_factor=settings.replication_factor,
        configs={CLEANUP_POLICY: "compact", TIMESTAMP_TYPE: "LogAppendTime", **_common(settings)},
        essential=frozenset({"partitions", CLEANUP_POLICY, TIMESTAMP_TYPE}),
    )


def _published(settings: Settings, name: str) -> TopicSpec:
    return TopicSpec(
        name=name,
        partitions=settings.partitions,
        replication_factor=settings.replication_factor,
        # Tombstones stay for Kafka's day: readers are other people's programs, and may be down for a night.
        configs={
            CLEANUP_POLICY: "compact",
            **_compaction(settings, _PUBLISHED_SEGMENT_BYTES),
            **_common(settings),
        },
        essential=frozenset({"partitions", CLEANUP_POLICY}),
    )


def _changelog(settings: Settings) -> TopicSpec:
    return TopicSpec(
        name=settings.changelog_topic,
        partitions=settings.partitions,
        replication_factor=settings.replication_factor,
        configs={
            # With "delete", Kafka would drop rows that have not changed for a week.
            CLEANUP_POLICY: "compact",
            TIMESTAMP_TYPE: "LogAppendTime",
            **_compaction(settings, _CHANGELOG_SEGMENT_BYTES),
            "delete.retention.ms": _milliseconds(settings.changelog_delete_retention_hours),
            **_common(settings),
        },
        essential=frozenset({"partitions", CLEANUP_POLICY, TIMESTAMP_TYPE}),
    )


def _compaction(settings: Settings, segment_bytes: int) -> Mapping[str, str]:
    return {
        "segment.bytes": str(segment_bytes),
        "segment.ms": str(int(settings.changelog_segment_minutes * _MILLISECONDS_PER_MINUTE)),
        "min.cleanable.dirty.ratio": f"{settings.changelog_dirty_ratio:g}",
    }


def _common(settings: Settings) -> Mapping[str, str]:
    return {
        # Whatever the brokers' default is: to compress a batch again, or to undo it, a broker would have to expand it
        # first.
        "compression.type": "producer",
        "min.insync.replicas": str(settings.min_insync_replicas),
        "max.message.bytes": str(settings.max_message_bytes),
    }


def _milliseconds(hours: float) -> str:
    return str(int(hours * _MILLISECONDS_PER_HOUR))
