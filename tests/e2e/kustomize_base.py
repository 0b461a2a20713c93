"""The base of `deploy/kustomize`, which is the rendered chart: `python -m tests.e2e.kustomize_base` writes it."""

from __future__ import annotations

from typing import Final

import yaml  # type: ignore[import-untyped]

from tests.e2e.chart import CHART, RELEASE, helm

KUSTOMIZE: Final = CHART.with_name("kustomize")
BASE: Final = KUSTOMIZE / "base" / "evictstream.yaml"
HEAD: Final = "# The chart, rendered with ../values.yaml: `python -m tests.e2e.kustomize_base` writes this file.\n"


def base() -> str:
    """Render the base."""
    values = yaml.safe_load((KUSTOMIZE / "values.yaml").read_text(encoding="utf-8"))
    done = helm("template", RELEASE, str(CHART), values=values)
    assert done.returncode == 0, done.stderr
    return HEAD + done.stdout


if __name__ == "__main__":
    BASE.write_text(base(), encoding="utf-8")
