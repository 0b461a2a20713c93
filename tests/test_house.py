"""House rules that a machine can hold: public names, arguments, the dialect of docstrings, short test names."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MOST_POSITIONAL = 4
ANY_NUMBER = {"Array", "CompactArray", "EpochLast", "Schema"}  # of fields of a request, each with its name
MOST_WORDS_OF_A_TEST = 10
# The logger of each module, what starts a program or is its command line, and a constant of the oracle, which shares no
# line with the models.
DEFINED_OFTEN = {"log", "app", "main", "SECOND_US"}
# A class, function or constant at the top of a module; the command line names what is decorated as a command.
DEFINED = re.compile(
    r"^(?P<command>@\w+\.command\(.*\n(?:[ )@].*\n)*)?"
    r"(?:(?:class|def|async def) (?P<made>[A-Za-z]\w*)|(?P<set>[A-Za-z]\w*)(?:: [^=\n]*)? = )",
    re.MULTILINE,
)
FOREIGN = re.compile(r"``|:(?:attr|class|func|meth|mod):`")
BLANK_END = re.compile(r"\n\s*\n\s*(?:\"{3}|'{3})")
SOME = 300
"""More are there: else none was looked at."""


def texts(rooms: Sequence[str] = ("kit", "models", "streams")) -> Iterator[tuple[str, str]]:
    for file in (file for room in rooms for file in sorted((ROOT / room).rglob("*.py"))):
        yield file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")


def test_a_public_name_is_defined_once() -> None:
    places = defaultdict[str, set[str]](set)
    for file, text in texts():
        for match in DEFINED.finditer(text):
            name = match["made"] or match["set"]
            if not match["command"] and name not in DEFINED_OFTEN:
                places[name].add(file)
    assert len(places) > SOME
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.slow
def test_no_constructor_call_has_more_than_four_positional_arguments() -> None:
    found = []
    for file, text in texts():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and len(node.args) > MOST_POSITIONAL:
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called.lstrip("_")[:1].isupper() and called.lstrip("_") not in ANY_NUMBER:
                    found.append(f"{file}:{node.lineno} {called}({len(node.args)})")
    assert found == []


def test_decoders_of_structs_are_made_at_import() -> None:
    """msgspec 0.22.0 crashes the process if two threads are the first to use a type; one executor of 1,000 did so."""
    made_late = re.compile(r"(?:decode|convert)\([^()]*(?:\([^()]*\)[^()]*)*type=_?[A-Z]")
    found = [file for file, text in texts(["models", "streams"]) if made_late.search(text)]
    assert found == []


def test_docstrings_are_written_in_one_dialect() -> None:
    """Single backticks, no roles of Sphinx, no blank line before the closing quotes."""
    found = []
    for file, text in texts():
        if FOREIGN.search(text) is None and not BLANK_END.search(text):
            continue  # to parse each file would take seconds
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                words = ast.get_docstring(node, clean=False) or ""
                if FOREIGN.search(words) or re.search(r"\n\s*\n\s*$", words):
                    found.append(f"{file} {getattr(node, 'name', '(module)')}")
    assert found == []


def test_no_test_name_has_more_than_ten_words() -> None:
    names = [(file, name) for file, text in texts(["tests"]) for name in re.findall(r"\bdef test_(\w+)", text)]
    assert len(names) > SOME
    assert [each for each in names if len(each[1].split("_")) > MOST_WORDS_OF_A_TEST] == []
