"""What a pod is to the policy: each state, and which comes first."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
import pytest

from evictstream.streams.handover.pod_states import MEANINGS, ClusterPod, HandoverState, NamespaceRules, state_of
from evictstream.streams.handover.policy_objects import namespace_selector

KEY: Final = "example.com/k"
TIMED: Final = {"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
ENDLESS: Final = {"key": KEY, "operator": "Exists", "effect": "NoExecute"}
BACKSTOP: Final = {**TIMED, "tolerationSeconds": 3630}
YEARS: Final = {**TIMED, "tolerationSeconds": 1_000_000_000}
RULES: Final = NamespaceRules(
    expressions=namespace_selector(["left-out"])["matchExpressions"],
    labels={
        name: {"kubernetes.io/metadata.name": name, **more}
        for name, more in {"shop": {}, "left-out": {}, "off": {"evictstream.io/handover": "off"}}.items()
    },
)


def entry(seconds: int, built_in: int | None = None) -> str:
    found = {**TIMED, "tolerationSeconds": seconds} | ({} if built_in is None else {"builtInSeconds": built_in})
    return json.dumps([found])


def pod(
    tolerations: list[Any] | None,
    annotation: str | None = None,
    *,
    namespace: str = "shop",
    annotations: dict[str, str] | None = None,
    **others: Any,
) -> ClusterPod:
    named = {**(annotations or {}), **({} if annotation is None else {"evictstream.io/tolerations": annotation})}
    metadata = {"name": "p", "namespace": namespace, "uid": "u", "annotations": named, **others.pop("metadata", {})}
    found = {"metadata": metadata, "spec": {"tolerations": tolerations}, **others}
    return msgspec.json.decode(json.dumps(found), type=ClusterPod)


MIRROR: Final = {"kubernetes.io/config.mirror": "x"}
STATES: Final = {
    "moved-by-a-backstop": (pod([BACKSTOP], entry(30, 3630)), HandoverState.MOVED),
    "moved-by-a-handover": (pod([ENDLESS], entry(30)), HandoverState.MOVED),
    "moved-and-opted-out-since": (pod([ENDLESS], entry(30), namespace="off"), HandoverState.MOVED),
    "cut-to-years": (pod([YEARS], entry(2**62, 1_000_000_000)), HandoverState.MOVED),
    "before": (pod([TIMED]), HandoverState.TO_MOVE),
    "one-of-two": (pod([BACKSTOP, {**TIMED, "key": "a"}], entry(30, 3630)), HandoverState.TO_MOVE),
    "edited-while-the-policy-was-off": (
        pod([{**TIMED, "tolerationSeconds": 31}], entry(30, 3630)),
        HandoverState.TO_MOVE,
    ),
    "second-of-one-identity": (pod([ENDLESS, TIMED]), HandoverState.NO_SECONDS),
    "no-annotations": (pod([TIMED], None, annotations=None), HandoverState.TO_MOVE),
    "unreadable": (pod([TIMED], "{"), HandoverState.UNREADABLE),
    "unreadable-without-seconds": (pod([ENDLESS], "{"), HandoverState.UNREADABLE),
    "too-many": (pod([{**TIMED, "key": f"k{n}"} for n in range(301)]), HandoverState.TOO_MANY),
    "as-many-as-can-be": (pod([{**TIMED, "key": f"k{n}"} for n in range(300)]), HandoverState.TO_MOVE),
    "opted-out": (pod([TIMED], namespace="off"), HandoverState.OPTED_OUT),
    "excluded": (pod([TIMED], namespace="left-out"), HandoverState.EXCLUDED),
    "of-a-newer-namespace": (pod([TIMED], namespace="unknown"), HandoverState.TO_MOVE),
    "endless": (pod([ENDLESS]), HandoverState.NO_SECONDS),
    "wildcard": (pod([{"operator": "Exists"}]), HandoverState.NO_SECONDS),
    "other-effect": (pod([{"key": KEY, "operator": "Exists", "effect": "NoSchedule"}]), HandoverState.UNTOLERATED),
    "no-list": (pod(None), HandoverState.UNTOLERATED),
    "mirror": (pod([TIMED], annotations=MIRROR), HandoverState.MIRROR),
    "finished": (pod([TIMED], status={"phase": "Succeeded"}), HandoverState.OVER),
    "terminating": (pod([TIMED], metadata={"deletionTimestamp": "2026-11-27T12:00:00Z"}), HandoverState.OVER),
}


@pytest.mark.parametrize(("of", "state"), STATES.values(), ids=STATES)
def test_a_pod_has_one_state(of: ClusterPod, state: HandoverState) -> None:
    assert state_of(of, RULES) is state


def test_each_state_is_tried_and_has_a_meaning() -> None:
    assert {state for _, state in STATES.values()} == set(HandoverState) == MEANINGS.keys()


SELECTED: Final = {
    "in": ({"key": "a", "operator": "In", "values": ["1"]}, {"a": "1"}, {"a": "2"}),
    "not-in": ({"key": "a", "operator": "NotIn", "values": ["1"]}, {}, {"a": "1"}),
    "exists": ({"key": "a", "operator": "Exists"}, {"a": ""}, {}),
    "does-not-exist": ({"key": "a", "operator": "DoesNotExist"}, {}, {"a": ""}),
}


@pytest.mark.parametrize(("expression", "fits", "differs"), SELECTED.values(), ids=SELECTED)
def test_selectors_are_read_as_kubernetes_does(
    expression: dict[str, Any], fits: dict[str, str], differs: dict[str, str]
) -> None:
    rules = NamespaceRules(expressions=[expression], labels={"fits": fits, "differs": differs})
    assert rules.why_out("fits") is None
    assert rules.why_out("differs") is HandoverState.EXCLUDED
