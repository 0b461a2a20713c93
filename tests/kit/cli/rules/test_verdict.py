"""`evictstream rules verdict`: expected values from semantics.md 3 to 5."""

from __future__ import annotations

import json
import subprocess

import pytest

from evictstream.streams.errors import ExitCode
from tests.kit.cli.rules.conftest import Rules, WriteFile
from tests.streams.cli.conftest import COMMAND

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
spec:
  taints: [%s]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p1}
spec:
  tolerations: [%s]
"""
NO_EXECUTE = "{key: k, value: v, effect: NoExecute}"
TAINT = {"key": "k", "value": "v", "effect": "NoExecute"}


def only(answer: object) -> dict[str, dict[str, object]]:
    (verdict,) = answer["verdicts"]  # type: ignore[index] # JSON
    return verdict  # type: ignore[no-any-return] # as above


@pytest.mark.parametrize(
    ("taints", "tolerations", "verdict", "seconds", "toleration"),
    [
        pytest.param("", "", "evict-never", None, None, id="3.3 no taints"),
        pytest.param(NO_EXECUTE, "", "evict-now", 0, None, id="3.4 no toleration"),
        pytest.param(
            NO_EXECUTE,
            "{key: k, operator: Exists}",
            "evict-never",
            None,
            {"key": "k", "operator": "Exists"},
            id="4 tolerated forever",
        ),
        pytest.param(
            NO_EXECUTE,
            "{key: k, value: v, effect: NoExecute, tolerationSeconds: 60}",
            "evict-after-seconds",
            60,
            {"key": "k", "value": "v", "effect": "NoExecute", "tolerationSeconds": 60},
            id="4 tolerated for a while",
        ),
        pytest.param(
            NO_EXECUTE,
            "{operator: Exists, effect: NoExecute, tolerationSeconds: -1}",
            "evict-now",
            0,
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -1},
            id="4 negative seconds",
        ),
        pytest.param(
            NO_EXECUTE,
            "{operator: Exists, effect: NoExecute, tolerationSeconds: 5}, {operator: Exists}",
            "evict-after-seconds",
            5,
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            id="3.4 the first match decides",
        ),
    ],
)
def test_eviction(
    taints: str,
    tolerations: str,
    verdict: str,
    seconds: int | None,
    toleration: object,
    rules: Rules,
    write: WriteFile,
) -> None:
    answer = rules("verdict", "--node", write(NODE % taints), "--pod", write(POD % tolerations), "-o", "json")
    assert answer.code == ExitCode.DONE
    eviction = only(answer.json)["eviction"]
    assert eviction["verdict"] == verdict
    assert eviction["staySeconds"] == seconds
    assert eviction["toleration"] == toleration
    assert eviction["taint"] == (TAINT if taints else None)


@pytest.mark.parametrize(
    ("spec", "fits", "plugin", "reason", "taint"),
    [
        pytest.param("taints: []", True, "", "", None, id="5 no taints"),
        pytest.param(
            "taints: [{key: a, effect: NoSchedule}]",
            False,
            "TaintToleration",
            "node(s) had untolerated taint(s)",
            {"key": "a", "effect": "NoSchedule"},
            id="5 filter",
        ),
        pytest.param(
            "unschedulable: true",
            False,
            "NodeUnschedulable",
            "node(s) were unschedulable",
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            id="5 cordoned",
        ),
        pytest.param("taints: [{key: a, effect: PreferNoSchedule}]", True, "", "", None, id="5 a soft taint"),
    ],
)
def test_scheduling(
    spec: str, plugin: str, reason: str, taint: object, rules: Rules, write: WriteFile, *, fits: bool
) -> None:
    node = write("{kind: Node, metadata: {name: n1}, spec: {%s}}" % spec)  # noqa: UP031 - braces of YAML
    found = only(rules("verdict", "--node", node, "--pod", write(POD % ""), "-o", "json").json)["scheduling"]
    assert found["fits"] is fits
    assert found["code"] == ("Success" if fits else "UnschedulableAndUnresolvable")
    assert (found["plugin"], found["reason"], found["taint"]) == (plugin, reason, taint)


def test_scores_are_normalised_over_the_nodes_that_are_possible(rules: Rules, write: WriteFile) -> None:
    nodes = write(
        """
