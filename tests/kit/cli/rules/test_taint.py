"""`evictstream rules taint`: kubectl's grammar on files (semantics.md 10)."""

from __future__ import annotations

import json

import pytest

from evictstream.streams.errors import ExitCode
from tests.kit.cli.rules.conftest import Rules, WriteFile

NODE: dict[str, object] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"a": "b"}},
    "spec": {
        "podCIDR": "10.0.0.0/24",
        "taints": [{"key": "old", "value": "v", "effect": "NoExecute", "timeAdded": "2024-01-01T00:00:00Z"}],
    },
    "status": {"phase": "x"},
}


def taints(*found: dict[str, str]) -> dict[str, object]:
    spec: dict[str, object] = {"podCIDR": "10.0.0.0/24"} | ({"taints": list(found)} if found else {})
    return NODE | {"spec": spec}


OLD = {"key": "old", "value": "v", "effect": "NoExecute", "timeAdded": "2024-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(
            ["new=x:NoSchedule"],
            taints({"key": "new", "value": "x", "effect": "NoSchedule"}, OLD),
            id="10 new ones first, old ones as they were",
        ),
        pytest.param(["old-"], taints(), id="10 the last taint removed"),
        pytest.param(["old:NoExecute-"], taints(), id="10 removed by effect"),
        pytest.param(
            ["old=w:NoExecute", "--overwrite"],
            taints({"key": "old", "value": "w", "effect": "NoExecute"}),
            id="10 overwritten",
        ),
        pytest.param(
            ["a:NoExecute", "b:NoSchedule", "old-"],
            taints({"key": "a", "effect": "NoExecute"}, {"key": "b", "effect": "NoSchedule"}),
            id="10 several at once",
        ),
    ],
)
def test_the_changed_node(arguments: list[str], expected: object, rules: Rules, write: WriteFile) -> None:
    answer = rules("taint", write(json.dumps(NODE)), *arguments, "-o", "json")
    assert answer.code == ExitCode.DONE
    assert answer.json == expected


def test_the_file_stays_as_it_is(rules: Rules, write: WriteFile) -> None:
    path = write(json.dumps(NODE))
    rules("taint", path, "new:NoExecute")
    assert rules("taint", path, "new:NoExecute").code == ExitCode.DONE


def test_several_nodes_come_out_as_a_list(rules: Rules, write: WriteFile) -> None:
    path = write("{kind: Node, metadata: {name: a}}\n---\n{kind: Node, metadata: {name: b}}\n---\n{kind: Other}\n")
    answer = rules("taint", path, "k:NoExecute", "-o", "json").json
    assert (answer["apiVersion"], answer["kind"]) == ("v1", "List")
    assert [item["metadata"]["name"] for item in answer["items"]] == ["a", "b"]
    assert all(item["spec"]["taints"] == [{"key": "k", "effect": "NoExecute"}] for item in answer["items"])


def test_what_comes_out_can_be_read_again(rules: Rules, write: WriteFile) -> None:
    first = rules("taint", write(json.dumps(NODE)), "k:NoSchedule", "-o", "json")
    second = rules("taint", write(first.out), "k-", "-o", "json")
    assert second.json == NODE


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["new:NoExecute"], "tainted"),
        (["old-"], "untainted"),
        (["old:NoExecute", "--overwrite"], "modified"),
        (["new:NoExecute", "--overwrite"], "modified"),
        (["new:NoExecute", "old-"], "modified"),
    ],
)
def test_the_word_of_kubectl(arguments: list[str], word: str, rules: Rules, write: WriteFile) -> None:
    assert rules("taint", write(json.dumps(NODE)), *arguments).out.splitlines()[0] == f"node/n1 {word}"


