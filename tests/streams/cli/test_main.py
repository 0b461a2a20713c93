from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
import typer

from evictstream.streams.cli import main
from evictstream.streams.cli.main import COMMANDS, run
from evictstream.streams.errors import ExitCode, FoundProblemError
from tests.streams.cli.command_tree import commands, options_of
from tests.streams.cli.conftest import COMMAND, RunCli


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


@pytest.mark.slow
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


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version(option: str, cli: RunCli) -> None:
    result = cli(option)
    assert result.stdout.strip() == importlib.metadata.version("evictstream")


def test_a_report_gets_all_versions_from_one_command(cli: RunCli) -> None:
    shown = json.loads(cli("version", "-o", "json").stdout)
    assert shown["evictstream"] == importlib.metadata.version("evictstream")
    assert shown["libraries"]["aiokafka"] == importlib.metadata.version("aiokafka")
    assert f"Python {shown['python']}" in cli("version").stdout


@pytest.mark.parametrize(
    "question", [["topics"], ["topics", "--help"], ["help", "topics"]], ids=["alone", "option", "word"]
)
def test_a_group_tells_its_commands_and_what_it_is_for(question: list[str], cli: RunCli) -> None:
    result = cli(*question, COLUMNS="200")
    assert result.returncode == ExitCode.DONE
    assert COMMANDS["topics"] in result.stdout
    assert "declare" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("columns", [40, 200], ids=["plain", "in boxes"])
def test_help_has_plain_words_for_values(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    main._load.cache_clear()
    for words, _ in commands():
        assert run([*words, "--help"]) == ExitCode.DONE
    main._load.cache_clear()
    shown = capsys.readouterr().out
    assert re.findall(r"<[a-z].*?>", shown, re.DOTALL) == []  # `<int range>`, `<list[str]>`, `<bool>`
    assert {"SECONDS", "NUMBER", "NAME", "text|json"} <= set(shown.split())


def test_schemas_are_printed(cli: RunCli) -> None:
    for name in cli("schema").stdout.split():
        assert json.loads(cli("schema", name).stdout)["$id"] == f"urn:evictstream:v1:{name}"
    wrong = cli("schema", "nope")
    assert wrong.returncode == ExitCode.WRONG_USE
    assert "name one of brake, command, " in wrong.stderr


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_help_cuts_no_name(columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in (["topics", "declare"], ["what-if"], ["rules", "verdict"], ["execute"]):
        main._load.cache_clear()  # a terminal has its width when the process starts
        run([*words, "--help"])
    main._load.cache_clear()
    shown = capsys.readouterr().out
    assert "…" not in shown
    assert {"--bootstrap-servers", "--large-cluster-size-threshold", "--not-ready-seconds"} <= set(shown.split())


@pytest.mark.parametrize("arguments", [["--help"], ["what-if", "--help"], ["config"]], ids="-".join)
def test_a_reader_that_has_gone_is_no_failure(arguments: list[str]) -> None:
    nobody, pipe = os.pipe()
    os.close(nobody)
    done = subprocess.run([*COMMAND, *arguments], stdout=pipe, stderr=subprocess.PIPE, check=False)
    os.close(pipe)
    assert (done.returncode, done.stderr) == (ExitCode.DONE, b"")


class TestGlobalOptionsAfterACommand:
    def test_each_command_takes_them(self) -> None:
        names = {"--config", "--bootstrap-servers", "-b", "--set", "-s", "--debug"}
        assert [words for words, command in commands() if not names <= options_of(command)] == []

    def test_none_has_two_meanings(self) -> None:
        for words, command in commands():
            names = [parameter.name for parameter in command.params]
            typed = [text for parameter in command.params for text in (*parameter.opts, *parameter.secondary_opts)]
            assert len(set(names)) == len(names), words
            assert len(set(typed)) == len(typed), words

    def test_they_mean_the_same_there(self, cli: RunCli, tmp_path: Path) -> None:
        file = tmp_path / "evictstream.toml"
        file.write_text("state_version = 2")
        options = ["--config", str(file), "-b", "kafka:9092", "-s", "partitions=16"]
        assert cli("config", "-o", "json", *options).stdout == cli(*options, "config", "-o", "json").stdout

    def test_the_last_one_counts(self, cli: RunCli) -> None:
        line = ["-s", "partitions=2", "-s", "state_version=2", "-b", "x:1", "config", "-s", "partitions=3", "-b", "y:1"]
        shown = json.loads(cli(*line, "-o", "json").stdout)
        given = ("partitions", "state_version", "bootstrap_servers")
        assert [shown[name]["value"] for name in given] == [3, 2, "y:1"]

    def test_debug_shows_where(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["config", "--debug", "-s", "partitions=0"]) == ExitCode.WRONG_USE
        assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(["topic"], "No such command 'topic'. Did you mean 'topics'?", id="misspelt-command"),
        pytest.param(["topics", "-b", "x:1"], "Missing command. Try", id="no-sub-command"),
        pytest.param(["--nope"], "No such option: --nope. Try --help.", id="unknown-option"),
        pytest.param(["help", "nope"], "No such command 'nope'.", id="help-for-nothing"),
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
