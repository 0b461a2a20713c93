"""Completion of shells, and the plugins of kubectl and k9s."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.cli import main
from tests.deploy.pages import ROOT
from tests.streams.cli.command_tree import commands
from tests.streams.cli.conftest import RunCli

K9S = yaml.safe_load((ROOT / "examples/k9s/plugins.yaml").read_text(encoding="utf-8"))["plugins"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_valid_in_its_shell(shell: str, cli: RunCli) -> None:
    script = cli("completion", shell).stdout
    assert main.COMPLETION_VARIABLE in script
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("evictstream ge", ["get"]),
        ("evictstream get ", ["evictions", "nodes", "clusters", "dead-letters"]),
        ("evictstream get evictions --name", ["--namespace"]),
        ("evictstream get nodes -o ", ["table", "wide", "json", "yaml", "name"]),
    ],
)
def test_what_can_be_typed_next(words: str, expected: list[str], cli: RunCli) -> None:
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), main.COMPLETION_VARIABLE: "complete_bash"}
    assert cli(**variables).stdout.split() == expected


def test_kubectl_finds_its_plugin(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    module, _, function = scripts["kubectl-evictstream"].partition(":")
    assert (module, function) == (main.__name__, "kubectl_plugin")
    monkeypatch.setattr("sys.argv", ["kubectl-evictstream", "get", "evictions", "--help"])
    with pytest.raises(SystemExit) as ended:
        main.kubectl_plugin()
    assert ended.value.code == 0
    assert "Usage: kubectl evictstream get evictions" in capsys.readouterr().out


@pytest.mark.parametrize("name", K9S)
def test_k9s_runs_commands_that_exist(name: str) -> None:
    known = {" ".join(words) for words, _ in commands()}
    called = re.findall(r"evictstream ((?:get|describe) \w+|explain)", " ".join(K9S[name]["args"]))
    assert called
    assert set(called) <= known
    assert {"shortCut", "description", "scopes", "command"} <= K9S[name].keys()
