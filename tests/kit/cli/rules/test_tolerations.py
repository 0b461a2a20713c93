"""`evictstream rules tolerations`: origins by semantics.md 9, use by 3.4, order by 13 row 23."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evictstream.streams.errors import ExitCode
from tests.kit.cli.rules.conftest import Rules, WriteFile

NOT_READY = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}
GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
SECONDS = {"tolerationSeconds": 300}
FIVE = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
FOR_EVER = {"operator": "Exists"}


def pod(*tolerations: dict[str, Any], metadata: dict[str, Any] | None = None, **spec: Any) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"} | (metadata or {}),
            "spec": {"tolerations": tolerations} | spec,
        }
    )


STORED = {"uid": "u"}
DAEMON = STORED | {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": True}]}
BURSTABLE = [{"resources": {"requests": {"cpu": "1", "nvidia.com/gpu": 1}}}]


def origins(answer: Any) -> list[tuple[dict[str, Any], str, bool]]:
    (found,) = answer["pods"]
    return [(entry["toleration"], entry["origin"], entry["certain"]) for entry in found["tolerations"]]


def test_a_pod_not_stored_gets_the_api_servers_defaults(rules: Rules, write: WriteFile) -> None:
    answer = rules("tolerations", write(pod(GPU)), "-o", "json")
    assert answer.code == ExitCode.DONE
    assert answer.json["pods"][0]["stored"] is False
    assert origins(answer.json) == [
        (GPU, "written", True),
        (NOT_READY | SECONDS, "DefaultTolerationSeconds", True),
        (UNREACHABLE | SECONDS, "DefaultTolerationSeconds", True),
    ]


def test_seconds_of_the_cluster(rules: Rules, write: WriteFile) -> None:
    answer = rules(
        "tolerations", write(pod()), "--not-ready-seconds", "30", "--unreachable-seconds", "60", "-o", "json"
    )
    assert [entry["tolerationSeconds"] for entry, _, _ in origins(answer.json)] == [30, 60]


@pytest.mark.parametrize(
    ("metadata", "spec", "toleration", "origin", "certain"),
    [
        pytest.param(STORED, {}, NOT_READY | SECONDS, "DefaultTolerationSeconds", False, id="9.1 its form"),
        pytest.param(STORED, {}, NOT_READY | {"tolerationSeconds": 30}, "written", False, id="9.1 other seconds"),
        pytest.param(STORED, {}, NOT_READY, "written", False, id="9.2 no DaemonSet"),
        pytest.param(DAEMON, {}, NOT_READY, "DaemonSet controller", True, id="9.2 a DaemonSet"),
        pytest.param(
            STORED | {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet"}]},
            {},
            NOT_READY,
            "written",
            False,
            id="9.2 an owner that is not the controller",
        ),
        pytest.param(STORED, {"containers": BURSTABLE}, GPU, "ExtendedResourceToleration", False, id="9.3 asked for"),
        pytest.param(STORED, {}, GPU, "written", False, id="9.3 not asked for"),
        pytest.param(
            STORED,
            {"initContainers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
            GPU,
            "ExtendedResourceToleration",
            False,
            id="9.3 a limit is a request",
        ),
        pytest.param(
            STORED,
            {"containers": BURSTABLE},
            PRESSURE,
            "PodTolerationRestriction, not best-effort",
            False,
            id="9.4 not best-effort",
        ),
        pytest.param(STORED, {}, PRESSURE, "written", False, id="9.4 best-effort"),
    ],
)
def test_origins_of_a_stored_pod(
    metadata: dict[str, Any],
    spec: dict[str, Any],
    toleration: dict[str, Any],
    origin: str,
    rules: Rules,
    write: WriteFile,
    *,
    certain: bool,
) -> None:
    answer = rules("tolerations", write(pod(toleration, metadata=metadata, **spec)), "-o", "json")
    assert origins(answer.json) == [(toleration, origin, certain)]


def test_which_one_is_in_use_for_which_taint(rules: Rules, write: WriteFile) -> None:
    node = write(
        "{kind: Node, metadata: {name: n1}, spec: {taints: [{key: nvidia.com/gpu, effect: NoSchedule},"
        " {key: node.kubernetes.io/not-ready, effect: NoExecute}, {key: other, effect: NoSchedule}]}}"
    )
    answer = rules("tolerations", write(pod(NOT_READY, GPU, metadata=STORED)), "--node", node, "-o", "json").json
    assert answer["pods"][0]["inUse"] == [
        {"node": "n1", "taint": {"key": "nvidia.com/gpu", "effect": "NoSchedule"}, "toleration": 1},
        {"node": "n1", "taint": {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}, "toleration": 0},
        {"node": "n1", "taint": {"key": "other", "effect": "NoSchedule"}, "toleration": None},
    ]


def test_a_warning_where_order_decides(rules: Rules, write: WriteFile) -> None:
    answer = rules("tolerations", write(pod(FIVE, FOR_EVER, metadata=STORED)), "-o", "json")
    assert answer.code == ExitCode.DONE
    (found,) = answer.json["pods"]
    assert [(warning["taint"]["key"], warning["inUse"], warning["passedOver"]) for warning in found["warnings"]] == [
        ("node.kubernetes.io/not-ready", 0, 1),
        ("node.kubernetes.io/unreachable", 0, 1),
    ]


def test_with_a_node_only_its_taints_are_warned_of(rules: Rules, write: WriteFile) -> None:
    path = write(pod(FIVE, FOR_EVER, metadata=STORED))
    tainted = write("{kind: Node, metadata: {name: n1}, spec: {taints: [{key: k, effect: NoExecute}]}}")
    (found,) = rules("tolerations", path, "--node", tainted, "-o", "json").json["pods"]
    assert [warning["taint"] for warning in found["warnings"]] == [{"key": "k", "effect": "NoExecute"}]
    clean = write("{kind: Node, metadata: {name: n1}}")
    (found,) = rules("tolerations", path, "--node", clean, "-o", "json").json["pods"]
    assert found["warnings"] == []


def test_no_warning_where_times_are_equal(rules: Rules, write: WriteFile) -> None:
    (found,) = rules("tolerations", write(pod(FOR_EVER, NOT_READY, metadata=STORED)), "-o", "json").json["pods"]
    assert found["warnings"] == []


def test_text(rules: Rules, write: WriteFile) -> None:
    node = write(
        "{kind: Node, metadata: {name: n1}, spec: {taints: [{key: k, effect: NoExecute},"
        " {key: l, effect: NoSchedule}]}}"
    )
    lines = rules(
        "tolerations", write(pod(FIVE, NOT_READY | SECONDS, metadata=STORED)), "--node", node
    ).out.splitlines()
    assert lines[0] == "pod/default/p"
    assert "any key Exists, NoExecute, 5 s" in lines[2]
    assert "k:NoExecute" in lines[2]
    assert "DefaultTolerationSeconds, or written" in lines[3]
    assert lines[4] == "not tolerated: l:NoSchedule of node n1"


def test_text_of_a_warning(rules: Rules, write: WriteFile) -> None:
    lines = rules("tolerations", write(pod(FOR_EVER, FIVE, metadata=STORED))).out.splitlines()
    assert lines[-1] == (
        "warning: order decides for node.kubernetes.io/unreachable:NoExecute: forever by toleration 1,"
        " where toleration 2 says 5 s"
    )


def test_several_pods(rules: Rules, write: WriteFile) -> None:
    path = write(pod() + pod(metadata={"name": "q", "namespace": "x"}))
    found = rules("tolerations", path, "-o", "json").json["pods"]
    assert [entry["pod"] for entry in found] == ["default/p", "x/q"]


@pytest.mark.parametrize(
    ("text", "line"), [("{kind: Node, metadata: {name: n1}}", "has no v1 Pod, only Node"), ("x", "is not an object")]
)
def test_a_file_without_pods(text: str, line: str, rules: Rules, write: WriteFile) -> None:
    answer = rules("tolerations", write(text))
    assert (answer.code, answer.out) == (ExitCode.WRONG_USE, "")
    assert line in answer.err


def test_moved_seconds_have_the_origin_that_they_had(rules: Rules, write: WriteFile) -> None:
    entry = NOT_READY | SECONDS | {"builtInSeconds": 3900}
    annotations = {"evictstream.io/tolerations": json.dumps([entry])}
    moved = pod(NOT_READY | {"tolerationSeconds": 3900}, metadata=STORED | {"annotations": annotations})
    answer = rules("tolerations", write(moved), "-o", "json")
    assert origins(answer.json) == [(entry, "DefaultTolerationSeconds", False)]
    assert "300 s (built-in: 3900 s)" in rules("tolerations", write(moved)).out
