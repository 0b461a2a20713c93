"""A hold in outages of zones on a real Kafka: through the death of a worker, until the zone has recovered."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from evictstream.models.instants import SECOND_US, instant_us
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import Seen, commands
from tests.streams.cli.running import run

UNREACHABLE = "node.kubernetes.io/unreachable"
LABELS = {"topology.kubernetes.io/zone": "z-a"}
SPREAD = 4


def evicted(seen: list[Seen]) -> dict[str, int]:
    """Give when each pod was evicted; each once."""
    found = commands(seen, "Evict")
    assert all(len(attempts) == 1 for attempts in found.values())
    return {pod: instant_us(one.value["issuedAt"]) for pod, (one,) in found.items()}


@pytest.mark.parametrize("recovers", ["while a worker runs", pytest.param("while none runs", marks=pytest.mark.kit)])
def test_a_dark_zone_stays_held_after_a_worker_is_killed(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader, tmp_path: Path, recovers: str
) -> None:
    file = tmp_path / "dark.yaml"
    hold = f"{{while: {{zone: {{unhealthy: 60%}}}}, spread: {SPREAD}s, atMost: 1h}}"
    file.write_text(f"name: dark\nwhy: test\nhold: {hold}\n")
    assert run(service, "policy", "apply", str(file)).returncode == 0
    first = start_worker(service, "first").wait_ready()
    read = reader(service.commands_topic)
    nodes = [f"n{number}" for number in range(5)]
    for node in nodes:
        feed.node(node, labels=LABELS)
        feed.pod(node, f"p-{node}", tolerates(1, key=UNREACHABLE))
    feed.node("far", labels={"topology.kubernetes.io/zone": "z-b"})
    feed.pod("far", "p-far", tolerates(1, key=UNREACHABLE))
    for node in nodes[:4]:
        feed.node(node, taint(UNREACHABLE), ready="Unknown", labels=LABELS)
    feed.node("far", taint(UNREACHABLE), ready="Unknown", labels={"topology.kubernetes.io/zone": "z-b"})
    read.wait_for(lambda seen: set(evicted(seen)) == {"p-far"}, "the pod of the other zone")
    assert set(evicted(read.quiet(2.0))) == {"p-far"}, "their deadline was a second after the taint"

    feed.node(nodes[0], event_type="DELETED", labels=LABELS)  # three of four are left, with it four of five
    feed.flush()
    first.kill()
    if recovers == "while a worker runs":
        start_worker(service, "second").wait_ready()
        assert set(evicted(read.quiet(2.0))) == {"p-far"}
    for node in nodes[1:3]:
        feed.node(node, labels=LABELS)
    feed.flush()
    told = reader(service.nodes_topic).wait_for(lambda seen: len(seen) == 14, "all changes of nodes")
    recovered_us = round(max(one.appended_at for one in told) * SECOND_US)
    if recovers == "while none runs":
        start_worker(service, "second").wait_ready()
    seen = read.wait_for(lambda seen: set(evicted(seen)) == {"p-far", "p-n3"}, "what is still owed")
    share_us = zlib.crc32(b"pod-p-n3") * SPREAD * SECOND_US // 2**32
    assert evicted(seen)["p-n3"] >= recovered_us + share_us
    assert set(evicted(read.quiet(1.0))) == {"p-far", "p-n3"}


def test_no_more_are_in_flight_after_a_worker_is_killed(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader, tmp_path: Path
) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("name: two\nwhy: test\nlimit: {atMost: {count: 2}}\n")
    assert run(service, "policy", "apply", str(file)).returncode == 0
    worker = start_worker(service, "first").wait_ready()
    read = reader(service.commands_topic)
    pods = [f"p{number}" for number in range(5)]
    feed.node("n", labels=LABELS)
    for pod in pods:
        feed.pod("n", pod, tolerates(1))
    feed.node("n", taint(), labels=LABELS)
    gone: set[str] = set()
    for number in range(3):
        seen = read.wait_for(lambda seen: len(set(evicted(seen)) - gone) == min(2, len(pods) - len(gone)), "two")
        assert set(evicted(read.quiet(1.0))) == set(evicted(seen))
        one = min(set(evicted(seen)) - gone)
        worker.kill()
        feed.pod("n", one, tolerates(1), deletionTimestamp="2026-11-21T12:00:00Z", event_type="MODIFIED")
        feed.flush()
        worker = start_worker(service, f"after {number}").wait_ready()
        assert set(evicted(read.quiet(1.0))) == set(evicted(seen)), "it is terminating, and not gone"
        feed.pod("n", one, event_type="DELETED")
        feed.flush()
        gone.add(one)
    read.wait_for(lambda seen: set(evicted(seen)) == set(pods), "all, two at a time")