def test_text_tells_new_taints_from_kept_ones(rules: Rules, write: WriteFile) -> None:
    _, _, *rows = rules("taint", write(json.dumps(NODE)), "new:NoSchedule").out.splitlines()
    assert [row.split() for row in rows] == [
        ["n1", "new", "NoSchedule", "new"],
        ["n1", "old", "v", "NoExecute", "kept"],
    ]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(
            ["old=w:NoExecute"],
            "node n1 already has old taint(s) with same effect(s) and --overwrite is false",
            id="10 exists",
        ),
        pytest.param(["nope-"], 'taint "nope" not found', id="10 removal of what is not there"),
        pytest.param(
            ["a-", "b:NoExecute-"],
            '[taint "a" not found, taint "b:NoExecute" not found]',
            id="10 two removals of what is not there",
        ),
    ],
)
def test_what_kubectl_would_refuse_for_this_node(
    arguments: list[str], line: str, rules: Rules, write: WriteFile
) -> None:
    answer = rules("taint", write(json.dumps(NODE)), *arguments)
    assert answer == (ExitCode.FOUND_PROBLEM, "", f"evictstream: {line}\n")


class TestSeveralNodes:
    """kubectl visits each node for itself, and ends with 1 if it could not change one."""

    LACKING = "{apiVersion: v1, kind: Node, metadata: {name: a}}\n---\n"
    NOT_FOUND = 'evictstream: node a: taint "old" not found\n'

    def test_a_node_that_lacks_the_taint_keeps_no_other(self, rules: Rules, write: WriteFile) -> None:
        path = write(self.LACKING + json.dumps(NODE))
        answer = rules("taint", path, "old-", "-o", "json")
        assert (answer.code, answer.err) == (ExitCode.FOUND_PROBLEM, self.NOT_FOUND)
        assert answer.json["items"] == [
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}},
            taints(),
        ]
        told = rules("taint", path, "old-")
        assert told == (ExitCode.FOUND_PROBLEM, "node/n1 untainted\n", self.NOT_FOUND)

    def test_a_node_that_has_the_taint_already_keeps_no_other(self, rules: Rules, write: WriteFile) -> None:
        answer = rules("taint", write(self.LACKING + json.dumps(NODE)), "old=w:NoExecute")
        assert answer.code == ExitCode.FOUND_PROBLEM
        assert answer.out.splitlines()[0] == "node/a tainted"
        assert (
            answer.err == "evictstream: node n1 already has old taint(s) with same effect(s) and --overwrite is false\n"
        )

    def test_nothing_is_printed_where_none_can_be_changed(self, rules: Rules, write: WriteFile) -> None:
        answer = rules("taint", write(self.LACKING + json.dumps(NODE)), "nope-", "-o", "json")
        assert answer.code == ExitCode.FOUND_PROBLEM
        assert answer.out == ""
        assert json.loads(answer.err)["message"] == 'node a: taint "nope" not found; node n1: taint "nope" not found'

    def test_a_node_that_would_be_refused_keeps_no_other(self, rules: Rules, write: WriteFile) -> None:
        bad = "{kind: Node, metadata: {name: b}, spec: {taint: []}}\n---\n"
        answer = rules("taint", write(bad + json.dumps(NODE)), "old-", "-o", "json")
        assert answer.code == ExitCode.FOUND_PROBLEM
        assert answer.json == taints()
        assert "Node b (spec.taint: Forbidden: unknown field, did you mean taints?)" in answer.err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(["foo"], "invalid taint spec: foo", id="10 no effect"),
        pytest.param(["foo=a=b:NoExecute"], "invalid taint spec: foo=a=b:NoExecute", id="10 two ="),
        pytest.param(["foo:Never"], "invalid taint effect: Never, unsupported taint effect", id="10 effect"),
        pytest.param(
            ["a:NoExecute", "a:NoExecute"],
            "duplicated taints with the same key and effect: {a NoExecute <nil>}",
            id="10 twice",
        ),
        pytest.param(
            ["a:NoExecute", "a-"],
            "can not both modify and remove the following taint(s) in the same command: a=",
            id="10 added and removed",
        ),
        pytest.param([], "Missing argument 'TAINT...'. Try --help.", id="10 at least one taint"),
    ],
)
def test_what_kubectl_cannot_read(arguments: list[str], line: str, rules: Rules, write: WriteFile) -> None:
    assert rules("taint", write(json.dumps(NODE)), *arguments) == (ExitCode.WRONG_USE, "", f"evictstream: {line}\n")
