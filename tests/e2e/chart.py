"""Helm with the project's chart; `python -m tests.e2e.chart` builds Helm, once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from tests.e2e.api_client import Object
from tests.harness.go_programs import GoPrograms

HELM: Final = GoPrograms(
    title="Helm",
    sources=Path(__file__).with_name("helm"),
    module="helm.sh/helm/v4",
    programs=("helm",),
    packages=("helm.sh/helm/v4/cmd/helm",),
    folder_name="helm",
    how="make kubernetes",
    cost="a minute or two, once, and 2 GB of disk meanwhile",
)
CHART: Final = Path(__file__).parents[2] / "deploy" / "chart"
RELEASE: Final = "evictstream"
NAMESPACE: Final = "evictstream"
HELM_SECONDS: Final = 120


def helm(*arguments: str, values: Mapping[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm in the chart's namespace, without any configuration of whoever runs the test."""
    nowhere = str(HELM.folder() / "none")
    given = () if values is None else ("--values", "-")
    return subprocess.run(
        [str(HELM.folder() / "helm"), *arguments, "--namespace", NAMESPACE, *given],
        input=None if values is None else json.dumps(values),
        env={"PATH": os.defpath, "HOME": nowhere, "HELM_CACHE_HOME": nowhere, "HELM_CONFIG_HOME": nowhere},
        capture_output=True,
        text=True,
        timeout=HELM_SECONDS,
        check=False,
    )


def rendered(values: Mapping[str, Any], *more: str) -> list[Object]:
    """Return all objects of the chart."""
    done = helm("template", RELEASE, str(CHART), *more, values=values)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each is not None]


if __name__ == "__main__":
    sys.exit(HELM.main())
