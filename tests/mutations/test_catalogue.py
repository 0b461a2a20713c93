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
from tests.mutations.matching import NoPlaceError, carry_out, file_of


def test_each_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in ALL}) == len(ALL)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for folder in ("src", "kit", "models", "streams"):
        shutil.copytree(ROOT / folder, root / folder, symlinks=True, ignore=LEFT_OUT)
    return root


# One test for all, as they are many and small: each would cost as much again to be collected and reported.
def test_each_change_finds_its_place(tree: Path) -> None:
    by_module = sorted(ALL, key=lambda mutation: mutation.changes[0].module)
    wrong = {mutation.name: problem for mutation in by_module if (problem := _problem(mutation, tree))}
    assert not wrong, "\n".join(f"{name}: {problem}" for name, problem in wrong.items())


def test_the_tests_that_have_to_notice_are_there() -> None:
    assert [mutation.name for mutation in ALL if not mutation.tests] == []
    missing = []
    for mutation in ALL:
        for test in mutation.tests:
            file, _, name = test.partition("::")
            if not (ROOT / file).exists() or (name and name not in _functions(file)):
                missing.append(f"{mutation.name}: no {test}")
    assert not missing, "\n".join(missing)


def _problem(mutation: Mutation, tree: Path) -> str | None:
    """Make the changes as the tool does, one after another, each in what the one before has left."""
    unchanged: dict[Path, bytes] = {}
    try:
        for change in mutation.changes:
            file = file_of(change.module, tree)
            text = file.read_bytes() if file.exists() else b""
            unchanged.setdefault(file, text)
            carry_out(change, tree)
            if _does(compile(file.read_bytes(), file, "exec")) == _does(_compiled(text)):
                return f"{change.module} does the same as before"
    except (NoPlaceError, SyntaxError) as error:
        return str(error)
    finally:
        for file, text in unchanged.items():
            if text:
                file.write_bytes(text)
    return None


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
