"""`evictstream handover policy` as it is typed."""

from __future__ import annotations

import json

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.cli.main import run
from evictstream.streams.errors import ExitCode
from evictstream.streams.handover.policy_objects import policy_objects


@pytest.mark.parametrize(
    ("options", "more", "guard", "excluded"),
    [
        pytest.param([], 3600, True, [], id="default"),
        pytest.param(["--more", "86400"], 86_400, True, [], id="more"),
        pytest.param(["--none", "--no-guard"], None, False, [], id="none"),
        pytest.param(["--exclude-namespace", "a", "--exclude-namespace", "b"], 3600, True, ["a", "b"], id="excluded"),
    ],
)
def test_the_policy_is_printed_for_kubectl(
    *, options: list[str], more: int | None, guard: bool, excluded: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    expected = policy_objects(more, guard=guard, excluded=excluded)
    assert run(["handover", "policy", *options]) == ExitCode.DONE
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == expected
    assert run(["handover", "policy", *options, "-o", "json"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out) == {"apiVersion": "v1", "kind": "List", "items": expected}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(["--more", "20", "--none"], "--more and --none contradict each other", id="both"),
        pytest.param(["--more", "0"], "--more", id="no-more"),
        pytest.param(["--more", "31536001"], "--more", id="too-much"),
        pytest.param(["--more", "1h"], "valid integer", id="no-number"),
        pytest.param(["--exclude-namespace", "Kube-System"], "cannot be the name of a namespace", id="capitals"),
        pytest.param(["--exclude-namespace", "a" * 64], "cannot be the name of a namespace", id="long"),
        pytest.param(["--exclude-namespace", ""], "cannot be the name of a namespace", id="empty"),
    ],
)
def test_wrong_options_are_refused(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["handover", "policy", *options]) == ExitCode.WRONG_USE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
