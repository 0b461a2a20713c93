"""House rules that a machine can hold: public names, arguments, the dialect of docstrings, short test names."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = [file for room in ("kit", "models", "streams") for file in sorted((ROOT / room).rglob("*.py"))]
MOST_POSITIONAL = 4
ANY_NUMBER = {"Array", "CompactArray", "EpochLast", "Schema"}  # of fields of a request, each with its name
MOST_WORDS_OF_A_TEST = 10
# The logger of each module, what starts a program or is its command line, and a constant of the oracle, which shares no
# line with the models.
DEFINED_OFTEN = {"log", "app", "main", "SECOND_US"}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for file in FILES:
        yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def public_names(tree: ast.Module) -> Iterator[str]:
    """Give the names that a module defines, but those of commands, which the command line names."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if not any(".command(" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield node.name
        elif isinstance(node, ast.Assign):
            yield from (name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id


def test_a_public_name_is_defined_once() -> None:
    places = defaultdict[str, set[str]](set)
    for file, tree in trees():
        for name in public_names(tree):
            if not name.startswith("_") and name not in DEFINED_OFTEN:
                places[name].add(file)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_constructor_call_has_more_than_four_positional_arguments() -> None:
    found = []
    for file, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and len(node.args) > MOST_POSITIONAL:
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called.lstrip("_")[:1].isupper() and called.lstrip("_") not in ANY_NUMBER:
                    found.append(f"{file}:{node.lineno} {called}({len(node.args)})")
    assert found == []


def test_docstrings_are_written_in_one_dialect() -> None:
    """Single backticks, no roles of Sphinx, no blank line before the closing quotes."""
    found = []
    for file, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node, clean=False) or ""
                if (
                    "``" in text
                    or re.search(r":(?:attr|class|func|meth|mod):`", text)
                    or re.search(r"\n\s*\n\s*$", text)
                ):
                    found.append(f"{file} {getattr(node, 'name', '(module)')}")
    assert found == []


def test_no_test_name_has_more_than_ten_words() -> None:
    found = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                words = len(node.name.removeprefix("test_").split("_"))
                if words > MOST_WORDS_OF_A_TEST:
                    found.append(f"{file.relative_to(ROOT)}:{node.lineno} {node.name} ({words} words)")
    assert found == []
