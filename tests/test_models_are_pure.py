"""What import-linter cannot see: a clock, a dice or a file that is reached through something else than an import."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

MODELS = Path(__file__).parent.parent / "models"

# `datetime` may be imported for its types and arithmetic, but nobody may ask it for the time.
FORBIDDEN_ATTRIBUTES = {"now", "utcnow", "today", "uuid1", "uuid4", "monotonic", "perf_counter", "time_ns", "urandom"}
FORBIDDEN_CALLS = {"open", "print", "input", "hash"}  # the last differs between processes


def offences(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_ATTRIBUTES:
            found.append(f"line {node.lineno}: .{node.attr}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
            found.append(f"line {node.lineno}: {node.func.id}()")
    return found


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=str(path.relative_to(MODELS))) for path in sorted(MODELS.rglob("*.py"))]
)
def test_models_ask_no_clock_and_throw_no_dice(path: Path) -> None:
    assert offences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("line", ["datetime.now(UTC)", "uuid.uuid4()", "open('x')", "hash('x')"])
def test_the_check_sees(line: str) -> None:
    assert len(offences(line)) == 1
