"""A mistake in the service must not be a mistake of the oracle: they share no line."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
ORACLE = ROOT / "kit" / "oracle"
OURS = "evictstream.kit.oracle"
# The hash that all clients of Kafka share.
LIBRARIES = {"kafka.partitioner.default"}


def imported(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("." * node.level + (node.module or ""))
    return found


def test_the_oracle_shares_no_code_with_the_service() -> None:
    files = sorted(ORACLE.rglob("*.py"))
    assert len(files) > 10
    names = {name for file in files for name in imported(file)}
    others = {name for name in names if name != OURS and not name.startswith(f"{OURS}.")}
    assert {name for name in others if name.partition(".")[0] not in sys.stdlib_module_names} == LIBRARIES


def test_nothing_that_is_judged_imports_the_oracle() -> None:
    rooms = {"kit/oracle", "kit/demo"}
    files = [
        file
        for room in ("kit", "models", "streams")
        for file in (ROOT / room).rglob("*.py")
        if not any(file.is_relative_to(ROOT / judge) for judge in rooms)
    ]
    assert len(files) > 100
    near = [file for file in files if "oracle" in file.read_text()]  # to parse all would take seconds
    assert [file for file in near if any(name.startswith(OURS) for name in imported(file))] == []
