"""The changelog forgets what is over: rows of finished evictions are deleted, and compaction removes them."""

from __future__ import annotations

import time

import pytest
from kafka import KafkaConsumer, TopicPartition

from evictstream.models.eviction import RowError, RowKind, split_row_key
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.guarantees.conftest import QUICK, OpenReader, StartWorker
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import commands

PODS = 50
SECOND_IN_MINUTES = 1 / 60
SECOND_IN_HOURS = 1 / 3600
CLEANED_SECONDS = 150.0  # the cleaner looks every 15 s, and a tombstone goes one round after what it deletes


@pytest.fixture
def service(make_settings: MakeSettings) -> Settings:
    """As configured by default, but for the waits: a segment, a tombstone and a memory each last a second or two."""
    settings = make_settings(
        **QUICK,
        partitions=1,
        remember_deleted_seconds=2.0,
        changelog_segment_minutes=SECOND_IN_MINUTES,
        changelog_delete_retention_hours=SECOND_IN_HOURS,
    )
    declare_topics(settings).raise_if_breaking()
    return settings


def row_kinds(settings: Settings) -> list[RowKind]:
    """Read the changelog as it is stored, tombstones included; the kind of each row of a node or pod."""
    place = TopicPartition(settings.changelog_topic, 0)
    consumer = KafkaConsumer(bootstrap_servers=settings.bootstrap_servers, group_id=None, enable_auto_commit=False)
    consumer.assign([place])
    consumer.seek_to_beginning()
    end = consumer.end_offsets([place])[place]
    kinds: list[RowKind] = []
    while consumer.position(place) < end:
        for records in consumer.poll(timeout_ms=500).values():
            for record in records:
                try:
                    kinds.append(split_row_key(record.key)[0])
                except RowError:
                    continue  # positions and what is known of a cluster
    consumer.close()
    return kinds


@pytest.mark.slow
def test_rows_of_finished_evictions_leave_the_changelog(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    worker = start_worker(service).wait_ready()
    read = reader(service.commands_topic)
    feed.node("n0", taint())
    for number in range(PODS):
        feed.pod("n0", f"p{number}", tolerates(1))
    feed.flush()
    seen = read.wait_for(lambda seen: len(commands(seen, "Evict")) == PODS, "all evictions")
    for found in commands(seen, "Evict").values():
        feed.result(found[0].value, "Succeeded")
    for number in range(PODS):
        feed.pod("n0", f"p{number}", tolerates(1), event_type="DELETED")
    feed.flush()
    until = time.monotonic() + CLEANED_SECONDS
    kinds = row_kinds(service)
    assert len(kinds) > PODS
    while set(kinds) != {RowKind.NODE}:
        assert time.monotonic() < until, f"still there: {len(kinds)} rows of kinds {sorted(set(kinds))}"
        feed.heartbeat()  # something has to be written, or the last segment is never closed
        time.sleep(1)  # the broker's cleaner works by its own clock
        kinds = row_kinds(service)
    assert len(kinds) < PODS, "the node's own row, some times at most"
    assert worker.stop() == 0
