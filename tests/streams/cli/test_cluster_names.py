"""A text that no key can carry is no cluster, for every command that takes one, before it does anything."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from evictstream.streams.cli.main import AnyCommand, run
from evictstream.streams.errors import ExitCode
from tests.streams.cli.command_tree import commands

ARN = "arn:aws:eks:eu-west-1:111122223333:cluster/shop"
BAD = {"arn": ARN, "empty": "", "slash": "a/b", "long": "n" * 1_000}
WITH_CONTEXT = {"feed", "execute"}


def _naming() -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield the words of each command that takes a cluster, and what else it cannot do without."""
    for words, command in commands():
        if any("--cluster" in parameter.opts for parameter in command.params):
            yield words, [*_needed(command), "--cluster"]
        elif words[:1] == ("cluster",):
            yield words, []


def _needed(command: AnyCommand) -> list[str]:
    return ["x" for parameter in command.params if parameter.param_type_name == "argument" and parameter.required]


NAMING = list(_naming())


def test_the_commands_that_name_a_cluster_are_found() -> None:
    assert {" ".join(words) for words, _ in NAMING} == {
        "accept-gap",
        "cluster forget",
        "commands",
        "describe node",
        "describe pod",
        "execute",
        "explain",
        "feed",
        "get dead-letters",
        "get evictions",
        "get nodes",
        "hold",
        "import",
        "record",
        "policy test",
        "replay",
        "shadow",
        "what-if",
    }


@pytest.mark.parametrize("name", BAD.values(), ids=BAD)
@pytest.mark.parametrize(("words", "more"), NAMING, ids=["-".join(words) for words, _ in NAMING])
def test_what_is_no_name_is_refused_alike(
    words: tuple[str, ...], more: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, *more, name]) == ExitCode.WRONG_USE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "cannot be the name of a cluster" in shown.err


def test_every_command_says_the_same_of_an_arn(capsys: pytest.CaptureFixture[str]) -> None:
    said = set()
    for words, more in NAMING:
        run([*words, *more, ARN])
        shown = capsys.readouterr().err
        # Of a service it is a line of its log.
        said.add(json.loads(shown)["error"] if shown.startswith("{") else shown.strip().removeprefix("evictstream: "))
    (sentence,) = said
    assert f"`--cluster shop={ARN}`" in sentence


@pytest.mark.parametrize("command", sorted(WITH_CONTEXT))
@pytest.mark.parametrize(
    ("name", "line"),
    [
        pytest.param(f"{ARN}=admin", "`--cluster shop=admin`", id="slash-before-context"),
        pytest.param("=admin", "cannot be the name of a cluster", id="no-name"),
        pytest.param("lab=", "--cluster lab= has no context", id="no-context"),
    ],
)
def test_a_context_cannot_mend_a_name(command: str, name: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-b", "127.0.0.1:1", command, "--cluster", name]) == ExitCode.WRONG_USE
    assert line in capsys.readouterr().err


def test_files_that_name_such_a_cluster_are_refused(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path_factory.mktemp("named") / "events.jsonl"
    file.write_text(
        '{"cluster": "a/b", "type": "ADDED", "observedAt": "2026-11-21T02:00:00Z", "object": {"apiVersion": "v1",'
        ' "kind": "Node", "metadata": {"name": "n", "uid": "u", "resourceVersion": "1"}, "spec": {}}}\n'
    )
    assert run(["replay", str(file)]) == ExitCode.WRONG_USE
    assert "cannot be the name of a cluster" in capsys.readouterr().err
    assert run(["replay", str(file), "--cluster", "lab"]) == ExitCode.DONE
