"""docs/replay.md, what-if.md and situations.md: their commands run, and print what stands behind them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.pages import ROOT, Example, examples, page
from tests.docs.shell_blocks import through
from tests.harness import copies
from tests.harness.ends import MAIN

NAMES = ("replay.md", "what-if.md", "situations.md")
CONSOLES = [(name, example) for name in NAMES for example in examples(page(name)) if example.words == ("console",)]
PATIENCE_SECONDS = 60.0
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*\n)", re.MULTILINE)
"""A command line of a console block, with the lines that continue it."""


def printed(command: str, folder: Path) -> str:
    """Run a command of the page in a folder that has the examples; returns what it prints."""
    words, rest = through(command.replace("\\\n", " "))
    result = copies.run(
        [sys.executable, "-m", MAIN, *words],
        cwd=folder,
        env=os.environ | {"EVICTSTREAM_PARTITIONS": "8"},
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert result.returncode == 0, result.stderr
    shown = result.stdout
    if rest:
        assert rest[0] == "|"
        shown = subprocess.run(rest[1:], input=shown, capture_output=True, text=True, check=True).stdout
    return "".join(f"{line.rstrip()}\n" for line in shown.splitlines())


@pytest.mark.slow  # a process for each command
@pytest.mark.parametrize(
    "example", [pytest.param(example, id=f"{name} line {example.line}") for name, example in CONSOLES]
)
def test_commands_print_what_stands_behind_them(example: Example, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = COMMAND.findall(example.text)
    assert commands
    assert "".join(f"$ {command}{printed(command, tmp_path)}" for command in commands) == example.text


def test_the_pages_have_examples() -> None:
    assert [name for name, _ in CONSOLES] == ["replay.md"] * 8 + ["what-if.md"] * 5 + ["situations.md"] * 6
