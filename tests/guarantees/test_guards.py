"""A guard on a real Kafka: an empty-selector storm, as kubernetes#141422 is, through the death of workers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import Seen, commands
from tests.streams.cli.running import run

NODES = 8
SCHEDULED = {f"stays-{number}" for number in range(NODES)}
AT_ONCE = {f"goes-{number}" for number in range(NODES)}
STAY_SECONDS = 4
PATIENCE_SECONDS = 30.0
POLICY = "name: large\nwhy: test\nguard: {moreThan: {count: 3, share: 50%}, within: 10m}\nspread: 2s\n"


def _evicts(seen: list[Seen]) -> set[str]:
    return set(commands(seen, "Evict"))


def _fill(feed: Feed) -> None:
    for number in range(NODES + 1):
        feed.node(f"n{number}")
        feed.pod(f"n{number}", f"goes-{number}")
        feed.pod(f"n{number}", f"stays-{number}", tolerates(STAY_SECONDS))
    feed.flush()


def _storm(feed: Feed, *taints: dict[str, object]) -> None:
    for number in range(NODES):
        feed.node(f"n{number}", *taints)
    feed.flush()


def _incidents(service: Settings) -> list[dict[str, Any]]:
    result = run(service, "incidents", "list", "-o", "json")
    assert result.returncode == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)["items"]
    return found


def _wait(what: str, condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until, f"not seen: {what}"
        time.sleep(0.1)


def _apply(service: Settings, folder: Path) -> None:
    file = folder / "large.yaml"
    file.write_text(POLICY)
    assert run(service, "policy", "apply", str(file)).returncode == 0


def test_a_storm_waits_for_a_person_through_two_takeovers(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader, tmp_path: Path
) -> None:
    _apply(service, tmp_path)
    first = start_worker(service, "first").wait_ready()
    read = reader(service.commands_topic)
    _fill(feed)
    _storm(feed, taint())
    _wait("an incident", lambda: len(_incidents(service)) == 1)
    assert _evicts(read.quiet(STAY_SECONDS + 2.0)) == set(), "the scheduled ones were due a second before"
    (incident,) = _incidents(service)
    assert (incident["state"], incident["allowed"], incident["nodes"]) == ("Waiting", 3, NODES)

    first.kill()
    second = start_worker(service, "second").wait_ready()
    feed.node(f"n{NODES}", taint("other"))
    feed.flush()
    read.wait_for(lambda seen: f"goes-{NODES}" in _evicts(seen), "a fault of another key")
    assert _evicts(read.quiet(2.0)) <= {f"goes-{NODES}", f"stays-{NODES}"}
    assert [one["id"] for one in _incidents(service)] == [incident["id"]]

    assert run(service, "incidents", "approve", incident["id"], "--why", "test").returncode == 0
    second.kill()
    third = start_worker(service, "third").wait_ready()
    read.wait_for(lambda seen: _evicts(seen) >= SCHEDULED | AT_ONCE, "all evictions")
    _wait("that it is approved", lambda: [one["state"] for one in _incidents(service)] == ["Approved"])
    assert third.stop() == 0


@pytest.mark.kit
def test_a_rejected_incident_ends_with_its_taints_and_releases_nothing(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader, tmp_path: Path
) -> None:
    _apply(service, tmp_path)
    first = start_worker(service, "first").wait_ready()
    read = reader(service.commands_topic)
    _fill(feed)
    _storm(feed, taint())
    _wait("an incident", lambda: len(_incidents(service)) == 1)
    (incident,) = _incidents(service)
    assert run(service, "incidents", "reject", incident["id"], "--why", "test").returncode == 0
    first.kill()
    start_worker(service, "second").wait_ready()
    assert _evicts(read.quiet(STAY_SECONDS + 1.0)) == set()
    _storm(feed)
    _wait("its end", lambda: _incidents(service) == [])
    seen = read.quiet(2.0)
    assert (_evicts(seen), set(commands(seen, "Cancel"))) == (set(), SCHEDULED)
