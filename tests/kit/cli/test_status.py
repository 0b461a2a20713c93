"""`evictstream status` on a real Kafka: what the topics say, once and with `--watch`, and where they say nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.kit.see.test_fleet import level
from tests.models.messages.test_fleet import CLUSTER, COUNTS
from tests.streams.cli.running import run, started


@pytest.fixture
def published(settings: Settings) -> Settings:
    """Two clusters; one has another record before its newest."""
    declare_topics(settings)
    send(settings, settings.fleet_topic, b"lab/", level("lab", pods=1))
    send(settings, settings.fleet_topic, b"lab/", level("lab", pods=5))
    send(settings, settings.fleet_topic, b"other/", level("other", pods=2))
    send(settings, settings.clusters_topic, b"lab", json.dumps(CLUSTER).encode())
    return settings


def send(settings: Settings, topic: str, key: bytes, value: bytes | None) -> None:
    producer = KafkaProducer(bootstrap_servers=settings.bootstrap_servers)
    producer.send(topic, key=key, value=value).get(timeout=30)
    producer.close()


def items(settings: Settings, *arguments: str) -> list[dict[str, Any]]:
    result = run(settings, "status", *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)["items"]
    return found


def test_the_fleet_and_each_cluster_are_shown(published: Settings) -> None:
    whole, lab, other = items(published)
    assert (whole["scope"], whole["clusters"], whole["pods"]) == ("fleet", 2, 7)
    assert [(one["cluster"], one["pods"]) for one in (lab, other)] == [("lab", 5), ("other", 2)]
    assert (lab["labels"], lab["clusterUid"]) == ({"tier": "gold"}, "u")
    assert [one["cluster"] for one in items(published, "other")] == ["other"]


def test_what_nobody_says_any_more_is_told(published: Settings) -> None:
    result = run(published, "status")
    assert result.returncode == 0
    assert b"no worker has said for 90 s by this machine's clock how lab, other stands" in result.stderr
    assert result.stdout.splitlines()[0].split()[0] == b"CLUSTER"


def test_a_misspelt_cluster_is_not_shown(published: Settings) -> None:
    result = run(published, "status", "labb")
    assert result.returncode == 1
    assert b"did you mean lab?" in result.stderr


def test_a_record_that_cannot_be_read_is_told(published: Settings) -> None:
    send(published, published.fleet_topic, b"odd/", b"{")
    result = run(published, "status")
    assert result.returncode == 0
    assert b"cannot be read" in result.stderr


def test_an_empty_fleet_is_said_to_be_empty(settings: Settings) -> None:
    declare_topics(settings)
    result = run(settings, "status")
    assert (result.returncode, result.stdout) == (0, b"")
    assert b"no clusters are published" in result.stderr


def test_a_watch_shows_what_comes_and_goes(published: Settings) -> None:
    with started(published, "status", "lab", "--watch", "-o", "json") as process:
        assert process.stdout is not None

        def event() -> tuple[str, int]:
            found = json.loads(process.stdout.readline())  # type: ignore[union-attr] # as above
            return found["type"], found["object"]["pods"]

        assert event() == ("ADDED", 5)
        send(published, published.fleet_topic, b"lab/", level("lab", pods=6))
        assert event() == ("MODIFIED", 6)
        send(published, published.fleet_topic, b"lab/", None)
        assert event() == ("DELETED", 6)


def test_policies_are_shown_with_what_they_hold(published: Settings, tmp_path: Path) -> None:
    file = tmp_path / "night.yaml"
    file.write_text("name: night\nwhy: test\nobserve: true\n")
    assert run(published, "policy", "apply", str(file)).returncode == 0
    held = {"by": "policy/night", "evictions": 4, "oldestAt": "2026-11-21T02:16:04.000000Z", "clauses": {"observe": 4}}
    counts = COUNTS | {"held": 4, "heldBy": [held]}
    send(published, published.fleet_topic, b"lab/", level("lab", evictions=counts))
    (night,) = items(published, "--policies")
    assert (night["name"], night["held"], night["clusters"]) == ("night", 4, 1)
    assert (night["waitsFor"], night["does"]) == ({"observe": 4}, "observe")
    table = run(published, "status", "--policies").stdout.splitlines()
    assert table[0].split()[:2] == [b"POLICY", b"HELD"]
    assert b"name: night" in run(published, "status", "--policies", "-o", "yaml").stdout
    with started(published, "status", "--policies", "--watch", "-o", "json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["object"]["held"] == 4
        send(published, published.fleet_topic, b"lab/", level("lab", evictions=counts | {"heldBy": []}))
        assert json.loads(process.stdout.readline())["object"].get("held", 0) == 0


@pytest.mark.parametrize("kind", [pytest.param("brake", marks=pytest.mark.kit), "policy"])
def test_a_brake_or_policy_that_cannot_be_read_is_named(published: Settings, kind: str) -> None:
    topic, gate = {"brake": (published.brakes_topic, "brakes"), "policy": (published.policies_topic, "policies")}[kind]
    assert all("unreadable" not in one for one in items(published))
    send(published, topic, b"odd", b"{")
    told = f"evictstream: nothing is evicted: {kind} 'odd' cannot be read".encode()
    shown = run(published, "status")
    assert told in shown.stderr
    assert [line.split()[9:-2] for line in shown.stdout.splitlines()[1:]] == [
        [gate.encode(), b"2"],
        *[[gate.encode()]] * 2,
    ]
    for one in (*items(published), *items(published, "lab")):
        (found,) = one["unreadable"].items()
        assert (found[0], found[1].startswith(f"{kind} 'odd' cannot be read")) == (gate, True)
    assert told in run(published, "status", "--policies").stderr
