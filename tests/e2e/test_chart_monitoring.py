"""What the chart gives Prometheus and Grafana is what is in its files, if it is asked for."""

from __future__ import annotations

import pytest
import yaml  # type: ignore[import-untyped]

from tests.deploy.chart_values import LEAST, merged
from tests.e2e.api_client import Object
from tests.e2e.chart import CHART, rendered

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_helm")]

MONITORING = {name: {"enabled": True} for name in ("serviceMonitor", "prometheusRule", "dashboards")}


def of_kind(kind: str, objects: list[Object]) -> list[Object]:
    return [each for each in objects if each["kind"] == kind]


def boards(objects: list[Object]) -> dict[str, str]:
    """Return dashboards by file, of those that Grafana's sidecar finds."""
    found: dict[str, str] = {}
    for each in of_kind("ConfigMap", objects):
        if each["metadata"]["labels"].get("grafana_dashboard") == "1":
            found |= each["data"]
    return found


def test_rules_and_dashboards_are_those_of_the_files() -> None:
    objects = rendered(merged(LEAST, MONITORING))
    (rule,) = of_kind("PrometheusRule", objects)
    assert rule["spec"] == yaml.safe_load((CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))
    files = sorted((CHART / "files" / "dashboards").glob("*.json"))
    assert boards(objects) == {f"evictstream-{file.name}": file.read_text(encoding="utf-8") for file in files}


def test_a_cluster_keeps_its_label_when_it_is_scraped() -> None:
    (monitor,) = of_kind("ServiceMonitor", rendered(merged(LEAST, MONITORING)))
    assert all(endpoint["honorLabels"] for endpoint in monitor["spec"]["endpoints"])


def test_nothing_for_prometheus_and_grafana_by_default() -> None:
    objects = rendered(merged(LEAST, {}))
    assert not of_kind("PrometheusRule", objects)
    assert not of_kind("ServiceMonitor", objects)
    assert not boards(objects)
