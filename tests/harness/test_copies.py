"""A copy behaves as a process that is started: what it reads, writes, inherits and obeys."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness import copies

SHOW = "tests.harness.shown_process"
WAYS = [pytest.param(copies.start, id="copied"), pytest.param(subprocess.Popen, id="started")]

Start = Callable[..., subprocess.Popen[Any]]


@pytest.mark.parametrize("start", WAYS)
@pytest.mark.parametrize(("options", "code"), [((), 7), (copies.STRICT, 1)], ids=["usual", "strict"])
def test_it_has_its_own_arguments_input_environment_and_exit_code(
    start: Start, options: tuple[str, ...], code: int
) -> None:
    with start(
        [sys.executable, *options, "-m", SHOW, "a", "b c"],
        env=os.environ | {"SHOWN": "given", "PYTHONPATH": str(Path.cwd())},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        stdout, stderr = process.communicate("read\n", 30)
    assert stdout == "['a', 'b c'] 'read\\n' 'given' '/' __main__\nleft\n"
    assert "UserWarning: odd" in stderr
    assert process.returncode == code


@pytest.mark.parametrize("start", WAYS)
def test_a_signal_ends_it_and_is_its_exit_code(start: Start) -> None:
    with start([sys.executable, "-m", SHOW], stdin=subprocess.PIPE) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.terminate()
        assert process.wait(30) == process.poll() == -signal.SIGTERM
