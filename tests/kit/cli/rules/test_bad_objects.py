"""Objects that the API server would refuse: every error with field and rule, and exit code 1 (semantics.md 2)."""

from __future__ import annotations

import pytest

from evictstream.streams.errors import ExitCode
from tests.kit.cli.rules.conftest import Rules, WriteFile

GOOD_NODE = "{kind: Node, metadata: {name: n1}}"
GOOD_POD = "{kind: Pod, metadata: {name: p}}"


def node(taints: str) -> str:
    return f"{{kind: Node, metadata: {{name: n1}}, spec: {{taints: {taints}}}}}"


def pod(tolerations: str) -> str:
    return f"{{kind: Pod, metadata: {{name: p}}, spec: {{tolerations: {tolerations}}}}}"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param(
            node("[{effect: NoExecute}]"), ["spec.taints[0].key", "spec.taints[0].key"], id="2.1 key required"
        ),
        pytest.param(node("[{key: a b, effect: NoExecute}]"), ["spec.taints[0].key"], id="2.1 illegal key"),
        pytest.param(
            node("[{key: a, value: a b, effect: NoExecute}]"), ["spec.taints[0].value"], id="2.1 illegal value"
        ),
        pytest.param(node("[{key: a}]"), ["spec.taints[0].effect"], id="2.1 effect required"),
        pytest.param(node("[{key: a, effect: Never}]"), ["spec.taints[0].effect"], id="2.1 unknown effect"),
        pytest.param(
            node("[{key: a, effect: NoExecute}, {key: a, value: b, effect: NoExecute}]"),
            ["spec.taints[1]"],
            id="2.1 pair twice",
        ),
        pytest.param(
            node("[{key: a b, value: a b}, {key: a, effect: x}]"),
            ["spec.taints[0].key", "spec.taints[0].value", "spec.taints[0].effect", "spec.taints[1].effect"],
            id="2.1 all at once",
        ),
        pytest.param(node("[{key: 1, effect: NoExecute}]"), ["spec.taints[0].key"], id="type of a key"),
        pytest.param(
            node("[{key: a, value: yes, effect: NoExecute}]"), ["spec.taints[0].value"], id="an unquoted yes is no text"
        ),
        pytest.param(
            node("[{key: a, effect: NoExecute, timeAdded: soon}]"), ["spec.taints[0].timeAdded"], id="type of timeAdded"
        ),
        pytest.param(node("{}"), ["spec.taints"], id="taints no list"),
        pytest.param(node("[x]"), ["spec.taints[0]"], id="taint no object"),
        pytest.param(
            node("[{key: a, effects: NoExecute, effect: NoExecute}]"), ["spec.taints[0].effects"], id="misspelt"
        ),
        pytest.param("{kind: Node, metadata: {name: n1}, spec: []}", ["spec"], id="spec no object"),
        pytest.param(
            "{kind: Node, metadata: {name: n1}, spec: {unschedulable: 1}}", ["spec.unschedulable"], id="cordon no flag"
        ),
        pytest.param("{kind: Node}", ["metadata.name"], id="no name"),
        pytest.param("{kind: Node, metadata: {name: 5}}", ["metadata.name"], id="type of the name"),
        pytest.param("{metadata: {name: n1}}", ["kind"], id="no kind"),
        pytest.param("{kind: [Node], metadata: {name: n1}}", ["kind"], id="type of the kind"),
    ],
)
def test_nodes(text: str, fields: list[str], rules: Rules, write: WriteFile) -> None:
    path = write(text)
    answer = rules("verdict", "--node", path, "--pod", write(GOOD_POD), "-o", "json")
    assert answer.code == ExitCode.FOUND_PROBLEM
    assert [error["field"] for error in answer.json["errors"]] == fields
    assert {error["source"] for error in answer.json["errors"]} == {path}
    assert all(error["rule"] for error in answer.json["errors"])


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param(pod("[{key: a b}]"), ["spec.tolerations[0].key"], id="2.2 illegal key"),
        pytest.param(pod("[{effect: NoExecute}]"), ["spec.tolerations[0].operator"], id="2.2 no key needs Exists"),
        pytest.param(
            pod("[{key: a, operator: Exists, tolerationSeconds: 5}]"),
            ["spec.tolerations[0].effect"],
            id="2.2 seconds need NoExecute",
        ),
        pytest.param(pod("[{key: a, operator: In}]"), ["spec.tolerations[0].operator"], id="2.2 unknown operator"),
        pytest.param(pod("[{key: a, value: a b}]"), ["spec.tolerations[0].operator"], id="2.2 illegal value"),
        pytest.param(
            pod("[{key: a, operator: Exists, value: b}]"), ["spec.tolerations[0].operator"], id="2.2 Exists with value"
        ),
        pytest.param(
            pod("[{key: a, operator: Exists, effect: x}]"), ["spec.tolerations[0].effect"], id="2.2 unknown effect"
        ),
        pytest.param(
            pod("[{key: a b, operator: In, effect: x, tolerationSeconds: 1}]"),
            [
                "spec.tolerations[0].key",
                "spec.tolerations[0].effect",
                "spec.tolerations[0].operator",
                "spec.tolerations[0].effect",
            ],
            id="2.2 all at once",
        ),
        pytest.param(
            pod("[{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: '5'}]"),
            ["spec.tolerations[0].tolerationSeconds"],
            id="seconds as text",
        ),
        pytest.param(
            pod("[{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 9223372036854775808}]"),
            ["spec.tolerations[0].tolerationSeconds"],
            id="seconds beyond 64 bit",
        ),
        pytest.param(
            pod("[{key: a, operator: Exists, effect: NoExecute, tolerationSecond: 5}]"),
            ["spec.tolerations[0].tolerationSecond"],
            id="misspelt",
        ),
        pytest.param(pod("text"), ["spec.tolerations"], id="tolerations no list"),
        pytest.param("{kind: Pod, metadata: []}", ["metadata"], id="metadata no object"),
        pytest.param(
            "{kind: Pod, metadata: {generateName: p-}, spec: {hostNetwork: 1}}", ["spec.hostNetwork"], id="flag"
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p, annotations: {a: 1}}}", ["metadata.annotations.a"], id="annotation no text"
        ),
        pytest.param(
            "{kind: Pod, metadata: {name: p}, spec: {containers: [{resources: {requests: {cpu: [1]}}}]}}",
            ["spec.containers[0].resources.requests[cpu]"],
            id="amount no quantity",
        ),
    ],
)
def test_pods(text: str, fields: list[str], rules: Rules, write: WriteFile) -> None:
    for command in (["tolerations"], ["verdict", "--node", write(GOOD_NODE), "--pod"]):
        answer = rules(*command, write(text), "-o", "json")
        assert answer.code == ExitCode.FOUND_PROBLEM
        errors = answer.json["errors"]
        assert [error["field"] for error in errors][: len(fields)] == fields or {
            error["field"] for error in errors
        } == set(fields)


