"""Each command on terminals that are narrow or know no colours, without one, and where the reader has gone."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Sequence

import pytest

from evictstream.streams.cli import main
from evictstream.streams.cli.main import run
from evictstream.streams.errors import ExitCode
from tests.harness import copies
from tests.streams.cli.command_tree import commands, options_of
from tests.streams.cli.running import COMMAND, PATIENCE_SECONDS, ROOT, read_terminal

NAMES = [words for words, _ in commands() if words]
INCIDENT = "examples/incidents/single-node-unreachable-no-evictor/events.jsonl.gz"
WITHOUT_KAFKA = [
    "config",
    "config --explain",
    "version",
    "schema",
    "schema command",
    "completion bash",
    f"replay {INCIDENT} --against upstream",
    f"replay {INCIDENT} --check",
    f"explain lab/sec-18446744074-n-000-0 {INCIDENT}",
    f"what-if {INCIDENT} --cordon --nodes n-000",
]
"""Commands with results of each form: tables, stories, texts, scripts."""

COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")
"""What sets a colour; bold is none."""

each_command = pytest.mark.parametrize("words", NAMES, ids=" ".join)


def on_terminal(arguments: Sequence[str], columns: int, monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    """Run in this process with stdout and stderr on a terminal; returns what it shows."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)  # pytest-xdist sets the first, which counts more than the terminal
    for name, value in {"COLUMNS": str(columns), **variables}.items():
        monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    shown: list[bytes] = []
    reader = threading.Thread(target=lambda: shown.append(read_terminal(ours)))
    reader.start()
    main._load.cache_clear()  # a terminal has its width when the process starts
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        monkeypatch.setattr(sys, "stderr", terminal)
        run(arguments)
        monkeypatch.undo()
    main._load.cache_clear()
    reader.join()
    os.close(ours)
    return shown[0].decode()


@each_command
def test_help_on_a_narrow_dumb_terminal_is_plain_and_whole(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = on_terminal([*words, "--help"], 40, monkeypatch, TERM="dumb")
    options = {name for found, command in commands() if found == words for name in options_of(command)}
    assert "\x1b" not in shown
    assert "…" not in shown
    assert {name for name in options if name.startswith("--")} <= set(shown.replace(",", " ").split())


@pytest.mark.kit
@each_command
def test_help_without_colours_has_none(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_terminal([*words, "--help"], 80, monkeypatch, NO_COLOR="1", TERM="xterm-256color")
    assert COLOUR.search(shown) is None


@pytest.mark.slow
@pytest.mark.parametrize("typed", WITHOUT_KAFKA)
def test_results_have_no_colours_where_there_are_none(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert "\x1b" not in on_terminal(typed.split(), 40, monkeypatch, TERM="dumb")
    monkeypatch.chdir(ROOT)
    shown = on_terminal(typed.split(), 40, monkeypatch, NO_COLOR="1", TERM="xterm-256color")
    assert COLOUR.search(shown) is None


@pytest.mark.kit
@pytest.mark.parametrize("typed", [*(f"{' '.join(words)} --help" for words in NAMES), *WITHOUT_KAFKA])
def test_a_reader_that_has_gone_is_no_failure(typed: str) -> None:
    nobody, pipe = os.pipe()
    os.close(nobody)
    process = copies.start([*COMMAND, *typed.split()], cwd=ROOT, stdout=pipe, stderr=subprocess.PIPE)
    os.close(pipe)
    _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, said) == (ExitCode.DONE, b"")


@pytest.mark.kit
@each_command
def test_no_terminal_at_all_is_no_failure(words: tuple[str, ...]) -> None:
    """Standard input, output and errors are closed, as some supervisors do."""
    line = f"exec {sys.executable} -m {COMMAND[-1]} {' '.join(words)} --help <&- >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", line], cwd=ROOT, check=False).returncode == ExitCode.DONE
