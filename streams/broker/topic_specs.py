"""What our topics must be, computed from settings; nothing here talks to Kafka.

| topic | time stamps | kept | must hold |
|---|---|---|---|
| nodes, pods, results | append time | by time | partition count, policy, time stamps |
| commands, decisions, dead letters | free | by time | partition count, policy |
| feeds | free | compacted | policy |
| state changelog | append time | compacted | partition count, policy, time stamps |

Inputs are stamped by the broker because deadlines count from those stamps, and the changelog because comparing them
with our own clock shows when that is wrong. Every topic takes records as large as the largest object: a dead letter is
the record as it came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from evictstream.streams.settings import Settings

CLEANUP_POLICY: Final = "cleanup.policy"
TIMESTAMP_TYPE: Final = "message.timestamp.type"

# Only closed segments are compacted, and each partition has one that is open. With Kafka's 1 GiB a fleet with 2,000
# changes a second would have an hour of them, some 2 GB, in open ones; with 64 MiB four partitions could still hold six
# times as much as the 40 MB that 150,000 pods take.
_CHANGELOG_SEGMENT_BYTES = 16 * 1024 * 1024
_MILLISECONDS_PER_HOUR = 3_600_000
_MILLISECONDS_PER_MINUTE = 60_000


@dataclasses.dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic as it must be.

    Attributes:
        name: full name, prefix included.
        partitions: how many.
        replication_factor: copies of each partition.
        configs: Kafka's topic settings by name, values as Kafka writes them; what is not in here is free.
        essential: what evictstream cannot work without: names of `configs`, and `partitions`. A difference in anything
            else makes us slower or less safe, not wrong.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    essential: frozenset[str]


def topic_specs(settings: Settings) -> tuple[TopicSpec, ...]:
    """Return all our topics, inputs first, those that are no stream last."""
    return (
        *(_input(settings, name) for name in settings.input_topics),
        _output(settings, settings.commands_topic, settings.command_retention_hours),
        _output(settings, settings.decisions_topic, settings.decision_retention_hours),
        _output(settings, settings.dead_letters_topic, settings.dead_letter_retention_hours),
        _changelog(settings),
        _feeds(settings),
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
        # Compaction would keep one command per node and drop the rest. A partition's messages go to the partition of
        # its own number, in the transaction of its rows, so the count must be the one of the inputs.
        essential=frozenset({"partitions", CLEANUP_POLICY}),
    )


def _feeds(settings: Settings) -> TopicSpec:
    return TopicSpec(
        name=settings.feeds_topic,
        partitions=1,  # a record for each cluster
        replication_factor=settings.replication_factor,
        configs={CLEANUP_POLICY: "compact", **_common(settings)},
        essential=frozenset({CLEANUP_POLICY}),
    )


def _changelog(settings: Settings) -> TopicSpec:
    return TopicSpec(
        name=settings.changelog_topic,
        partitions=settings.partitions,
        replication_factor=settings.replication_factor,
        configs={
            # With "delete" rows that have not changed for a week would be forgotten.
            CLEANUP_POLICY: "compact",
            TIMESTAMP_TYPE: "LogAppendTime",
            "segment.bytes": str(_CHANGELOG_SEGMENT_BYTES),
            "segment.ms": str(int(settings.changelog_segment_minutes * _MILLISECONDS_PER_MINUTE)),
            "min.cleanable.dirty.ratio": f"{settings.changelog_dirty_ratio:g}",
            "delete.retention.ms": _milliseconds(settings.changelog_delete_retention_hours),
            **_common(settings),
        },
        essential=frozenset({"partitions", CLEANUP_POLICY, TIMESTAMP_TYPE}),
    )


def _common(settings: Settings) -> Mapping[str, str]:
    return {
        "min.insync.replicas": str(settings.min_insync_replicas),
        "max.message.bytes": str(settings.max_message_bytes),
    }


def _milliseconds(hours: float) -> str:
    return str(int(hours * _MILLISECONDS_PER_HOUR))
