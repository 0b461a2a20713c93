"""The generated files: their paths from the top of the repository, and their texts."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from tests.deploy.monitoring.alerts import ALERTS, GROUPS, Alert
from tests.deploy.monitoring.boards import BOARDS
from tests.deploy.monitoring.grafana import dashboard
from tests.deploy.pages import ROOT

MADE_BY: Final = (
    "# Made by `python -m tests.deploy.monitoring` from alerts.py and boards.py of that folder; edit those.\n"
)

# A chart can read only files of its own folder.
RULES: Final = "deploy/chart/files/alerts.yaml"
PROMETHEUS_RULE: Final = "deploy/monitoring/prometheus-rule.yaml"
DASHBOARDS: Final = "deploy/chart/files/dashboards"
RUNBOOKS: Final = "docs/runbooks.md"


def texts() -> dict[str, str]:
    """Make the text of each file, by its path."""
    rules = {"groups": [{"name": name, "rules": [_rule(alert) for alert in group]} for name, group in GROUPS.items()]}
    resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "evictstream", "labels": {"app.kubernetes.io/name": "evictstream"}},
        "spec": rules,
    }
    return {
        RULES: MADE_BY + _yaml(rules),
        PROMETHEUS_RULE: MADE_BY + _yaml(resource),
        **{f"{DASHBOARDS}/{name}.json": dashboard(board) for name, board in BOARDS.items()},
        RUNBOOKS: _runbooks((ROOT / RUNBOOKS).read_text(encoding="utf-8")),
    }


def runbook(alert: Alert) -> str:
    """Name the section of the page that says what to do."""
    return f"{RUNBOOKS}#{alert.name.lower()}"


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.hold,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "description": alert.description, "runbook": runbook(alert)},
    }


def _runbooks(page: str) -> str:
    """Put what the alert says at the top of its section; the rest of the page is written by hand."""
    for alert in ALERTS:
        head = f"## {alert.name}\n"
        before, found, rest = page.partition(f"\n{head}")
        text = rest[rest.index("\n**Cause.**") :] if found else "\n**Cause.**\n"
        page = f"{before.rstrip()}\n\n{head}\n{_symptom(alert)}{text}"
    return page


def _symptom(alert: Alert) -> str:
    said = re.sub(r"{{ \$(?:labels\.)?(\w+)(?: \| \w+)? }}", r"<\1>", alert.summary)
    held = "" if alert.hold == "0m" else f", for {alert.hold}"
    return f"`{said}`\n\n{alert.description} ({alert.severity}{held})\n\n```promql\n{alert.expression}\n```\n"


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes texts of several lines as blocks."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def _yaml(value: object) -> str:
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=1_000, default_flow_style=False)
    return text
