"""The files are those that the definitions make, and nothing names a metric or label that does not exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.health.definitions import HistogramMetric
from evictstream.streams.worker.metric_definitions import WorkerMetric
from tests.deploy.monitoring.alerts import ALERTS
from tests.deploy.monitoring.boards import BOARDS
from tests.deploy.monitoring.files import PROMETHEUS_RULE, RULES, texts
from tests.deploy.monitoring.selectors import DEFINED, TARGET_LABELS, buckets, meanings, series
from tests.deploy.pages import ROOT

# Those of the Prometheus client for Python that are asked for, with their labels.
OF_PYTHON = {
    "process_cpu_seconds_total": (),
    "process_max_fds": (),
    "process_open_fds": (),
    "process_resident_memory_bytes": (),
    "process_start_time_seconds": (),
    "python_gc_collections_total": ("generation",),
}
NAME = re.compile(r"\b(?:evictstream|taint_eviction_controller|process|python)_[a-z_]+")


def labels_by_name() -> dict[str, tuple[str, ...]]:
    """Return the labels of all series by their name."""
    found = dict(OF_PYTHON)
    for each in DEFINED:
        if isinstance(each, HistogramMetric):
            found |= {f"{each.name}_{end}": each.labels for end in ("sum", "count")}
            found[f"{each.name}_bucket"] = (*each.labels, "le")
        else:
            found[each.name] = each.labels
    return found


LABELS = labels_by_name()


def queries() -> Iterator[tuple[str, str, str]]:
    """Give all queries with where they are, and what a reader sees of them."""
    for alert in ALERTS:
        yield alert.name, alert.expression, re.sub(r"\$labels\.(\w+)", r"{{\1}}", alert.summary)
    for board in BOARDS.values():
        for row in board.rows.values():
            for panel in row:
                for legend, query in panel.queries.items():
                    yield f"{board.title}: {panel.title}", query, legend


QUERIES = list(queries())


@pytest.mark.parametrize("path", texts())
def test_a_file_is_what_the_definitions_make(path: str) -> None:
    made = texts()[path]
    assert (ROOT / path).read_text(encoding="utf-8") == made, "run `python -m tests.deploy.monitoring`"


def test_queries_name_existing_metrics_and_labels() -> None:
    for where, query, shown in QUERIES:
        names = NAME.findall(query)
        assert names, where
        assert set(names) <= LABELS.keys(), where
        known = {label for name in names for label in LABELS[name]} | set(TARGET_LABELS)
        grouped = [label for by in re.findall(r"\b(?:by|on) \(([^)]*)\)", query) for label in by.split(", ")]
        matched = re.findall(r"[{,]\s*(\w+)(?:=~|!~|!=|=)", query)
        assert {*grouped, *matched} <= known, where
        by = re.search(r"^\w+ by \(([^)]*)\)|^histogram_quantile", query)
        left = set(by[1].split(", ")) if by and by[1] else known
        assert set(re.findall(r"{{\s*(\w+)\s*}}", shown)) <= left, where


def test_each_metric_is_shown_or_alerts() -> None:
    asked = {name for _, query, _ in QUERIES for name in NAME.findall(query)}
    missing = [each.name for each in DEFINED if not asked & {each.name, f"{each.name}_bucket"}]
    assert missing == []


def test_pages_name_existing_metrics() -> None:
    known = LABELS.keys() | {each.name for each in DEFINED}
    for page in (ROOT / "docs").glob("*.md"):
        named = re.findall(r"`(?:\w+\()?((?:evictstream|process)_[a-z_]+)\b", page.read_text(encoding="utf-8"))
        assert set(named) <= known, page.name


def test_a_label_that_a_metric_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="evictstream_evictions_pending has no labels for gate"):
        series(WorkerMetric.PENDING, 'gate="feed"')
    with pytest.raises(TypeError, match="use its buckets"):
        series(WorkerMetric.LATENESS)
    assert buckets(WorkerMetric.LATENESS, 'le="1.0"') == 'evictstream_eviction_lateness_seconds_bucket{le="1.0"}'


def test_a_panel_says_what_its_metrics_mean() -> None:
    asked = f"sum by (le) (rate({buckets(WorkerMetric.LATENESS)}[5m])) + {series(WorkerMetric.PENDING)}"
    assert meanings(asked) == [WorkerMetric.LATENESS.meaning, WorkerMetric.PENDING.meaning]
    panels = json.loads(texts()["deploy/chart/files/dashboards/cluster.json"])["panels"]
    assert all(panel["description"] for panel in panels if panel["type"] == "timeseries")


def test_both_rule_files_have_the_same_rules() -> None:
    plain = yaml.safe_load((ROOT / RULES).read_text(encoding="utf-8"))
    resource = yaml.safe_load((ROOT / PROMETHEUS_RULE).read_text(encoding="utf-8"))
    assert resource["spec"] == plain
    assert sum(len(group["rules"]) for group in plain["groups"]) == len(ALERTS)


@pytest.mark.parametrize("name", BOARDS)
def test_panels_of_a_dashboard_do_not_overlap(name: str) -> None:
    panels = json.loads(texts()[f"deploy/chart/files/dashboards/{name}.json"])["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)
