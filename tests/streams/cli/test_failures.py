"""Errors of commands: one line for people, and one object where a program reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evictstream.streams.cli.failures import Failure, asks_for_json, say_as_json
from evictstream.streams.cli.main import run
from evictstream.streams.errors import ExitCode, FileMismatchError


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        ("topics check -o json", True),
        ("topics check --output json", True),
        ("-ojson config", True),
        ("config --output=json", True),
        ("get evictions -o json -o name", False),
        ("get evictions -o yaml", False),
        ("record json -o", False),
        ("conformance feed -- ./own -o json", False),
    ],
)
def test_who_asks_for_json(typed: str, asked: bool) -> None:  # noqa: FBT001
    assert asks_for_json(typed.split()) is asked


def test_all_of_an_error_is_in_its_object(capsys: pytest.CaptureFixture[str]) -> None:
    error = FileMismatchError(Path("kafka.jar"), expected="ab", actual="cd")
    say_as_json(Failure(error.problem, error.next_step, error.exit_code, error.fields), type(error).__name__, None)
    assert json.loads(capsys.readouterr().err) == {
        "error": "FileMismatchError",
        "message": "kafka.jar has SHA-256 cd, expected ab",
        "nextStep": error.next_step,
        "exitCode": 1,
        "fields": {"path": "kafka.jar", "expected": "ab", "actual": "cd"},
    }


@pytest.mark.parametrize(
    ("typed", "error", "message"),
    [
        ("topics check -o json --nope", "NoSuchOption", "No such option: --nope."),
        ("config -o json -s partitions=0", "SettingsError", "partitions (from flag): "),
        ("explain p /nowhere -o json", "WrongUseError", "cannot open /nowhere: "),
        ("commands --from nowhen", "WrongUseError", "--from nowhen is not a time"),
    ],
)
def test_each_kind_of_wrong_use_is_one_object(
    typed: str, error: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(typed.split()) == ExitCode.WRONG_USE
    out, err = capsys.readouterr()
    said = json.loads(err)
    assert (out, said["error"], said["exitCode"]) == ("", error, ExitCode.WRONG_USE)
    assert said["message"].startswith(message)
    assert "traceback" not in said


def test_debug_adds_the_traceback_to_the_object(capsys: pytest.CaptureFixture[str]) -> None:
    run(["config", "-o", "json", "--debug", "-s", "partitions=0"])
    assert json.loads(capsys.readouterr().err)["traceback"][0].startswith("Traceback")


def test_a_command_in_a_pipe_answers_with_json(capsys: pytest.CaptureFixture[str]) -> None:
    run(["commands", "--from", "nowhen", "-o", "text"])
    assert capsys.readouterr().err.startswith("evictstream: --from nowhen is not a time")
