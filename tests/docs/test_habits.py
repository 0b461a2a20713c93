"""What a contributor is told to run is what is run: pre-commit, `make check` and the pages name the same things."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
HOOKS: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
RECORDS = sorted(each for each in (ROOT / "docs" / "decisions").glob("*.md") if each.name != "README.md")


def test_hooks_run_what_make_check_runs() -> None:
    _, _, rest = MAKEFILE.partition("\ncheck: ")
    recipe = re.findall(r"^\t\$\(BIN\)/(.+)$", rest.partition("\n\n")[0], re.MULTILINE)
    (repository,) = HOOKS["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == [f".venv/bin/{line}" for line in recipe]


def test_hooks_fetch_nothing() -> None:
    (repository,) = HOOKS["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "README.md", ".github/PULL_REQUEST_TEMPLATE.md"])
def test_make_targets_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
    text = (ROOT / page).read_text(encoding="utf-8")
    named = {target for line in re.findall(r"(?m)`make ([^`]+)`|^make (\w+)", text) for target in line if target}
    assert {each.split()[0] for each in named} - targets == set()


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_decision_has_context_decision_and_consequence(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    assert text.startswith(f"# {record.stem[:3]} ")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequence"]


def test_the_index_names_each_decision_once() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\(([^)]+)\)", index) == [record.name for record in RECORDS]
    for record in RECORDS:
        title = record.read_text(encoding="utf-8").splitlines()[0].removeprefix(f"# {record.stem[:3]} ")
        assert f" | {title} |" in index


@pytest.mark.parametrize("folder", ["kit", "models", "streams"])
def test_a_folder_names_all_its_packages_and_modules(folder: str) -> None:
    text = (ROOT / folder / "__init__.py").read_text(encoding="utf-8")
    names = {each.parent.stem for each in (ROOT / folder).glob("*/__init__.py")}
    names |= {each.stem for each in (ROOT / folder).glob("*.py")} - {"__init__"}
    assert names - set(re.findall(r"`(?:[\w.]+\.)?(\w+)`", text)) == set()
