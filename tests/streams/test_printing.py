"""Nothing that people see steers their terminal, whatever prints it."""

from __future__ import annotations

import ast
import io
import json
import re
from pathlib import Path

import pytest
from rich.live import Live
from rich.table import Table
from rich.text import Text

from evictstream.streams.cli.consoles import PrintableConsole
from evictstream.streams.cli.main import main, run
from evictstream.streams.errors import ExitCode
from evictstream.streams.printing import PrintableStream, one_line, printable, printable_json

ROOT = Path(__file__).parents[2]
STEERING = ["\x1b]52;c;ZXZpbA==\x07", "\x1b[2K", "\x9b31m", "\u202e", "\u2066", "\u200f", "\r", "\x08", "\x7f", "\x00"]
CLOCKED = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\x1b\[\?25[lh]")  # what rich sends of its own


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("mark", STEERING)
def test_no_mark_gets_through(mark: str) -> None:
    assert mark not in one_line(f"a{mark}b")
    assert mark not in printable(f"a{mark}b\n\tc")
    assert json.loads(printable_json(json.dumps(f"a{mark}ü😀", ensure_ascii=False))) == f"a{mark}ü😀"
    assert mark not in printable_json(json.dumps(f"a{mark}", ensure_ascii=False))


def test_half_a_character_is_escaped_in_json() -> None:
    assert json.loads(printable_json(json.dumps("\ud800\U000e0001", ensure_ascii=False))) == "\ud800\U000e0001"


def test_lines_and_letters_of_all_languages_stay() -> None:
    assert printable("größe 日本語 😀\n\tzweite") == "größe 日本語 😀\n\tzweite"
    assert one_line("a\nb") == "a?b", "a name cannot begin a line of its own"


def test_a_live_view_keeps_its_own_sequences_only(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Terminal()
    monkeypatch.setattr("sys.stdout", PrintableStream(written))
    console = PrintableConsole(force_terminal=True, color_system="standard", width=200)
    table = Table("name")
    table.add_row(Text("".join(STEERING)))
    with Live(table, console=console, auto_refresh=False):
        print("\x1b]0;title\x07")  # noqa: T201 - as a library does
    left = CLOCKED.sub("", written.getvalue())
    assert "\x1b[" in written.getvalue()
    assert {mark for mark in STEERING if mark != "\r" and mark in left} | ({"\x1b"} & set(left)) == set()


def test_an_error_of_the_command_line_is_printable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["evictstream", "replay", "\x1b]0;owned\x07\u202e"])
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setattr("sys.stderr", written := io.StringIO())
    with pytest.raises(SystemExit):
        main()
    assert "cannot open ?]0;owned??" in written.getvalue()


def test_all_that_is_printed_goes_through_one_printer() -> None:
    """`say`, tables and consoles make it printable; what else writes would have to do it again."""
    others = []
    for file in [file for room in ("streams/cli", "kit") for file in (ROOT / room).rglob("*.py")]:
        text = file.read_text(encoding="utf-8")
        if not re.search(r"\b(?:echo|secho|Console)\b", text):
            continue  # to parse each file would take a second
        called = [ast.unparse(node.func) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        others += [f"{file.name}: {name}" for name in called if name in {"typer.echo", "typer.secho", "Console"}]
    assert sorted(others) == [
        "confirmation.py: typer.echo",
        "failures.py: typer.echo",
        "output.py: typer.echo",
        "output.py: typer.echo",
    ]


@pytest.mark.parametrize("name", ["sasl_password", "SSL_PASSWORD"])
def test_a_secret_on_the_command_line_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--set", f"{name}=hunter2-and-more", "config"]) == ExitCode.WRONG_USE
    written = capsys.readouterr().err
    assert f"EVICTSTREAM_{name.upper()}" in written
    assert "hunter2" not in written
