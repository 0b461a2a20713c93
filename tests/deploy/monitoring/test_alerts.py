"""Alerts fire when they must and are silent when they must, and each has a runbook. promtool is the judge."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.deploy.monitoring.alert_cases import CASES
from tests.deploy.monitoring.alerts import ALERTS
from tests.deploy.monitoring.binaries import PROMETHEUS
from tests.deploy.monitoring.files import RULES, RUNBOOKS, runbook
from tests.deploy.pages import ROOT

BY_NAME = {alert.name: alert for alert in ALERTS}


@pytest.fixture
def promtool() -> Path:
    if not PROMETHEUS.are_built():
        pytest.skip(PROMETHEUS.why_missing())
    return PROMETHEUS.folder() / "promtool"


def test_alerts_fire_and_are_silent_as_they_must(promtool: Path, tmp_path: Path) -> None:
    tests = []
    for case in CASES:
        alert = BY_NAME[case.alert]
        expected: dict[int, list[dict[str, object]]] = {minute: [] for minute in case.silent_at}
        if case.fires_at is not None:
            annotations = {
                "summary": case.summary,
                "description": alert.description,
                "runbook": runbook(alert),
            }
            labels = {**case.labels, "severity": alert.severity}
            expected[case.fires_at] = [{"exp_labels": labels, "exp_annotations": annotations}]
        tests.append(
            {
                "name": f"{case.alert}: {next(iter(case.given))}",
                "input_series": [{"series": name, "values": values} for name, values in case.given.items()],
                "alert_rule_test": [
                    {"eval_time": f"{minute}m", "alertname": case.alert, "exp_alerts": alerts}
                    for minute, alerts in expected.items()
                ],
            }
        )
    file = tmp_path / "alerts_test.yaml"
    file.write_text(json.dumps({"rule_files": [str(ROOT / RULES)], "tests": tests}), encoding="utf-8")
    ran = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_promtool_finds_no_fault_in_the_rules(promtool: Path) -> None:
    command = [str(promtool), "check", "rules", "--lint=all", "--lint-fatal", str(ROOT / RULES)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", BY_NAME)
def test_an_alert_has_cases_in_which_it_fires_and_not(name: str) -> None:
    cases = [case for case in CASES if case.alert == name]
    assert any(case.fires_at is not None and case.summary for case in cases)
    assert any(case.silent_at for case in cases)


@pytest.mark.parametrize("program", ["feed", "worker", "executor"])
def test_a_program_whose_series_end_fires_within_four_minutes(program: str) -> None:
    gone = [case for case in CASES if case.alert == "EvictstreamProgramGone" and case.labels.get("program") == program]
    (soonest,) = [case for case in gone if case.fires_at is not None and case.fires_at < 10]
    ends = {int(values.removeprefix("1x").split()[0]) for values in soonest.given.values() if "stale" in values}
    assert soonest.fires_at == max(ends) + 4


def test_pages_name_alerts_that_exist() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        named = set(re.findall(r"\bEvictstream(?:[A-Z][a-z]+)+\b", page.read_text(encoding="utf-8")))
        assert named <= set(BY_NAME), page.name


def test_runbooks_name_lines_that_a_program_logs() -> None:
    page = " ".join((ROOT / RUNBOOKS).read_text(encoding="utf-8").split())
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "streams").rglob("*.py"))
    named = set(re.findall(r"`(?!evictstream )((?:[A-Za-z]+,? )+[a-z]+)`", page))
    assert "Kafka unavailable" in named
    assert {line for line in named if f'"{line}' not in code} == set()


WITHOUT_ALERT = ["CreateContainerConfigError"]
"""Symptoms that only Kubernetes shows: what does not start has no metrics."""


def test_each_alert_has_a_runbook_with_cause_look_and_mend() -> None:
    page = (ROOT / RUNBOOKS).read_text(encoding="utf-8")
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == [*BY_NAME, *WITHOUT_ALERT]
    for section in sections:
        assert re.findall(r"^\*\*(\w+)\.\*\* ", section, re.MULTILINE) == ["Cause", "Look", "Mend"]
