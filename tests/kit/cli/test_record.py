"""`evictstream record` on a real Kafka, and the replay of what it has written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from evictstream.kit.recordings.recording_folder import read_folder
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.kit.cli.test_replay import INCIDENT
from tests.streams.cli.running import run

pytestmark = pytest.mark.kafka


@pytest.fixture
def declared(settings: Settings) -> Settings:
    declare_topics(settings)
    return settings


def test_what_was_recorded_is_replayed(declared: Settings, tmp_path: Path) -> None:
    assert run(declared, "import", INCIDENT, "--pace", "fast", "--restamp").returncode == 0
    result = run(declared, "record", str(tmp_path / "r"), "-o", "json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["records"], found["clusters"], found["missingOffsets"], found["setBack"]) == (374, {"lab": 374}, 0, 0)
    assert found["topics"].keys() == {"nodes", "pods"}

    replayed = run(declared, "replay", str(tmp_path / "r"), "-o", "json")
    assert replayed.returncode == 0, replayed.stderr
    summary = json.loads(replayed.stdout)
    assert (summary["records"], summary["clusters"]) == (374, ["lab"])
    assert summary["evictions"] > 0


def test_a_range_of_some_clusters_with_outputs(declared: Settings, tmp_path: Path) -> None:
    producer = KafkaProducer(bootstrap_servers=declared.bootstrap_servers)
    for topic in (declared.pods_topic, declared.results_topic, declared.decisions_topic):
        for cluster in ("a", "b"):
            producer.send(topic, key=cluster.encode(), value=b"not JSON", partition=0)
    producer.close()
    arguments = ("--cluster", "a", "--since", "2020-01-01T00:00:00Z", "--outputs")
    assert run(declared, "record", str(tmp_path / "r"), *arguments).returncode == 0
    found = list(read_folder(tmp_path / "r"))
    assert sorted((one.topic, one.key, one.value) for one in found) == [
        ("decisions", b"a", b"not JSON"),
        ("pods", b"a", b"not JSON"),
        ("results", b"a", b"not JSON"),
    ]
    assert run(declared, "record", str(tmp_path / "none"), "--until", "2020-01-01T00:00:00Z").returncode == 0
    assert list((tmp_path / "none").iterdir()) == [tmp_path / "none" / "manifest.json"]


def test_brakes_and_policies_are_recorded_and_played(declared: Settings, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text("name: watch\nobserve: true\n")
    assert run(declared, "policy", "apply", str(policy), "--why", "first").returncode == 0
    assert run(declared, "import", INCIDENT, "--pace", "fast", "--restamp").returncode == 0
    since = ("--cluster", "lab", "--since", "1m")
    found = json.loads(run(declared, "record", str(tmp_path / "r"), *since, "-o", "json").stdout)
    assert (found["clusters"], found["topics"]["policies"]) == ({"lab": 374}, 1)

    steered = json.loads(run(declared, "replay", str(tmp_path / "r"), "-o", "json").stdout)
    assert (steered["issued"], list(steered["held"])) == (0, ["policy/watch"])
    assert steered["records"] == 374
    free = json.loads(run(declared, "replay", str(tmp_path / "r"), "--unsteered", "-o", "json").stdout)
    assert (free["issued"] > 0, free["held"]) == (True, {})
    live = json.loads(run(declared, "replay", "-o", "json").stdout)
    assert live == steered, "the topics of the service are replayed in the same way"


def test_a_cluster_of_which_nothing_is_there_is_said(declared: Settings, tmp_path: Path) -> None:
    producer = KafkaProducer(bootstrap_servers=declared.bootstrap_servers)
    producer.send(declared.pods_topic, key=b"a", value=b"not JSON", partition=0)
    producer.close()
    result = run(declared, "record", str(tmp_path / "r"), "--cluster", "a", "--cluster", "nope", "-o", "json")
    assert (result.returncode, json.loads(result.stdout)["clusters"]) == (1, {"a": 1})
    assert result.stderr == b"evictstream: the topics have no records of nope: check the name\n"
    result = run(declared, "replay", "--cluster", "nope")
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.startswith(b"evictstream: the topics have no records of nope")


def test_a_folder_that_is_not_empty_is_refused(declared: Settings, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    result = run(declared, "record", str(tmp_path))
    assert (result.returncode, b"is not empty" in result.stderr) == (2, True)


def test_topics_are_replayed_and_stay_as_they_are(declared: Settings, tmp_path: Path) -> None:
    assert run(declared, "import", INCIDENT, "--pace", "fast", "--restamp").returncode == 0
    before = ends(declared)
    result = run(declared, "replay", "--against", "upstream", "-o", "json")
    assert result.returncode == 0, result.stderr
    live = json.loads(result.stdout)
    assert run(declared, "record", str(tmp_path / "r")).returncode == 0
    recorded = json.loads(run(declared, "replay", str(tmp_path / "r"), "--against", "upstream", "-o", "json").stdout)
    assert live == recorded
    assert (live["records"], live["evictions"] > 0) == (374, True)
    assert ends(declared) == before


def test_a_range_of_topics_is_replayed(declared: Settings) -> None:
    assert run(declared, "import", INCIDENT, "--pace", "fast", "--restamp").returncode == 0
    result = run(declared, "replay", "--until", "2020-01-01T00:00:00Z", "-o", "json")
    assert json.loads(result.stdout)["records"] == 0
    assert run(declared, "replay", "--cluster", "other").returncode == 1


def ends(settings: Settings) -> tuple[dict[TopicPartition, int], list[object]]:
    """Return how far each topic reaches, and all consumer groups."""
    consumer = KafkaConsumer(bootstrap_servers=settings.bootstrap_servers)
    admin = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    try:
        names = [name for name in consumer.topics() if name.startswith(settings.topic_prefix)]
        places = [TopicPartition(name, number) for name in names for number in consumer.partitions_for_topic(name)]
        groups = [one for one in admin.list_groups() if settings.application_id in str(one)]
        return consumer.end_offsets(places), groups
    finally:
        consumer.close()
        admin.close()
