"""Find a place in the product by module, function and a pattern in its syntax tree, and put something else there.

A pattern is Python: one expression, one statement or one argument (`name=value`). In it `...` stands for anything, and
among arguments, elements or statements for any number of them. Layout, comments and the rest of the function play no
part. A pattern has to match one place in its function; all text around that place stays as it is.
"""

from __future__ import annotations

import ast
import difflib
import functools
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

CANDIDATES = 3
TOP_LEVEL = "(top level)"


class Change(NamedTuple):
    """What to put in the place of what.

    Attributes:
        module: import name.
        function: qualified name of a function, method or class; empty for the module itself.
        pattern: what is there.
        replacement: what to put there; `$0` in it stands for the text that was there.
    """

    module: str
    function: str
    pattern: str
    replacement: str


class NoPlaceError(LookupError):
    """A change does not say one place. The text names the nearest candidates."""


def carry_out(change: Change, root: Path) -> None:
    """Change a file below `root`.

    Raises:
        NoPlaceError: the pattern matches nowhere in the function, or twice.
    """
    wanted = _parsed(change.pattern)
    file = file_of(change.module, root)
    text = file.read_bytes() if file.exists() else None
    functions = {} if text is None else _functions_of(text)
    places = list(_places(functions[change.function], wanted)) if change.function in functions else []
    if text is not None and len(places) == 1:
        file.write_bytes(_replaced(text, places[0], change.replacement))
        return
    if places:
        problem = f"more than one place: lines {', '.join(str(place.lineno) for place in places)}"
    elif change.function in functions:
        problem = "no such place; nearest: " + _list(_nearest(functions[change.function], wanted))
    elif text is not None:
        problem = "no such function; nearest: " + _list(
            difflib.get_close_matches(change.function, functions, cutoff=0.4)
        )
    else:
        modules = [module for module, _ in _modules(root)]
        problem = "no such module; nearest: " + _list(difflib.get_close_matches(change.module, modules, CANDIDATES))
    elsewhere = [f"{module}, {name or TOP_LEVEL}" for module, name in _elsewhere(wanted, root)]
    where = f"{change.module}, {change.function or TOP_LEVEL}: {change.pattern}"
    raise NoPlaceError(f"{where}\n{problem}\nthe pattern matches in: {_list(elsewhere)}")


def _parsed(pattern: str) -> list[ast.AST]:
    """Read a pattern; `a=b` may be an argument as well as an assignment."""
    (statement,) = ast.parse(pattern).body
    match statement:
        case ast.Expr(value=value):
            return [value]
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return [statement, ast.keyword(arg=name, value=value)]
    return [statement]


def file_of(module: str, root: Path) -> Path:
    """Return where a module is."""
    path = root.joinpath("src", *module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    for top in root.glob("src/*/*/"):  # a recursive glob follows no links below where it begins
        for file in sorted(top.rglob("*.py")):
            yield ".".join(file.relative_to(root / "src").with_suffix("").parts).removesuffix(".__init__"), file


@functools.lru_cache(1)  # changes of one module stand side by side
def _functions_of(text: bytes) -> dict[str, ast.AST]:
    return dict(_functions(text))


def _functions(text: bytes) -> Iterator[tuple[str, ast.AST]]:
    """Yield each function and class by its qualified name, and the module by an empty one."""

    def below(node: ast.AST, outer: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield outer + child.name, child
                yield from below(child, f"{outer}{child.name}.")
            elif not isinstance(child, ast.expr):  # which holds none
                yield from below(child, outer)

    tree = ast.parse(text)
    yield "", ast.Module(body=[node for node in tree.body if not hasattr(node, "body")], type_ignores=[])
    yield from below(tree, "")


def _places(node: ast.AST, wanted: list[ast.AST]) -> Iterator[ast.expr | ast.stmt | ast.keyword]:
    if isinstance(node, ast.expr | ast.stmt | ast.keyword) and any(_matches(each, node) for each in wanted):
        yield node
    if not isinstance(node, ast.JoinedStr):  # before Python 3.12 no place within an f-string is known
        for child in ast.iter_child_nodes(node):
            yield from _places(child, wanted)


def _is_any(pattern: object) -> bool:
    found = pattern.value if isinstance(pattern, ast.Expr) else pattern
    return isinstance(found, ast.Constant) and found.value is ...


def _matches(pattern: object, found: object) -> bool:
    if _is_any(pattern):
        return True
    if isinstance(pattern, list) and isinstance(found, list):
        return _matches_each(pattern, found)
    if not isinstance(pattern, ast.AST):
        return pattern == found
    if type(pattern) is not type(found):
        return False
    fields = [field for field in pattern._fields if field not in {"ctx", "kind", "type_comment"}]
    if isinstance(pattern, ast.Call) and isinstance(found, ast.Call) and any(map(_is_any, pattern.args)):
        fields.remove("keywords")
        if not all(any(_matches(each, other) for other in found.keywords) for each in pattern.keywords):
            return False
    return all(_matches(getattr(pattern, field, None), getattr(found, field, None)) for field in fields)


def _matches_each(patterns: Sequence[object], found: Sequence[object]) -> bool:
    if not patterns:
        return not found
    if _is_any(patterns[0]):
        return any(_matches_each(patterns[1:], found[skipped:]) for skipped in range(len(found) + 1))
    return bool(found) and _matches(patterns[0], found[0]) and _matches_each(patterns[1:], found[1:])


def _replaced(text: bytes, place: ast.expr | ast.stmt | ast.keyword, replacement: str) -> bytes:
    """Replace by the columns of the tree, which count bytes."""
    lines = text.splitlines(keepends=True)
    first, last = place.lineno - 1, (place.end_lineno or place.lineno) - 1
    begin = sum(map(len, lines[:first])) + place.col_offset
    end = sum(map(len, lines[:last])) + (place.end_col_offset or 0)
    margin = lines[first][: len(lines[first]) - len(lines[first].lstrip())].decode()
    new = textwrap.indent(replacement, margin).removeprefix(margin).replace("$0", text[begin:end].decode())
    if isinstance(place, ast.expr) and not _is_statement(replacement):
        new = f"({new})"
    return text[:begin] + new.encode() + text[end:]


def _is_statement(replacement: str) -> bool:
    (first, *rest) = ast.parse(replacement.replace("$0", "_")).body
    return bool(rest) or not isinstance(first, ast.Expr)


def _nearest(function: ast.AST, wanted: list[ast.AST]) -> list[str]:
    kind = ast.stmt if isinstance(wanted[0], ast.stmt) else ast.expr
    texts = {ast.unparse(node): None for node in ast.walk(function) if isinstance(node, kind) and node is not function}
    return difflib.get_close_matches(ast.unparse(wanted[0]), texts, CANDIDATES, cutoff=0.4)


def _elsewhere(wanted: list[ast.AST], root: Path) -> Iterator[tuple[str, str]]:
    for module, file in _modules(root):
        for name, function in _functions(file.read_bytes()):
            if not isinstance(function, ast.ClassDef) and any(True for _ in _places(function, wanted)):
                yield module, name


def _list(candidates: Sequence[str]) -> str:
    return "; ".join(candidates) or "none"
