"""The names of topics and group, and how the topics are made."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evictstream.streams.settings.group import SettingsGroup, matching

MEBIBYTE = 1_048_576

MOST_EXPANSION = 4
"""How many times `max_message_bytes` a decompressed batch may have. A batch of the largest objects, each of which fills
one alone, has room four times; ten such batches in a worker's queues stay below a fifth of its memory."""

Name = Annotated[
    str, Field(max_length=100), matching(r"[a-zA-Z0-9._-]*", "use letters without accents, digits, dots, _ and -")
]
"""Kafka's alphabet for names; 100 leaves room for suffixes below its limit of 249."""


class TopicSettings(SettingsGroup):
    """Names, counts, retention and sizes of topics."""

    topic_prefix: Name = "evictstream."
    """Prefix of the names of all topics except the state changelog."""

    application_id: Annotated[Name, Field(min_length=1)] = "evictstream"
    """Consumer group, and first part of transactional ids and of the changelog's name. Two services that share a Kafka
    but not their work need two."""

    state_version: Annotated[int, Field(ge=1)] = 2
    """Version of the layout of rows; part of the names of group, transactional ids and changelog. Do not set it:
    another number changes no layout, and a worker refuses an empty changelog next to one of another version."""

    partitions: Annotated[int, Field(ge=1, le=4096)] = 8
    """Partitions of each topic; the topics of feeds, brakes and policies always have one. It bounds the number of
    workers that have work, and cannot be changed later without new topics: 8 suits trials, 64 a fleet."""

    replication_factor: Annotated[int, Field(ge=1, le=7)] = 1
    """Copies of each partition. 1 because the Kafka for trials has one broker; use 3 in production."""

    min_insync_replicas: Annotated[int, Field(ge=1, le=7)] = 1
    """Copies that must have a record before it counts as written. Use 2 in production, with 3 copies."""

    topics_wait_seconds: Annotated[float, Field(ge=0)] = 60.0
    """How long a worker, feed or executor that starts waits for missing topics. A minute: at a first installation they
    are created while it starts. With 0 it ends at once."""

    input_retention_hours: Annotated[float, Field(gt=0)] = 168.0
    """How long nodes, pods and results are kept. A week: longer than the longest outage of the service that must not
    lose input."""

    command_retention_hours: Annotated[float, Field(gt=0)] = 168.0
    """How long commands are kept. A week: an executor that is down for that long misses none."""

    decision_retention_hours: Annotated[float, Field(gt=0)] = 720.0
    """How long decisions are kept. 30 days: people ask for reasons weeks later."""

    dead_letter_retention_hours: Annotated[float, Field(gt=0)] = 720.0
    """How long dead letters are kept. 30 days: an operator has to look at them."""

    changelog_delete_retention_hours: Annotated[float, Field(gt=0)] = 1.0
    """How long the changelog keeps tombstones. An hour: a takeover reads the whole changelog, in minutes at most, and
    must not miss the deletion of a row that it has just read."""

    changelog_segment_minutes: Annotated[float, Field(gt=0)] = 60.0
    """Age at which a segment of the changelog is closed; only closed segments are compacted. An hour keeps recovery
    short."""

    changelog_dirty_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.2
    """Share of the changelog that may be outdated before it is compacted. Kafka's 0.5 would double what recovery
    reads."""

    max_object_bytes: Annotated[int, Field(ge=1024)] = 1_572_864
    """Largest value of an input event that is not about one node or pod; of those, only the deciding fields are
    limited. 1.5 MiB is etcd's limit on a request."""

    max_record_bytes: Annotated[int, Field(ge=1024)] = 2_000_000
    """Largest record that is written: an object with envelope and headers. Below `EVICTSTREAM_MAX_MESSAGE_BYTES` by
    what Kafka adds to a batch."""

    max_message_bytes: Annotated[int, Field(ge=1024)] = 2 * MEBIBYTE
    """The `max.message.bytes` of every topic. Kafka's default of 1 MiB would refuse the largest objects."""

    publish_workloads: bool = False
    """Whether workers publish which owners are about to lose pods. Off: it costs some 200 bytes for each owner, and a
    record a second for each that loses pods. All workers of a service need the same."""

    @property
    def largest_batch_bytes(self) -> int:
        """Most bytes of a decompressed batch of records; readers skip a larger one."""
        return MOST_EXPANSION * self.max_message_bytes

    @property
    def faust_app_id(self) -> str:
        """Id for Faust, the version spelled out (give Faust itself `version=1`, with which it leaves the id alone)."""
        return f"{self.application_id}-v{self.state_version}"

    @property
    def group_id(self) -> str:
        """Consumer group; Faust uses its application's id."""
        return self.faust_app_id

    @property
    def nodes_topic(self) -> str:
        """Watch events of nodes."""
        return f"{self.topic_prefix}nodes"

    @property
    def pods_topic(self) -> str:
        """Watch events of pods."""
        return f"{self.topic_prefix}pods"

    @property
    def results_topic(self) -> str:
        """Results of commands, from executors."""
        return f"{self.topic_prefix}results"

    @property
    def commands_topic(self) -> str:
        """Eviction commands."""
        return f"{self.topic_prefix}commands"

    @property
    def decisions_topic(self) -> str:
        """One record per decision, with its reasons."""
        return f"{self.topic_prefix}decisions"

    @property
    def dead_letters_topic(self) -> str:
        """Unreadable records, unchanged."""
        return f"{self.topic_prefix}dead-letters"

    @property
    def feeds_topic(self) -> str:
        """State that each cluster's feed needs at a restart."""
        return f"{self.topic_prefix}feeds"

    @property
    def brakes_topic(self) -> str:
        """Which evictions wait because a person asked for it."""
        return f"{self.topic_prefix}brakes"

    @property
    def policies_topic(self) -> str:
        """Which evictions go slower, as a rule."""
        return f"{self.topic_prefix}policies"

    @property
    def clusters_topic(self) -> str:
        """Who each cluster is."""
        return f"{self.topic_prefix}clusters"

    @property
    def fleet_topic(self) -> str:
        """How each cluster and zone stands."""
        return f"{self.topic_prefix}fleet"

    @property
    def incidents_topic(self) -> str:
        """What guards hold until a person answers."""
        return f"{self.topic_prefix}incidents"

    @property
    def workloads_topic(self) -> str:
        """Owners that are about to lose pods."""
        return f"{self.topic_prefix}workloads"

    @property
    def changelog_topic(self) -> str:
        """Rows. Faust names it after application and table (`state`)."""
        return f"{self.faust_app_id}-state-changelog"

    @property
    def written_topics(self) -> tuple[str, ...]:
        """What workers write beside the changelog."""
        return (
            self.commands_topic,
            self.decisions_topic,
            self.dead_letters_topic,
            self.clusters_topic,
            self.fleet_topic,
            self.incidents_topic,
            *((self.workloads_topic,) if self.publish_workloads else ()),
        )

    @property
    def input_topics(self) -> tuple[str, str, str]:
        """The three inputs, in the order nodes, pods, results."""
        return (self.nodes_topic, self.pods_topic, self.results_topic)
