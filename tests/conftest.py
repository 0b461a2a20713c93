"""A real Kafka for all tests, and settings that keep them apart.

`kafka` is one broker for the whole run, in however many processes the tests run. `settings` and `make_settings` give
each test topics and a group of its own on it. `own_broker` is a broker that a test may kill or freeze. A test that uses
one of these fixtures gets the marker `kafka` here; a test that starts a broker itself carries it in its file.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any

os.environ["HYPOTHESIS_NO_PLUGINS"] = "1"  # that of Trio, which comes with Selenium, takes 0.3 s in each process
import hypothesis
import pytest
from _pytest.runner import runtestprotocol

from evictstream.streams.broker.container import IMAGE, engine_answers
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.jars import kafka_version
from evictstream.streams.broker.kafka_node import KafkaNode
from evictstream.streams.broker.locate import Broker
from evictstream.streams.kafka_reach import REACH, Reach
from evictstream.streams.settings import Settings
from tests.harness.formatted_folders import format_or_copy
from tests.harness.kafka_classes import FIRST_COMPILER, VARIABLE, use_kafka_classes
from tests.harness.shared_kafka import shared_kafka

NEED_KAFKA = {"kafka", "settings", "make_settings", "own_broker"}

os.environ.setdefault(VARIABLE, FIRST_COMPILER)

# Read once, before any test: tests run without variables of ours.
SERVERS = os.environ.get("EVICTSTREAM_BOOTSTRAP_SERVERS") or os.environ.get("KAFKA_BOOTSTRAP_SERVERS") or None

# `TRANSACTION_VERSION=1 make test` runs all on brokers without KIP-890, as Kafka before 4.0 is.
if "TRANSACTION_VERSION" in os.environ:
    EmbeddedBroker.usual_features = {"transaction.version": int(os.environ["TRANSACTION_VERSION"])}

START = KafkaNode.start
setattr(KafkaNode, "_format", format_or_copy)  # noqa: B010 - as below

# How fast examples are drawn says how busy the machine is, and no more.
hypothesis.settings.register_profile(
    "usual", hypothesis.settings(), deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("usual")
# `make test` draws half of all examples, `make quick` a fifth; see tests/harness/examples.py for given numbers.
hypothesis.settings.register_profile("half", max_examples=50)
hypothesis.settings.register_profile("quick", max_examples=20)
# Mutations have to be noticed, not explained: to shrink a failing life of a cluster takes five minutes.
hypothesis.settings.register_profile("mutations", phases=set(hypothesis.Phase) - {hypothesis.Phase.shrink})

MakeSettings = Callable[..., Settings]


def pytest_report_header() -> str:
    if SERVERS is not None:
        return f"kafka: the one at {SERVERS}"
    if not _kafka_is_embedded():
        return f"kafka: container {IMAGE}, else embedded {kafka_version()}"
    return f"kafka: embedded {kafka_version()}"


@functools.cache
def _kafka_is_embedded() -> bool:
    return SERVERS is None and not engine_answers()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than cores (`make quick`): some tests wait for a time limit, or for what they have started."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """Hand out long tests one by one and short ones by file."""
    from tests.harness.scheduling import Scheduling  # noqa: PLC0415 - only where several processes are asked for

    return Scheduling(config, log)


# First, because -m selects by markers in a hook of this name.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function) and NEED_KAFKA.intersection(item.fixturenames):
            item.add_marker(pytest.mark.kafka)
    if "PYTEST_XDIST_WORKER" in os.environ:
        from tests.harness.scheduling import in_order  # noqa: PLC0415 - as above

        in_order(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Where several processes run tests, report of each what is news: two reports of three say that nothing failed."""
    if "PYTEST_XDIST_WORKER" not in os.environ or item.config.option.durations is not None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of collected tests stay until the end: the garbage collector passes over them from here on."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# A hook, since fixtures for each of thousands of tests would cost as much as the tests.
@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Nothing of the shell or of earlier tests changes what a test sees; only a test with the marker has a Kafka."""
    for name in list(os.environ):
        if name.upper().startswith("EVICTSTREAM_") or name == "KAFKA_BOOTSTRAP_SERVERS":
            del os.environ[name]
    # A thread that an earlier test has left behind may still speak, to a capture that is closed.
    root = logging.getLogger()
    for handler in root.handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream.closed:
            root.removeHandler(handler)
            root.addHandler(logging.NullHandler())
            break
    # What earlier tests of this process have found out about their brokers.
    vars(REACH).update(vars(Reach()))
    needs_kafka = item.get_closest_marker("kafka") is not None
    setattr(KafkaNode, "start", START if needs_kafka else _refuse)  # noqa: B010 - a method, to a checker of types
    if needs_kafka and _kafka_is_embedded():
        use_kafka_classes()


def _refuse(_: KafkaNode) -> None:
    """A test that starts a broker without the marker fails, so `make quick` stays without one."""
    pytest.fail("this test starts a Kafka: mark it with `kafka`")


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
