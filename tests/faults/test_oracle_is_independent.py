"""A mistake in the service must not be a mistake of the oracle: they share no line."""

from __future__ import annotations

import ast
from pathlib import Path

ORACLE = Path(__file__).parent / "oracle"
SHARED = {"tests.faults.log", "tests.faults.numbers"}


def imported(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


def test_the_oracle_shares_no_code_with_the_service() -> None:
    files = [*ORACLE.glob("*.py"), *(ORACLE.parent / f"{name.rpartition('.')[2]}.py" for name in SHARED)]
    assert len(files) > len(SHARED)
    names = {name for file in files for name in imported(file)}
    ours = {name for name in names if name.startswith((".", "evictstream", "tests"))}
    assert {name for name in ours if not name.startswith("tests.faults.oracle")} == SHARED
