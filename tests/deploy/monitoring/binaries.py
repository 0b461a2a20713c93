"""Prometheus and promtool, built once and kept: `python -m tests.deploy.monitoring.binaries`."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.harness.go_programs import GoPrograms

PROMETHEUS = GoPrograms(
    title="Prometheus",
    sources=Path(__file__).with_name("prometheus"),
    module="github.com/prometheus/prometheus",
    programs=("prometheus", "promtool"),
    packages=("github.com/prometheus/prometheus/cmd/prometheus", "github.com/prometheus/prometheus/cmd/promtool"),
    folder_name="prometheus",
    how="make prometheus",
    cost="minutes, once, and 4 GB of disk meanwhile; 190 MB stay",
)

if __name__ == "__main__":
    sys.exit(PROMETHEUS.main())
