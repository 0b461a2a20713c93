"""At a first installation all programs start at once: what needs topics waits for the one that creates them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.admin import Difference, TopicsReport, check_topics, declare_topics
from evictstream.streams.broker.first_contact import KafkaFacts
from evictstream.streams.broker.missing_topics import MissingTopics, wait_for_topics
from evictstream.streams.broker.topic_specs import topic_specs
from evictstream.streams.errors import TopicsDifferError
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.harness.product_process import ProductProcess
from tests.streams.cli.running import wait_until

SERVICES = {
    "worker": (("worker",), "partitions taken over"),
    "feed": (("feed", "--cluster", "lab"), "feed started"),
    "executor": (("execute", "--cluster", "lab", "--mode", "delete"), "health endpoint started"),
}
"""How each is started, and what it logs once it has begun."""


def missing(topic: str) -> Difference:
    return Difference(topic=topic, what="topic", expected="present", actual="missing", severity="breaks")


def other(what: str, severity: str = "breaks") -> Difference:
    return Difference(topic="pods", what=what, expected="8", actual="4", severity=severity)  # type: ignore[arg-type]


def report(*differences: Difference) -> TopicsReport:
    return TopicsReport(
        bootstrap_servers="kafka:9092",
        topics=("nodes", "pods"),
        created=(),
        differences=differences,
        kafka=KafkaFacts("id", "4.1", 1),
    )


@pytest.mark.parametrize(
    ("found", "waits"),
    [
        pytest.param((), False, id="all is there"),
        pytest.param((missing("nodes"),), True, id="one is missing"),
        pytest.param((missing("nodes"), other("retention.ms", "weakens")), True, id="and another is less safe"),
        pytest.param((missing("nodes"), other("partitions")), False, id="and another does not fit"),
        pytest.param((other("partitions"),), False, id="one does not fit"),
    ],
)
def test_only_what_is_missing_is_waited_for(*, found: tuple[Difference, ...], waits: bool) -> None:
    assert MissingTopics(Settings()).may_come(report(*found)) is waits


def test_partitions_count_where_they_matter() -> None:
    found = report(missing("nodes"), other("partitions"))
    assert MissingTopics(Settings(), but="partitions").may_come(found)
    assert not MissingTopics(Settings(), but="partitions", whole=["pods"]).may_come(found)


def test_one_line_is_logged_and_the_wait_ends() -> None:
    now = 100.0
    waiting = MissingTopics(Settings(topics_wait_seconds=10.0), now=lambda: now)
    with structlog.testing.capture_logs() as told:
        while waiting.may_come(report(missing("nodes"), missing("pods"))):
            now += 1
    assert now == 110.0
    assert told == [
        {
            "event": "waiting for topics",
            "log_level": "warning",
            "missing": ["nodes", "pods"],
            "wait_seconds": 10.0,
            "next_step": "`evictstream topics declare` creates missing topics",
        }
    ]


def test_without_a_wait_nothing_is_waited_for() -> None:
    assert not MissingTopics(Settings(topics_wait_seconds=0)).may_come(report(missing("nodes")))


@pytest.mark.kafka
class TestOnKafka:
    @pytest.fixture
    def kubeconfig(self, tmp_path: Path) -> Iterator[Path]:
        with FakeApi() as api:
            file = tmp_path / "kubeconfig"
            file.write_text(api.kubeconfig())
            yield file

    @pytest.mark.parametrize("name", SERVICES)
    def test_a_service_starts_once_its_topics_are_declared(
        self, name: str, make_settings: MakeSettings, kubeconfig: Path, tmp_path: Path
    ) -> None:
        settings = make_settings(log_format="json")
        arguments, begun = SERVICES[name]
        if name != "worker":
            arguments = (*arguments, "--kubeconfig", str(kubeconfig))
        log = tmp_path / "log"
        with ProductProcess(settings, *arguments, log=log):
            wait_until(lambda: "waiting for topics" in log.read_text())
            assert begun not in log.read_text()
            declare_topics(settings)
            wait_until(lambda: begun in log.read_text())
        assert log.read_text().count("waiting for topics") == 1
        assert "critical" not in log.read_text()

    def test_time_is_up_with_the_error_of_missing_topics(self, make_settings: MakeSettings) -> None:
        settings = make_settings(topics_wait_seconds=1.5)
        specs = topic_specs(settings)
        began = time.monotonic()
        with pytest.raises(TopicsDifferError, match="nodes is missing"):
            wait_for_topics(settings, specs, check_topics(settings, specs), is_stopped=lambda: False)
        assert time.monotonic() - began >= 1

    def test_a_stop_ends_the_wait_without_an_error(self, settings: Settings) -> None:
        looks, specs = iter([False, True]), topic_specs(settings)
        first = check_topics(settings, specs)
        assert wait_for_topics(settings, specs, first, is_stopped=lambda: next(looks)) is None
