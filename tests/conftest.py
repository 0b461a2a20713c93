"""A real Kafka for all tests, and settings that keep them apart.

`kafka` is one broker for the whole run, in however many processes the tests run. `settings` and `make_settings` give
each test topics and a group of its own on it. `own_broker` is a broker that a test may kill or freeze. A test that uses
one of these fixtures gets the marker `kafka` here; a test that starts a broker itself carries it in its file.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator

import pytest

from evictstream.streams.broker.container import IMAGE, engine_answers
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.jars import kafka_version
from evictstream.streams.broker.locate import Broker
from evictstream.streams.settings import Settings
from tests.harness.shared_kafka import shared_kafka

NEED_KAFKA = {"kafka", "settings", "make_settings", "own_broker"}

# Brokers live for seconds here: without the second compiler each takes 4 s of processor time to start instead of 6.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")

# Read once, before any test: tests run without variables of ours.
SERVERS = os.environ.get("EVICTSTREAM_BOOTSTRAP_SERVERS") or os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or None

MakeSettings = Callable[..., Settings]


def pytest_report_header() -> str:
    if SERVERS is not None:
        return f"kafka: the one at {SERVERS}"
    if engine_answers():
        return f"kafka: container {IMAGE}, else embedded {kafka_version()}"
    return f"kafka: embedded {kafka_version()}"


# First: pytest-xdist appends the groups of tests to their names, and -m selects by markers, in hooks of this name.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and NEED_KAFKA.intersection(item.fixturenames):
            item.add_marker(pytest.mark.kafka)
    if "PYTEST_XDIST_WORKER" in os.environ:
        # The long tests first, so that no process is left with one at the end while the others have nothing to do.
        items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in ("slow", "kafka")])


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody's variables change what a test sees."""
    for name in os.environ:
        if name.upper().startswith("EVICTSTREAM_") or name == "KAFKA_BOOTSTRAP_SERVERS":
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for the whole run; pytest-xdist gives each of its processes a folder beside the others'."""
    own = tmp_path_factory.getbasetemp()
    with shared_kafka(SERVERS, own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as broker:
        yield broker


@pytest.fixture
def make_settings(kafka: Broker) -> MakeSettings:
    """Make settings on the run's broker; all that one test makes share topics and group, unless it says otherwise."""
    mine = f"t{uuid.uuid4().hex[:10]}"

    def make(**overrides: object) -> Settings:
        values: dict[str, object] = {
            "bootstrap_servers": kafka.bootstrap_servers,
            "topic_prefix": f"{mine}.",
            "application_id": mine,
            "partitions": 2,
        }
        return Settings.model_validate(values | overrides)

    return make


@pytest.fixture
def settings(make_settings: MakeSettings) -> Settings:
    """Settings with topics and a group of this test's own; nothing is declared yet."""
    return make_settings()


@pytest.fixture
def own_broker() -> Iterator[EmbeddedBroker]:
    """A started broker of this test's own, to kill, pause and restart."""
    with EmbeddedBroker() as broker:
        yield broker
