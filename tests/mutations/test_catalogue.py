"""The catalogue fits the tree: each place to be changed is there, and so is each test that has to notice."""

from __future__ import annotations

import ast
import functools
import shutil
import types
from pathlib import Path

import pytest

from tests.mutations.__main__ import ALL, LEFT_OUT, ROOT
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import carry_out, file_of

EACH = pytest.mark.parametrize("mutation", [pytest.param(mutation, id=mutation.name) for mutation in ALL])


def test_each_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in ALL}) == len(ALL)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for folder in ("src", "kit", "models", "streams"):
        shutil.copytree(ROOT / folder, root / folder, symlinks=True, ignore=LEFT_OUT)
    return root


@EACH
def test_each_change_finds_its_place(mutation: Mutation, tree: Path) -> None:
    """As the tool does it: one change after another, each in what the one before has left."""
    unchanged: dict[Path, bytes] = {}
    try:
        for change in mutation.changes:
            file = file_of(change.module, tree)
            text = file.read_bytes() if file.exists() else b""
            unchanged.setdefault(file, text)
            carry_out(change, tree)
            assert _does(compile(file.read_bytes(), file, "exec")) != _does(_compiled(text))
    finally:
        for file, text in unchanged.items():
            if text:
                file.write_bytes(text)


@EACH
def test_the_tests_that_have_to_notice_are_there(mutation: Mutation) -> None:
    assert mutation.tests
    for test in mutation.tests:
        file, _, name = test.partition("::")
        assert (ROOT / file).exists(), f"no {file}"
        if name:
            assert name in _functions(file), f"{file} has no {name}"


@functools.lru_cache(1)  # changes of one module stand side by side
def _compiled(text: bytes) -> types.CodeType:
    return compile(text, "unchanged", "exec")


def _does(code: types.CodeType) -> tuple[object, ...]:
    """What code does, wherever its lines are."""
    constants = [_does(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts]
    return code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames, code.co_freevars, tuple(constants)


@functools.cache
def _functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
