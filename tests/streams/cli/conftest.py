"""The command line as a user has it: a process with arguments, an environment, output and an exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.harness import copies

Result = subprocess.CompletedProcess[str]
RunCli = Callable[..., Result]

COMMAND = [sys.executable, "-m", "evictstream.streams.cli.main"]
TIMEOUT_SECONDS = 60


@pytest.fixture
def cli() -> RunCli:
    """Run one command line to its end; `environment` is added to a clean one. Fails the test on any traceback."""

    def run(*arguments: str, **environment: str) -> Result:
        result = copies.run(
            [*COMMAND, *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )
        assert "Traceback" not in result.stderr
        return result

    return run
