"""Fixtures of the failures in docs/guarantees.md: declared topics, a feed, readers and worker processes of one test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.harness.feed import Feed
from tests.harness.fleet_feed import FleetFeed
from tests.harness.reading import TopicReader
from tests.harness.workers import WORKER, WorkerProcess

StartWorker = Callable[..., WorkerProcess]
OpenReader = Callable[[str], TopicReader]

QUICK = {
    # As short as the broker allows, for what waits for its end.
    "session_timeout_seconds": 6.0,
    "lease_margin_seconds": 2.0,
    # No executor answers in these tests: without this, a slow run would see repeats and take them for doubles.
    "result_silence_seconds": 600.0,
}


def own_settings(servers: str, **more: object) -> Settings:
    """Settings of a quick service on brokers that nobody else uses, its topics declared."""
    names = {"bootstrap_servers": servers, "topic_prefix": "own.", "application_id": "own", "partitions": 2}
    settings = Settings.model_validate({**names, **QUICK, **more})
    declare_topics(settings).raise_if_breaking()
    return settings


@pytest.fixture
def service(make_settings: MakeSettings) -> Settings:
    """Settings of a quick service with its topics declared."""
    settings = make_settings(**QUICK)
    declare_topics(settings).raise_if_breaking()
    return settings


@pytest.fixture
def feed(service: Settings) -> Iterator[Feed]:
    with Feed(service) as opened:
        yield opened


@pytest.fixture
def fleet(service: Settings) -> Iterator[FleetFeed]:
    with FleetFeed(service) as opened:
        yield opened


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[StartWorker]:
    with ExitStack() as stack:
        yield lambda settings, name="worker", program=WORKER: stack.enter_context(
            WorkerProcess(settings, tmp_path, name, program)
        )


@pytest.fixture
def reader(service: Settings) -> Iterator[OpenReader]:
    with ExitStack() as stack:

        def opened(topic: str) -> TopicReader:
            found = TopicReader(service, topic)
            stack.callback(found.close)
            return found

        yield opened
