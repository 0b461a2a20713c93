"""Each metric is defined once: a program exposes it so, and the program's page lists it so."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import NamedTuple, cast

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from evictstream.streams.executor.executor_health import ExecutorHealth
from evictstream.streams.executor.metric_definitions import ExecutorMetric
from evictstream.streams.feed.feed_health import FeedHealth
from evictstream.streams.feed.metric_definitions import FeedMetric
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.health.definitions import BUILD_INFO, MetricDefinition
from evictstream.streams.health.endpoint import OPEN_METRICS
from evictstream.streams.worker.metric_definitions import WorkerMetric
from tests.deploy.pages import page, section
from tests.streams.worker.story import Story


class Program(NamedTuple):
    """Its definitions, the metrics that it makes, and what its page lists."""

    defined: list[MetricDefinition]
    metrics: Collector
    entries: str


def _defined(program: type) -> list[MetricDefinition]:
    return [each for each in vars(program).values() if isinstance(each, MetricDefinition)]


PROGRAMS = {
    "worker": Program(
        [*_defined(WorkerMetric), BUILD_INFO], Story().metrics(), section(page("operations.md"), "Metrics")
    ),
    "feed": Program(
        _defined(FeedMetric),
        FeedHealth((), cast("Publisher", SimpleNamespace(in_flight=0))),
        section(page("feed.md"), "Health and metrics"),
    ),
    "executor": Program(_defined(ExecutorMetric), ExecutorHealth(), section(page("executor.md"), "Health and metrics")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_exposes_what_is_defined_for_openmetrics_too(name: str) -> None:
    program = PROGRAMS[name]
    registry = CollectorRegistry()
    registry.register(program.metrics)
    encode, _ = choose_encoder(OPEN_METRICS)
    families = text_string_to_metric_families(encode(registry).decode())  # type: ignore[no-untyped-call]
    exposed = {(f"{family.name}_total" if family.type == "counter" else family.name) for family in families}
    assert exposed == {each.name for each in [*program.defined, BUILD_INFO]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_metric_stands_on_the_page_and_no_other(name: str) -> None:
    program = PROGRAMS[name]
    entries = re.findall(r"^- `((?:evictstream|taint)[^`]+)`(?: \(\w+\))?: ", program.entries, re.MULTILINE)
    assert sorted(entries) == sorted(
        each.name + (f"{{{','.join(each.labels)}}}" if each.labels else "") for each in program.defined
    )


def test_metrics_have_names_of_their_own_and_a_sentence() -> None:
    defined = [each for program in PROGRAMS.values() for each in program.defined]
    assert len({each.name for each in defined}) == len(defined)
    assert all(each.meaning[0].isupper() or each.meaning[0].isdigit() for each in defined)
    assert all(each.meaning.endswith(".") for each in defined)
