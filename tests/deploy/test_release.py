"""What a release consists of: ranges with both ends, a lock for its tools, and a workflow that runs what CI runs."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import yaml  # type: ignore[import-untyped]
from packaging.requirements import Requirement

from tests.deploy.locks import pins
from tests.deploy.pages import ROOT
from tests.release.__main__ import VERSIONS
from tests.release.building import lowest

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
OVERRIDDEN = {"aiokafka", "faust-streaming", "kafka-python", "mode-streaming"}
"""Parts of these that are not public are overridden, so another version may break them unseen."""


def test_only_what_is_overridden_is_pinned() -> None:
    extras = PROJECT["optional-dependencies"]
    texts = [*PROJECT["dependencies"], *(text for name, some in extras.items() if name != "dev" for text in some)]
    exact = {Requirement(text).name for text in texts if "==" in text}
    assert exact == OVERRIDDEN


def test_what_is_locked_lies_in_its_range() -> None:
    locked = pins("requirements/runtime.txt")
    for requirement in map(Requirement, PROJECT["dependencies"]):
        assert locked[requirement.name][0] in requirement.specifier, requirement


def test_the_lowest_of_each_range_is_what_pip_is_told() -> None:
    constraints = lowest(["rich>=14,<16", "aiokafka[lz4]==0.14.0", "structlog>=25.1"])
    assert constraints.splitlines() == ["rich==14", "structlog==25.1"]


def test_tools_of_a_release_are_locked() -> None:
    assert {"twine", "cyclonedx-bom"} <= set(pins("deploy/release.txt"))
    assert "build" in pins("requirements/dev.txt")


def test_the_workflow_runs_ci_on_each_python() -> None:
    tests = FLOW["jobs"]["tests"]
    assert tests["strategy"]["matrix"]["python"] == VERSIONS
    assert [step["run"] for step in tests["steps"] if "run" in step] == ["bash .ci/run"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.search(r"\| Python \| ([\d., ]+) \|", readme).group(1).split(", ") == VERSIONS  # type: ignore[union-attr]
