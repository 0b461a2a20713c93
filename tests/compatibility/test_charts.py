"""Who upgrades the chart of an earlier release keeps names and selectors: else the upgrade fails, or old pods stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.compatibility.recorded import FOLDER
from tests.compatibility.recorded_chart import FIXED, fixed

CHARTS = sorted(FOLDER.glob("chart-*.json"))


def test_the_chart_of_each_release_is_among_them() -> None:
    assert [file.stem.removeprefix("chart-") for file in CHARTS] == [
        file.stem for file in sorted(FOLDER.glob("*.jsonl"))
    ]


@pytest.mark.parametrize("file", CHARTS, ids=[file.stem for file in CHARTS])
def test_an_upgrade_keeps_names_and_selectors(file: Path) -> None:
    before, now = json.loads(file.read_text(encoding="utf-8")), fixed()
    assert {name.partition("/")[0] for name in before} == FIXED.keys()
    assert {name: now.get(name) for name in before} == before
