"""One object that the API server or kubectl would refuse keeps no other one from its answer."""

from __future__ import annotations

import pytest

from evictstream.streams.errors import ExitCode
from tests.kit.cli.rules.conftest import Rules, WriteFile

NODE = "{kind: Node, metadata: {name: n1, uid: u1}, spec: {taints: [{key: sla, value: '950', effect: NoExecute}]}}"
BAD_NODE = "{kind: Node, metadata: {name: n2, uid: u2}, spec: {taints: [{key: sla}]}}"
GT = (
    "{kind: Pod, metadata: {name: gt, uid: u3}, spec: {nodeName: n1, tolerations:"
    " [{key: sla, operator: Gt, value: '900', effect: NoExecute, tolerationSeconds: 30}]}}"
)
PLAIN = "{kind: Pod, metadata: {name: plain, uid: u4}, spec: {nodeName: n1}}"
ELSEWHERE = "{kind: Pod, metadata: {name: elsewhere, uid: u5}, spec: {nodeName: n2}}"
MISSPELT = "{kind: Pod, metadata: {name: misspelt}, spec: {toleration: []}}"


def _file(write: WriteFile, *objects: str) -> str:
    return write("\n---\n".join(objects))


def test_verdicts_are_given_for_the_others(rules: Rules, write: WriteFile) -> None:
    file = _file(write, NODE, BAD_NODE, GT, PLAIN, ELSEWHERE, MISSPELT)
    answer = rules("verdict", "--node", file, "--pod", file, "-o", "json")
    assert answer.code == ExitCode.FOUND_PROBLEM
    assert [(one["pod"], one["node"], one["eviction"]["verdict"]) for one in answer.json["verdicts"]] == [
        ("default/plain", "n1", "evict-now")
    ]
    assert answer.json["notJudged"] == [{"pod": "default/elsewhere", "node": "n2", "reason": "NodeRefused"}]
    assert [(error["object"], error["field"]) for error in answer.json["errors"]] == [
        ("Node n2", "spec.taints[0].effect"),
        ("Pod default/gt", "spec.tolerations[0].operator"),
        ("Pod default/misspelt", "spec.toleration"),
    ]
    assert answer.err.count("\n") == 1


def test_text_has_both_tables(rules: Rules, write: WriteFile) -> None:
    file = _file(write, NODE, BAD_NODE, GT, PLAIN, ELSEWHERE)
    answer = rules("verdict", "--node", file, "--pod", file)
    assert answer.code == ExitCode.FOUND_PROBLEM
    told, problems = answer.out.split("\n\n")
    assert [line.split()[0] for line in told.splitlines()] == ["pod", "default/plain", "default/elsewhere"]
    assert "node would be refused" in told
    assert len(problems.splitlines()) == 3
    assert answer.err == (
        "evictstream: skipped, because the API server or kubectl would refuse it: Node n2, Pod default/gt\n"
    )


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_the_switch_for_comparison_is_named(operator: str, rules: Rules, write: WriteFile) -> None:
    file = _file(write, NODE, GT.replace("Gt", operator), PLAIN)
    for arguments in (["verdict", "--node", file, "--pod", file], ["tolerations", file, "--node", file]):
        answer = rules(*arguments)
        assert answer.code == ExitCode.FOUND_PROBLEM
        assert "give --comparison-operators" in answer.out
        assert f'Unsupported value: "{operator}": supported values: "Equal", "Exists";' in answer.out
        assert rules(*arguments, "--comparison-operators").code == ExitCode.DONE


def test_tolerations_of_the_other_pods_are_told(rules: Rules, write: WriteFile) -> None:
    file = _file(write, NODE, BAD_NODE, GT, PLAIN)
    answer = rules("tolerations", file, "--node", file, "-o", "json")
    assert answer.code == ExitCode.FOUND_PROBLEM
    assert [pod["pod"] for pod in answer.json["pods"]] == ["default/plain"]
    assert [error["object"] for error in answer.json["errors"]] == ["Pod default/gt", "Node n2"]


def test_where_all_are_refused_only_errors_are_printed(rules: Rules, write: WriteFile) -> None:
    file = _file(write, NODE, GT)
    answer = rules("verdict", "--node", file, "--pod", file, "-o", "json")
    assert (answer.code, answer.err, list(answer.json)) == (ExitCode.FOUND_PROBLEM, "", ["errors"])
