"""The catalogue fits the tree: each text to be replaced is there, and so is each test that has to notice."""

from __future__ import annotations

import ast

import pytest

from tests.mutations.__main__ import ALL, ROOT
from tests.mutations.catalogue import Mutation

EACH = pytest.mark.parametrize("mutation", [pytest.param(mutation, id=mutation.name) for mutation in ALL])


def test_each_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in ALL}) == len(ALL)


@EACH
def test_what_is_to_be_replaced_is_there(mutation: Mutation) -> None:
    """As the tool does it: one change after another, each in what the one before has left."""
    texts: dict[str, str] = {}
    for file, old, new in (*((mutation.file, *change) for change in mutation.changes), *mutation.also):
        text = texts.get(file) or (ROOT / file).read_text(encoding="utf-8")
        assert old in text, f"{file} has no {old!r}"
        texts[file] = text.replace(old, new)
        assert texts[file] != text
    for file, text in texts.items():
        compile(text, file, "exec")


@EACH
def test_the_tests_that_have_to_notice_are_there(mutation: Mutation) -> None:
    assert mutation.tests
    for test in mutation.tests:
        file, _, name = test.partition("::")
        assert (ROOT / file).exists(), f"no {file}"
        if name:
            assert name in _functions(file), f"{file} has no {name}"


def _functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
