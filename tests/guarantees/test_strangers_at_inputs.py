"""Failures in docs/guarantees.md: somebody who may write an input and means no good, or knows no better."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from evictstream.streams.errors import ExitCode
from evictstream.streams.settings import Settings
from tests.guarantees.conftest import OpenReader, StartWorker
from tests.harness.feed import Feed, taint
from tests.harness.reading import Seen, commands

MEBIBYTE = 1 << 20
GIANT = 400 * MEBIBYTE
"""Of zeros are 13 KB of zstd."""

MOST_MEMORY = 350 * MEBIBYTE
"""Less than the compose file gives a worker, and less than one giant."""

PATIENCE_SECONDS = 60.0


@contextlib.contextmanager
def stranger(settings: Settings, **more: object) -> Iterator[Any]:
    producer = KafkaProducer(
        bootstrap_servers=settings.bootstrap_servers, acks="all", max_request_size=1 << 30, linger_ms=200, **more
    )
    try:
        yield producer
    finally:
        producer.close(timeout=0)


def reasons(seen: list[Seen]) -> list[str]:
    return sorted(letter.headers["reason"].decode() for letter in seen)


@pytest.mark.slow
def test_batches_that_explode_are_dead_letters_and_cost_nobody(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    feed.node("n0")
    feed.pod("n0", "a")
    feed.flush()
    worker = start_worker(service).wait_ready()
    with stranger(service, compression_type="zstd", batch_size=1 << 30) as out:
        for topic in service.input_topics:
            out.send(topic, bytes(GIANT), key=b"lab").get(PATIENCE_SECONDS)
        for _ in range(30):  # a batch of many large ones
            out.send(service.results_topic, bytes(4 * MEBIBYTE), key=b"lab")
        out.flush(PATIENCE_SECONDS)
        for _ in range(50):  # many batches, each of which is no larger than it may be
            out.send(service.results_topic, bytes(7 * MEBIBYTE), key=b"lab").get(PATIENCE_SECONDS)
    feed.node("n0", taint())
    feed.flush()
    count = len(service.input_topics) + 30 + 50
    letters = reader(service.dead_letters_topic).wait_for(lambda seen: len(seen) >= count, "all dead letters")
    assert reasons(letters) == ["Oversized"] * count
    assert len({(letter.headers["originTopic"], letter.headers["ce_id"]) for letter in letters}) == count
    reader(service.commands_topic).wait_for(lambda seen: "a" in commands(seen, "Evict"), "the eviction")
    status = Path(f"/proc/{worker.process.pid}/status")
    if status.exists():  # Linux
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        assert int(peak.split()[1]) * 1024 < MOST_MEMORY, peak
    assert worker.stop() == 0


def test_an_open_transaction_on_an_input_holds_up_nobody(
    service: Settings, feed: Feed, start_worker: StartWorker, reader: OpenReader
) -> None:
    """Its records are dead letters, whether it commits or not; a takeover goes on behind it."""
    feed.node("n0")
    feed.pod("n0", "a")
    feed.pod("n0", "b")
    feed.flush()
    first = start_worker(service, "first").wait_ready()
    letters, read = reader(service.dead_letters_topic), reader(service.commands_topic)
    with stranger(service, transactional_id=f"{service.application_id}-stranger") as out:
        out.init_transactions()
        out.begin_transaction()
        for topic in service.input_topics:
            for number in range(service.partitions):
                out.send(topic, b"{}", key=b"lab", partition=number).get(PATIENCE_SECONDS)
        feed.node("n0", taint())
        feed.flush()
        read.wait_for(lambda seen: {"a", "b"} <= commands(seen, "Evict").keys(), "the evictions")
        count = len(service.input_topics) * service.partitions
        letters.wait_for(lambda seen: len(seen) >= count, "all dead letters")
        first.kill()
        second = start_worker(service, "second").wait_ready()
        feed.pod("n0", "c")
        feed.flush()
        read.wait_for(lambda seen: "c" in commands(seen, "Evict"), "an eviction after the takeover")
        out.abort_transaction()
    assert reasons(letters.to_end()) == ["Transactional"] * count
    assert all(len(found) == 1 for found in commands(read.to_end(), "Evict").values())
    assert second.stop() == 0


def test_a_changelog_with_what_is_no_row_is_refused(service: Settings, feed: Feed, start_worker: StartWorker) -> None:
    """It is ours alone, so somebody has written there who must not: no row may be taken for lost."""
    with stranger(service, compression_type="zstd") as out:
        out.send(service.changelog_topic, bytes(GIANT), key=b"row", partition=0).get(PATIENCE_SECONDS)
    worker = start_worker(service)
    assert worker.wait_exit() == ExitCode.FOUND_PROBLEM
