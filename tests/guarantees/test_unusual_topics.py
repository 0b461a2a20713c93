"""Topics that somebody has set otherwise than `topics declare` would: what need not break does not."""

from __future__ import annotations

from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import commands
from tests.harness.topics import alter_topics

SMALL_BYTES = 64 * 1024
PODS = 400
"""Their decisions take some 300 bytes each: twice what a small batch may have."""


def test_each_way_to_compress_is_read(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """A feed, a topic or a broker may compress. Inputs, state and messages are read all the same."""
    codecs = {
        service.nodes_topic: "lz4",
        service.pods_topic: "snappy",
        service.changelog_topic: "zstd",
        service.commands_topic: "zstd",
        service.decisions_topic: "lz4",
        service.dead_letters_topic: "snappy",
    }
    alter_topics(service, {topic: {"compression.type": codec} for topic, codec in codecs.items()})
    first = start_worker(service, "first").wait_ready()
    feed.node("n0", taint())
    feed.pod("n0", "a", tolerates(300))
    feed.raw(service.pods_topic, b"lab", b"rubbish")
    feed.flush()
    read = reader(service.commands_topic)
    read.wait_for(lambda seen: "a" in commands(seen, "Schedule"), "the schedule")
    reader(service.decisions_topic).wait_for(bool, "a decision")
    reader(service.dead_letters_topic).wait_for(bool, "the dead letter")
    assert first.stop() == 0
    second = start_worker(service, "second").wait_ready()
    feed.node("n0")
    feed.flush()
    read.wait_for(lambda seen: "a" in commands(seen, "Cancel"), "that the state was read")
    assert second.stop() == 0


def test_batches_are_no_larger_than_the_smallest_topic_takes(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """The broker's limit is one of batches, and the same input would make the same again."""
    outputs = (service.decisions_topic, service.commands_topic, service.changelog_topic)
    alter_topics(service, {topic: {"max.message.bytes": str(SMALL_BYTES)} for topic in outputs})
    for number in range(PODS):
        feed.pod("n0", f"p{number}", tolerates(300))
    feed.node("n0", taint())
    feed.flush()
    worker = start_worker(service).wait_ready()
    read = reader(service.commands_topic)
    read.wait_for(lambda seen: len(commands(seen, "Schedule")) == PODS, "all schedules")
    assert worker.stop() == 0
