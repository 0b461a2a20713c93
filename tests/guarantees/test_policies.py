"""Policies on a real Kafka: what they hold, through the death of a worker, and what goes when one is deleted."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from evictstream.models.instants import SECOND_US, instant_us
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.endpoint import Probe
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import Seen, commands
from tests.streams.cli.running import run

PODS = ("p0", "p1", "p2")


def _evicts(seen: list[Seen]) -> set[str]:
    return set(commands(seen, "Evict"))


def test_a_policy_holds_through_a_takeover_until_it_is_deleted(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader, tmp_path: Path
) -> None:
    file = tmp_path / "observe.yaml"
    file.write_text(f"name: night\nwhy: test\nfor: {{clusters: [{feed.cluster}]}}\nobserve: true\nspread: 0s\n")
    assert run(service, "policy", "apply", str(file)).returncode == 0
    first = start_worker(service, "first").wait_ready()
    read = reader(service.commands_topic)
    feed.node("n")
    for pod in PODS:
        feed.pod("n", pod, tolerates(1))
    feed.node("n", taint())
    read.wait_for(lambda seen: len(commands(seen, "Schedule")) == len(PODS), "all schedules")
    assert _evicts(read.quiet(2.0)) == set(), "their deadline was a second after the taint"
    first.kill()
    second = start_worker(service, "second").wait_ready()
    assert _evicts(read.quiet(1.0)) == set()

    with open_producer(service, delivery_seconds=30.0) as producer:
        producer.send(service.policies_topic, key=b"odd", value=b"{").get(30)
    Probe(second).wait_for("/readyz", lambda answer: "'odd' cannot be read" in json.dumps(answer.body), 10)
    file.write_text("name: pace\nwhy: test\nlimit: {rate: 1/s}\n")
    assert run(service, "policy", "apply", str(file)).returncode == 0
    assert run(service, "policy", "delete", "night", "--why", "test").returncode == 0
    assert _evicts(read.quiet(1.0)) == set(), "nobody knows what the other record holds"
    assert run(service, "policy", "delete", "odd", "--why", "test").returncode == 0
    seen = read.wait_for(lambda seen: _evicts(seen) == set(PODS), "all evictions")
    assert {len(found) for found in commands(seen, "Evict").values()} == {1}
    issued = sorted(instant_us(one.value["issuedAt"]) for (one,) in commands(seen, "Evict").values())
    assert all(later - before >= SECOND_US for before, later in itertools.pairwise(issued)), "one a second"
    assert second.stop() == 0


def test_a_policy_of_zone_and_owner_holds_over_a_takeover(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.yaml"
    selection = "for: {zones: [z-a], owners: [Job]}\nexcept: {owners: [Job/small-*]}\n"
    file.write_text(f"name: jobs\nwhy: test\n{selection}observe: true\n")
    assert run(service, "policy", "apply", str(file)).returncode == 0
    first = start_worker(service, "first").wait_ready()
    read = reader(service.commands_topic)
    zones = {"here": "z-a", "there": "z-b"}
    owners = {"long": "Job/long-1", "small": "Job/small-1", "web": "ReplicaSet/web", "bare": ""}
    for node, zone in zones.items():
        feed.node(node, labels={"topology.kubernetes.io/zone": zone})
        for pod, owner in owners.items():
            kind, _, name = owner.partition("/")
            references = [{"kind": kind, "name": name, "uid": "o", "controller": True}] if kind else []
            feed.pod(node, f"{pod}-{node}", tolerates(3), ownerReferences=references)
    for node, zone in zones.items():
        feed.node(node, taint(), labels={"topology.kubernetes.io/zone": zone})
    read.wait_for(lambda seen: len(commands(seen, "Schedule")) == len(zones) * len(owners), "all schedules")
    first.kill()
    start_worker(service, "second").wait_ready()
    let_go = {f"{pod}-{node}" for pod in owners for node in zones} - {"long-here"}
    read.wait_for(lambda seen: _evicts(seen) == let_go, "all others")
    assert _evicts(read.quiet(2.0)) == let_go
