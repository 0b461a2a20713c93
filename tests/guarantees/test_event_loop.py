"""A worker on uvloop does what one on asyncio's own loop does."""

from __future__ import annotations

import pytest

from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.feed import Feed, taint
from tests.harness.reading import commands

pytest.importorskip("uvloop", reason="the extra `uvloop` is not installed")


def test_a_worker_on_uvloop_evicts_and_is_taken_over(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    settings = Settings.model_validate(service.model_dump(exclude_unset=True) | {"event_loop": "uvloop"})
    killed = start_worker(settings, "killed").wait_ready()
    assert [entry["event_loop"] for entry in killed.events("worker starting")] == ["uvloop"]
    feed.node("n0", taint())
    feed.pod("n0", "a")  # tolerates nothing
    feed.flush()
    read = reader(service.commands_topic)
    read.wait_for(lambda seen: "a" in commands(seen, "Evict"), "the eviction")
    killed.kill()
    heir = start_worker(settings, "heir").wait_ready()
    feed.pod("n0", "b")
    feed.flush()
    read.wait_for(lambda seen: "b" in commands(seen, "Evict"), "the eviction after the takeover")
    assert heir.stop() == 0
