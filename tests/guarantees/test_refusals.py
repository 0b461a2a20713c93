"""Failures in docs/guarantees.md in which a worker refuses to start, and says why."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.feed import Feed, taint, tolerates
from tests.harness.reading import commands


def _recreate(settings: Settings, topic: str) -> None:
    """Delete a topic and declare it anew: empty, as somebody's mistake leaves it."""
    client = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    client.delete_topics([topic])
    until = time.monotonic() + 20
    while topic in client.list_topics() and time.monotonic() < until:
        time.sleep(0.1)
    client.close()
    while True:
        try:
            declare_topics(settings)
        except Exception:  # deletion goes on in the background for a moment
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return


def _last_line(text: str) -> str:
    return text.strip().splitlines()[-1]


def _run_a_little(service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader) -> None:
    worker = start_worker(service).wait_ready()
    for n in range(8):
        feed.node(f"n{n}", taint())
        feed.pod(f"n{n}", f"p{n}", tolerates(300))
    feed.flush()
    reader(service.commands_topic).wait_for(lambda seen: len(commands(seen, "Schedule")) == 8, "schedules")
    assert worker.stop() == 0


def test_a_worker_refuses_an_empty_changelog_beside_committed_offsets(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """It refuses to start and says which topic is empty."""
    _run_a_little(service, feed, start_worker, reader)
    _recreate(service, service.changelog_topic)
    worker = start_worker(service)
    assert worker.wait_exit() == 1
    assert service.changelog_topic in _last_line(worker.log_file.read_text())
    assert "is empty although" in _last_line(worker.log_file.read_text())


def test_a_worker_refuses_an_empty_changelog_beside_another_version(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """A change of version never starts empty beside the state of the one before."""
    _run_a_little(service, feed, start_worker, reader)
    newer = service.model_copy(update={"state_version": 3})
    declare_topics(newer).raise_if_breaking()
    worker = start_worker(newer)
    assert worker.wait_exit() == 1
    assert service.changelog_topic in _last_line(worker.log_file.read_text())
    assert newer.changelog_topic in _last_line(worker.log_file.read_text())


def test_a_worker_refuses_an_input_that_was_created_anew(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """A position beyond the end of an input: it refuses to start and says which."""
    _run_a_little(service, feed, start_worker, reader)
    _recreate(service, service.pods_topic)
    worker = start_worker(service)
    assert worker.wait_exit() == 1
    assert f"{service.pods_topic}-" in _last_line(worker.log_file.read_text())
    assert "truncated or recreated" in _last_line(worker.log_file.read_text())


def _wrong_count(settings: Settings, topic: str) -> NewTopic:
    return NewTopic(topic, settings.partitions + 1, 1, topic_configs={"message.timestamp.type": "LogAppendTime"})


def _wrong_policy(settings: Settings, topic: str) -> NewTopic:
    configs = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete"}
    return NewTopic(topic, settings.partitions, 1, topic_configs=configs)


def _wrong_time(settings: Settings, topic: str) -> NewTopic:
    return NewTopic(topic, settings.partitions, 1, topic_configs={"message.timestamp.type": "CreateTime"})


@pytest.mark.parametrize(
    ("name", "make", "word"),
    [
        pytest.param("pods_topic", _wrong_count, "partitions", id="partition counts differ"),
        pytest.param("commands_topic", _wrong_count, "partitions", id="outputs need the same count too"),
        pytest.param("changelog_topic", _wrong_policy, "cleanup.policy", id="wrong cleanup policy"),
        pytest.param("nodes_topic", _wrong_time, "message.timestamp.type", id="input stamped by its producer"),
        pytest.param("results_topic", None, "missing", id="topic missing"),
    ],
)
def test_a_worker_refuses_topics_that_are_missing_or_misconfigured(
    make_settings: MakeSettings,
    start_worker: StartWorker,
    name: str,
    make: Callable[[Settings, str], NewTopic] | None,
    word: str,
) -> None:
    """It refuses to start, says which topic and what, in one line."""
    settings = make_settings(topics_wait_seconds=1.0)  # only what is missing is waited for
    topic = getattr(settings, name)
    client = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    if make is not None:
        client.create_topics([make(settings, topic)])
    others = [spec for spec in topic_specs(settings) if spec.name != topic]
    declare_topics(settings, others)
    client.close()
    worker = start_worker(settings)
    assert worker.wait_exit() == 1
    assert topic in _last_line(worker.log_file.read_text())
    assert word in _last_line(worker.log_file.read_text())


def test_evictions_wait_after_input_has_expired_unread(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """Firing stays closed for each cluster until its gap is accepted; nothing is lost meanwhile."""
    worker = start_worker(service).wait_ready()
    for n in range(8):
        feed.node(f"n{n}", taint())
        feed.pod(f"n{n}", f"p{n}", tolerates(12))
    feed.flush()
    read = reader(service.commands_topic)
    read.wait_for(lambda seen: len(commands(seen, "Schedule")) == 8, "schedules")
    assert worker.stop() == 0
    for n in range(8):
        feed.pod(f"n{n}", f"late{n}", tolerates(300))
    feed.flush()
    _expire(service, service.pods_topic)
    worker = start_worker(service).wait_ready()
    time.sleep(12)  # everything is due by then
    assert not commands(read.quiet(1.0), "Evict"), "fired although input is missing"
    assert worker.events("input expired unread")
    feed.signal("ACCEPT_GAP", topics=(service.nodes_topic,))
    read.wait_for(lambda seen: len(commands(seen, "Evict")) == 8, "the evictions that waited")
    assert worker.stop() == 0


def _expire(settings: Settings, topic: str) -> None:
    """Delete all records of a topic, as retention does."""
    partitions = [TopicPartition(topic, number) for number in range(settings.partitions)]
    consumer = KafkaConsumer(bootstrap_servers=settings.bootstrap_servers)
    ends = consumer.end_offsets(partitions)
    consumer.close()
    client = KafkaAdminClient(bootstrap_servers=settings.bootstrap_servers)
    client.delete_records({partition: ends[partition] for partition in partitions})
    client.close()
