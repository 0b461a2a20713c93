"""The base of Kustomize is the chart, and its overlays are the chart with another mode."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.deploy.chart_values import merged
from tests.e2e.api_client import Object
from tests.e2e.chart import rendered
from tests.e2e.kustomize_base import BASE, KUSTOMIZE, base

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_helm")]

VALUES: dict[str, Any] = yaml.safe_load((KUSTOMIZE / "values.yaml").read_text(encoding="utf-8"))


def built(folder: str) -> dict[tuple[str, str], Object]:
    """Build an overlay with kubectl, by kind and name; without the namespace, which the chart does not make."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("no kubectl here")
    done = subprocess.run(
        [kubectl, "kustomize", str(KUSTOMIZE / "overlays" / folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = by_name(list(yaml.safe_load_all(done.stdout)))
    del found["Namespace", "evictstream"]
    return found


def by_name(objects: list[Object]) -> dict[tuple[str, str], Object]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def test_the_base_is_what_the_chart_renders() -> None:
    assert BASE.read_text(encoding="utf-8") == base(), "run `python -m tests.e2e.kustomize_base`"


@pytest.mark.parametrize("mode", ["observe", "delete", "evict", "request"])
def test_an_overlay_is_the_chart_in_its_mode(mode: str) -> None:
    assert built(mode) == by_name(rendered(merged(VALUES, {"executor": {"mode": mode}})))


def test_the_example_changes_what_every_installation_changes() -> None:
    servers = "kafka-bootstrap.kafka:9092"
    settings = {"partitions": 8, "replication_factor": 1, "min_insync_replicas": 1}
    wanted = merged(
        VALUES,
        {
            "image": {"repository": "registry.example/platform/evictstream"},
            "clusters": [{"name": "prod-eu-1"}],
            "kafka": {"bootstrapServers": servers},
            "settings": settings,
        },
    )
    example, chart = built("example"), by_name(rendered(wanted))
    for key in chart.keys() & example.keys():  # the Job of the chart is named after what it declares
        for found in (example[key], chart[key]):
            annotations = found.get("spec", {}).get("template", {}).get("metadata", {}).get("annotations", {})
            annotations.pop("checksum/settings", None)
        if key[0] == "NetworkPolicy":
            continue  # of the ports of other brokers
        assert example[key] == chart[key]
