"""What counts as noticed: a test that fails, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.mutations import __main__ as tool
from tests.mutations.catalogue import Mutation
from tests.mutations.matching import Change

TIMED_OUT = -1
MUTATION = Mutation("break it", (Change("it", "", "IT = 1", "IT = 2"),), ("test_it.py",))
UNBROKEN = "IT = 1\n"


@pytest.mark.parametrize(
    ("unbroken", "ends_with", "last_line", "exit_code"),
    [
        pytest.param(0, 1, "1 noticed, 0 not noticed", 0, id="test failed"),
        pytest.param(0, 0, "0 noticed, 1 not noticed", 1, id="test passed"),
        pytest.param(0, TIMED_OUT, "0 noticed, 1 not noticed", 1, id="test took too long"),
        pytest.param(0, 4, "0 noticed, 1 not noticed", 1, id="no such test"),
        pytest.param(1, 1, "fails without any mutation: test_it.py", 1, id="test fails anyway"),
    ],
)
def test_a_run_succeeds_only_if_each_test_failed(
    unbroken: int,
    ends_with: int,
    last_line: str,
    exit_code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(
        command: list[str], *, cwd: Path, env: Mapping[str, str], timeout: float, **_: object
    ) -> subprocess.CompletedProcess[bytes]:
        assert env["PYTHONPATH"] == str(cwd / "src")
        if (cwd / "src/it.py").read_text() == UNBROKEN:
            return subprocess.CompletedProcess(command, unbroken)
        if ends_with == TIMED_OUT:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, ends_with)

    (tmp_path / "src").mkdir()
    (tmp_path / "src/it.py").write_text(UNBROKEN)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["mutations", "--only", MUTATION.name])
    monkeypatch.setattr(tool, "ALL", (MUTATION,))
    assert tool.main() == exit_code
    assert capsys.readouterr().out.splitlines()[-1] == last_line
