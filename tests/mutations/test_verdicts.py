"""What counts as noticed: a test that fails, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutations import __main__ as tool
from tests.mutations.catalogue import Mutation

TIMED_OUT = -1
MUTATION = Mutation("break it", "it.py", (("1", "2"),), ("test_it.py",))


@pytest.mark.parametrize(
    ("ends_with", "verdict", "exit_code"),
    [
        pytest.param(1, "noticed", 0, id="test failed"),
        pytest.param(0, "UNNOTICED", 1, id="test passed"),
        pytest.param(TIMED_OUT, "no verdict (timed out)", 1, id="test took too long"),
        pytest.param(4, "no verdict (pytest's exit code 4)", 1, id="no such test"),
    ],
)
def test_a_run_succeeds_only_if_each_test_failed(
    ends_with: int,
    verdict: str,
    exit_code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(command: list[str], *, timeout: float, **_: object) -> subprocess.CompletedProcess[bytes]:
        if ends_with == TIMED_OUT:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, ends_with)

    (tmp_path / "it.py").write_text("1")
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["mutations", "--only", MUTATION.name])
    monkeypatch.setattr(tool, "MUTATIONS", (MUTATION,))
    monkeypatch.setattr(tool, "BY_TORTURE", ())
    assert tool.main() == exit_code
    assert capsys.readouterr().out.startswith(f"{verdict:9} {MUTATION.name}: {MUTATION.tests[0]}")
