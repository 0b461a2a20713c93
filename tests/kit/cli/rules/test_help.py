"""Help of the rules' commands."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evictstream.streams.errors import ExitCode
from tests.kit.cli.rules.conftest import Rules


@pytest.mark.parametrize("name", ["verdict", "taint", "tolerations"])
def test_each_has_help_with_examples(name: str, rules: Rules) -> None:
    answer = rules(name, "--help")
    assert answer.code == ExitCode.DONE
    assert "Examples" in answer.out
    assert f"evictstream rules {name}" in " ".join(answer.out.split())


@pytest.mark.slow
def test_help_reads_no_rules() -> None:
    program = (
        "import sys\n"
        "from evictstream.streams.cli.main import run\n"
        "run(['rules', 'verdict', '--help'])\n"
        "heavy = {'yaml', 'msgspec', 'evictstream.models', 'faust'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stderr, done.returncode) == ("", 0)
