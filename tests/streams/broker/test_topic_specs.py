from __future__ import annotations

import pytest

from evictstream.streams.broker.topic_specs import TopicSpec, topic_specs
from evictstream.streams.settings import Settings

INPUTS = ["evictstream.nodes", "evictstream.pods", "evictstream.results"]
OUTPUTS = ["evictstream.commands", "evictstream.decisions", "evictstream.dead-letters"]
CHANGELOG = "evictstream-v2-state-changelog"
FEEDS = "evictstream.feeds"
BRAKES = "evictstream.brakes"
POLICIES = "evictstream.policies"
PUBLISHED = ["evictstream.clusters", "evictstream.fleet", "evictstream.incidents", "evictstream.workloads"]


def specs(**overrides: object) -> dict[str, TopicSpec]:
    return {spec.name: spec for spec in topic_specs(Settings.model_validate(overrides))}


def test_all_topics_inputs_first() -> None:
    assert list(specs()) == [*INPUTS, *OUTPUTS, CHANGELOG, FEEDS, BRAKES, POLICIES, *PUBLISHED]


def test_feeds_is_compacted_and_has_one_partition() -> None:
    spec = specs(partitions=64, replication_factor=3)[FEEDS]
    assert (spec.partitions, spec.replication_factor, spec.configs["cleanup.policy"]) == (1, 3, "compact")


@pytest.mark.parametrize("name", [BRAKES, POLICIES])
def test_steering_is_compacted_in_one_partition_and_stamped(name: str) -> None:
    spec = specs(partitions=64)[name]
    assert (spec.partitions, spec.configs["cleanup.policy"]) == (1, "compact")
    assert spec.configs["message.timestamp.type"] == "LogAppendTime"


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_are_stamped_by_the_broker_and_kept_by_time(name: str) -> None:
    spec = specs(input_retention_hours=2)[name]
    assert spec.configs["message.timestamp.type"] == "LogAppendTime"
    assert spec.configs["cleanup.policy"] == "delete"
    assert spec.configs["retention.ms"] == "7200000"
    assert spec.essential == {"partitions", "cleanup.policy", "message.timestamp.type"}


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("evictstream.commands", "command_retention_hours"),
        ("evictstream.decisions", "decision_retention_hours"),
        ("evictstream.dead-letters", "dead_letter_retention_hours"),
    ],
)
def test_outputs_are_kept_by_their_own_time(name: str, setting: str) -> None:
    spec = specs(**{setting: 3})[name]
    assert spec.configs["retention.ms"] == "10800000"
    assert spec.configs["cleanup.policy"] == "delete"


def test_changelog_is_compacted_with_tuned_segments() -> None:
    spec = specs(changelog_segment_minutes=2, changelog_dirty_ratio=0.1, changelog_delete_retention_hours=1)[CHANGELOG]
    assert dict(spec.configs) == {
        "cleanup.policy": "compact",
        "message.timestamp.type": "LogAppendTime",
        "segment.bytes": "16777216",
        "segment.ms": "120000",
        "min.cleanable.dirty.ratio": "0.1",
        "delete.retention.ms": "3600000",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "max.message.bytes": "2097152",
    }


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_published_is_compacted_beside_the_inputs(name: str) -> None:
    spec = specs(partitions=7)[name]
    assert (spec.partitions, spec.configs["cleanup.policy"]) == (7, "compact")
    assert spec.configs["segment.bytes"] == "4194304"
    assert "delete.retention.ms" not in spec.configs, "tombstones stay for Kafka's day"
    assert spec.essential == {"partitions", "cleanup.policy"}


def test_changelog_follows_application_and_version() -> None:
    assert "east-v4-state-changelog" in specs(application_id="east", state_version=4)


def test_inputs_and_changelog_have_one_partition_count() -> None:
    made = specs(partitions=7)
    assert {made[name].partitions for name in [*INPUTS, CHANGELOG]} == {7}


def test_every_topic_takes_the_largest_object_and_its_copies() -> None:
    for spec in specs(replication_factor=3, min_insync_replicas=2).values():
        assert int(spec.configs["max.message.bytes"]) > Settings().max_object_bytes
        assert spec.configs["min.insync.replicas"] == "2"
        assert spec.replication_factor == 3
