"""docs/replay.md and docs/what-if.md: their commands run, and print what stands behind them."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.pages import ROOT, Example, examples, page

NAMES = ("replay.md", "what-if.md")
CONSOLES = [(name, example) for name in NAMES for example in examples(page(name)) if example.words == ("console",)]
COMMAND = [sys.executable, "-m", "evictstream.streams.cli.main"]


def printed(line: str, folder: Path) -> str:
    """Run a command line of the page in a folder that has the examples; returns what it prints."""
    program, *arguments = shlex.split(line)
    assert program == "evictstream"
    result = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=os.environ | {"EVICTSTREAM_PARTITIONS": "8"},
        capture_output=True,
        text=True,
        check=True,
    )
    return "".join(f"{one.rstrip()}\n" for one in result.stdout.splitlines())


@pytest.mark.parametrize(
    "example", [pytest.param(example, id=f"{name} line {example.line}") for name, example in CONSOLES]
)
def test_commands_print_what_stands_behind_them(example: Example, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    told, found = example.text.splitlines(keepends=True), ""
    for line in told:
        if line.startswith("$ "):
            found += line + printed(line[2:], tmp_path)
    assert found == "".join(told)


def test_the_pages_have_examples() -> None:
    assert [name for name, _ in CONSOLES] == ["replay.md"] * 7 + ["what-if.md"] * 4


def test_the_picture_on_the_page_is_what_its_command_draws(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    line = next(line for _, one in CONSOLES for line in one.text.splitlines() if "--picture" in line)
    printed(line[2:], tmp_path)
    drawn = (tmp_path / "zone-outage.svg").read_bytes()
    assert drawn == (ROOT / "docs" / "pictures" / "zone-outage.svg").read_bytes()
    assert (tmp_path / "outage.html").stat().st_size > len(drawn)
