"""A service starts without what it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

USING = """
import gc, sys
from evictstream.streams.cli.service_imports import service_imports
with service_imports():
    import structlog
    assert not gc.isenabled()
assert gc.isenabled()
assert "rich" not in sys.modules
import rich.console
"""


def test_the_collector_runs_and_rich_can_be_imported_afterwards() -> None:
    subprocess.run([sys.executable, "-c", USING], check=True)


@pytest.mark.parametrize("command", ["feed", "execute"])
def test_nothing_imports_structlog_before(command: str) -> None:
    program = [sys.executable, "-X", "importtime", "-m", "evictstream.streams.cli.main"]
    ended = subprocess.run([*program, command, "--cluster", "a/b"], check=False, capture_output=True, text=True)
    imported = {line.rpartition("|")[2].strip() for line in ended.stderr.splitlines()}
    assert "structlog" in imported
    assert "rich.console" not in imported