def test_errors_of_all_objects_are_listed(rules: Rules, write: WriteFile) -> None:
    nodes, pods = write(node("[{key: a}]")), write(pod("[{key: a, operator: In}]"))
    answer = rules("verdict", "--node", nodes, "--pod", pods, "-o", "json")
    assert answer.json == {
        "errors": [
            {
                "source": nodes,
                "object": "Node n1",
                "field": "spec.taints[0].effect",
                "type": "FieldValueRequired",
                "value": "",
                "rule": "Required value",
            },
            {
                "source": pods,
                "object": "Pod default/p",
                "field": "spec.tolerations[0].operator",
                "type": "FieldValueNotSupported",
                "value": "In",
                "rule": 'supported values: "Equal", "Exists"',
            },
        ]
    }


def test_text_is_a_row_for_each_error(rules: Rules, write: WriteFile) -> None:
    answer = rules("taint", write(node("[{key: a}, {key: b, effect: x}]")), "c:NoExecute")
    assert answer.code == ExitCode.FOUND_PROBLEM
    title, *rows = answer.out.splitlines()
    assert title.split() == ["file", "object", "field", "problem"]
    assert len(rows) == 2
    assert "spec.taints[0].effect" in rows[0]
    assert "Required value" in rows[0]
    assert 'Unsupported value: "x": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"' in rows[1]