kind: NodeList
apiVersion: v1
items:
- {metadata: {name: none}}
- {metadata: {name: one}, spec: {taints: [{key: a, effect: PreferNoSchedule}]}}
- {metadata: {name: two}, spec: {taints: [{key: a, effect: PreferNoSchedule}, {key: b, effect: PreferNoSchedule}]}}
- {metadata: {name: never}, spec: {taints: [{key: a, effect: NoSchedule}, {key: c, effect: PreferNoSchedule}]}}
"""
    )
    answer = rules("verdict", "--node", nodes, "--pod", write(POD % ""), "-o", "json").json
    scores = {found["node"]: found["scheduling"]["score"] for found in answer["verdicts"]}
    assert scores == {"none": 100, "one": 50, "two": 0, "never": None}


@pytest.mark.parametrize(
    ("annotations", "admitted"),
    [
        pytest.param("{}", False, id="5 TaintToleration"),
        pytest.param("{kubernetes.io/config.source: api}", False, id="5 from the API server"),
        pytest.param("{kubernetes.io/config.source: file}", True, id="5 static pods are exempt"),
    ],
)
def test_kubelet(annotations: str, rules: Rules, write: WriteFile, *, admitted: bool) -> None:
    pod = write("{kind: Pod, metadata: {name: p, annotations: %s}}" % annotations)  # noqa: UP031 - braces of YAML
    found = only(rules("verdict", "--node", write(NODE % NO_EXECUTE), "--pod", pod, "-o", "json").json)["kubelet"]
    assert found["admitted"] is admitted
    assert found["reason"] == ("" if admitted else "TaintToleration")
    assert found["taint"] == (None if admitted else TAINT)


def test_unbound_pods_are_judged_on_each_node(rules: Rules, write: WriteFile) -> None:
    nodes = write("{kind: Node, metadata: {name: n1}}\n---\n{kind: Node, metadata: {name: n2}}\n")
    pods = write("{kind: Pod, metadata: {name: a}}\n---\n{kind: Pod, metadata: {name: b, namespace: x}}\n")
    answer = rules("verdict", "--node", nodes, "--pod", pods, "-o", "json").json
    pairs = [(found["pod"], found["node"]) for found in answer["verdicts"]]
    assert pairs == [("default/a", "n1"), ("default/a", "n2"), ("x/b", "n1"), ("x/b", "n2")]


def test_one_file_may_hold_both_and_other_kinds(rules: Rules, write: WriteFile) -> None:
    path = write(
        "{kind: Service, metadata: {name: s}}\n---\n{kind: Pod, metadata: {name: p}}\n---\n"
        "{kind: Node, metadata: {name: n1}}\n---\n{kind: Node, apiVersion: other.io/v1, metadata: {name: o}}\n"
    )
    answer = rules("verdict", "--node", path, "--pod", path, "-o", "json")
    assert [(found["pod"], found["node"]) for found in answer.json["verdicts"]] == [("default/p", "n1")]


def test_comparisons_need_the_switch(rules: Rules, write: WriteFile) -> None:
    files = (
        "--node",
        write(NODE % "{key: k, value: '7', effect: NoExecute}"),
        "--pod",
        write(POD % "{key: k, operator: Gt, value: '5'}"),
    )
    refused = rules("verdict", *files, "-o", "json")
    assert refused.code == ExitCode.FOUND_PROBLEM
    assert [error["field"] for error in refused.json["errors"]] == ["spec.tolerations[0].operator"]
    answer = rules("verdict", *files, "--comparison-operators", "-o", "json")
    assert answer.code == ExitCode.DONE
    assert answer.json["comparisonOperators"] is True
    assert only(answer.json)["eviction"]["verdict"] == "evict-never"


def test_text_is_a_row_for_each_pair(rules: Rules, write: WriteFile) -> None:
    tolerations = "{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 60}"
    answer = rules("verdict", "--node", write(NODE % NO_EXECUTE), "--pod", write(POD % tolerations))
    title, row = answer.out.splitlines()
    assert title.split()[:3] == ["pod", "node", "evict"]
    assert row.split()[:3] == ["default/p1", "n1", "after"]
    assert "60 s" in row
    assert "k=v:NoExecute" in row


def test_text_of_a_refusal(rules: Rules, write: WriteFile) -> None:
    answer = rules("verdict", "--node", write(NODE % NO_EXECUTE), "--pod", write(POD % ""))
    assert "now" in answer.out
    assert "node(s) had untolerated taint(s): k=v:NoExecute" in answer.out
    assert "refuses: k=v:NoExecute" in answer.out


@pytest.mark.slow
def test_standard_input_for_both() -> None:

    both = {"kind": "List", "items": [{"kind": kind, "metadata": {"name": "x"}} for kind in ("Node", "Pod")]}
    done = subprocess.run(
        [*COMMAND, "rules", "verdict", "--node", "-", "--pod", "-", "-o", "json"],
        input=json.dumps(both),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == ExitCode.DONE
    assert [found["node"] for found in json.loads(done.stdout)["verdicts"]] == ["x"]


@pytest.mark.parametrize(
    ("node", "pod", "line"),
    [
        pytest.param("{kind: Pod, metadata: {name: p}}", POD % "", "has no v1 Node, only Pod", id="no node"),
        pytest.param(NODE % "", "{kind: PodList, items: []}", "has no v1 Pod, only nothing", id="no pod"),
        pytest.param(NODE % "", "{kind: Deployment, metadata: {name: d}}", "only Deployment", id="another kind"),
    ],
)
def test_a_file_without_what_is_needed(node: str, pod: str, line: str, rules: Rules, write: WriteFile) -> None:
    answer = rules("verdict", "--node", write(node), "--pod", write(pod))
    assert answer.code == ExitCode.WRONG_USE
    assert answer.out == ""
    assert line in answer.err


@pytest.mark.parametrize("arguments", [[], ["--node", "x"], ["--pod", "x"]])
def test_both_files_are_needed(arguments: list[str], rules: Rules) -> None:
    answer = rules("verdict", *arguments)
    assert answer.code == ExitCode.WRONG_USE
    assert "Missing option" in answer.err
