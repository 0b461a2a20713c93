from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from typing import NoReturn

import pytest
import typer

from evictstream.streams.cli import main
from evictstream.streams.cli.main import COMMANDS, run
from evictstream.streams.errors import ExitCode, FoundProblemError
from tests.streams.cli.conftest import RunCli


def test_help_names_every_command_with_its_sentence(cli: RunCli) -> None:
    result = cli("--help", COLUMNS="200")
    assert result.returncode == ExitCode.DONE
    for name, sentence in COMMANDS.items():
        assert name in result.stdout
        assert sentence in result.stdout


def test_no_arguments_are_a_question_for_help(cli: RunCli) -> None:
    assert cli().stdout == cli("--help").stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str, cli: RunCli) -> None:
    result = cli(name, "--help")
    assert result.returncode == ExitCode.DONE
    if "COMMAND" not in result.stdout:  # else the examples are with its sub-commands
        assert "Examples" in result.stdout


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from evictstream.streams.cli.main import run\n"
        "run(['--help'])\n"
        "heavy = {'faust', 'aiokafka', 'kafka', 'pydantic', 'structlog', 'jgo', 'docker'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0


def test_version(cli: RunCli) -> None:
    result = cli("--version")
    assert result.stdout.strip() == importlib.metadata.version("evictstream")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(["topic"], "No such command 'topic'. Did you mean 'topics'?", id="misspelt-command"),
        pytest.param(["topics"], "Missing command", id="no-sub-command"),
        pytest.param(["--nope"], "No such option: --nope", id="unknown-option"),
        pytest.param(["broker", "--port", "x"], "--port", id="bad-number"),
        pytest.param(["broker", "--nodes", "9"], "--nodes", id="out-of-range"),
        pytest.param(["--set", "partitions", "config"], "is not NAME=VALUE", id="set-without-value"),
        pytest.param(["--set", "partitoins=3", "config"], "did you mean partitions?", id="set-unknown"),
        pytest.param(["--set", "partitions=0", "config"], "partitions (from flag)", id="set-out-of-range"),
        pytest.param(["--config", "/nowhere.toml", "config"], "cannot read the settings file", id="no-such-file"),
        pytest.param(["topics", "check"], "set EVICTSTREAM_BOOTSTRAP_SERVERS", id="no-kafka-set"),
    ],
)
def test_wrong_use_is_one_line_and_2(arguments: list[str], line: str, cli: RunCli) -> None:
    result = cli(*arguments)
    assert result.returncode == ExitCode.WRONG_USE
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("evictstream: ")
    assert line in result.stderr


class TestFailures:
    @pytest.fixture(autouse=True)
    def broken_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """`config` that fails in the way that `self.error` says."""

        def load(_name: str) -> object:
            app = typer.Typer()

            @app.command()
            def fail() -> NoReturn:
                raise self.error

            return typer.main.get_command(app)

        self.error: BaseException = RuntimeError("boom")
        monkeypatch.setattr(main, "_load", load)

    def test_a_bug_is_one_line_and_70(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["config"]) == ExitCode.INTERNAL_FAILURE
        assert capsys.readouterr().err == "evictstream: internal failure, RuntimeError: boom; --debug shows where\n"

    def test_with_debug_the_traceback_comes_first(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["--debug", "config"]) == ExitCode.INTERNAL_FAILURE
        lines = capsys.readouterr().err.splitlines()
        assert lines[0].startswith("Traceback")
        assert lines[-1] == "evictstream: internal failure, RuntimeError: boom"

    def test_a_found_problem_is_1(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.error = FoundProblemError("it leaks", next_step="mend it")
        assert run(["config"]) == ExitCode.FOUND_PROBLEM
        assert capsys.readouterr().err == "evictstream: it leaks; mend it\n"

    def test_ctrl_c_is_130(self) -> None:
        self.error = KeyboardInterrupt()
        assert run(["config"]) == 130
