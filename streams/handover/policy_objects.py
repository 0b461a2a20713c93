"""The objects of the policy: pure data, the same for `evictstream handover policy`, the chart and the tests."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from evictstream.models.kubernetes.shapes import TOLERATIONS_ANNOTATION
from evictstream.streams.handover.policy_expressions import (
    NOT_A_MIRROR,
    backstop_variables,
    handover_variables,
    patch,
    worth_a_look,
)

POLICY_NAME: Final = "evictstream-handover"
BINDING_GUARD_NAME: Final = f"{POLICY_NAME}-binding"
STATUS_GUARD_NAME: Final = f"{POLICY_NAME}-status"

POLICY_VERSION: Final = 1
"""Of what this program writes; raise it with each change that a cluster has to get."""

VERSION_ANNOTATION: Final = "evictstream.io/handover-version"
VARIANT_ANNOTATION: Final = "evictstream.io/handover-variant"
MORE_ANNOTATION: Final = "evictstream.io/handover-more"

OPT_OUT_LABEL: Final = "evictstream.io/handover"
"""Of a namespace: with the value `off` its pods stay the built-in controller's."""

NAMESPACE_NAME_LABEL: Final = "kubernetes.io/metadata.name"

DEFAULT_MORE: Final = 3_600
MOST_MORE: Final = 31_536_000
"""A year: with the longest seconds it is far from what the built-in controller cannot count."""

NEVER_MOVED: Final = ("kube-system", "kube-public", "kube-node-lease", "evictstream")
"""What a cluster needs to recover, and evictstream itself: it must not depend on itself to leave a dead node."""

GROUP: Final = "admissionregistration.k8s.io"

PolicyObject = dict[str, Any]


class HandoverVariant(enum.StrEnum):
    """What the policy leaves in the spec."""

    BACKSTOP = "backstop"
    """Seconds, `more` than there were: the built-in controller evicts late what evictstream has not."""

    HANDOVER = "handover"
    """No seconds: the built-in controller never evicts."""


def variant_of(more: int | None) -> HandoverVariant:
    """Return the variant: None stands for no seconds at all."""
    return HandoverVariant.HANDOVER if more is None else HandoverVariant.BACKSTOP


def policy_objects(more: int | None, *, guard: bool, excluded: Sequence[str] = ()) -> list[PolicyObject]:
    """Return the policy with its binding, in front of them the guard.

    Args:
        more: how many seconds later than evictstream the built-in controller evicts; None for never.
        guard: whether annotations of bindings and status writes are refused.
        excluded: namespaces that stay out, beside `NEVER_MOVED`.
    """
    return [*(guard_objects() if guard else ()), _policy(more), _policy_binding(excluded)]


def guard_objects() -> list[PolicyObject]:
    """Return what keeps the annotation from getting into a pod past the rights that its tolerations need.

    The API server copies annotations of a Binding to the pod without asking any policy for pods, and a status write
    takes metadata along.
    """
    named = f'"{TOLERATIONS_ANNOTATION}"'
    text = f'?annotations[?{named}].orValue("")'
    return [
        *_guard(
            BINDING_GUARD_NAME,
            rule=_rule(["CREATE"], ["pods/binding", "bindings"]),
            expression=f"!({named} in object.metadata.?annotations.orValue({{}}))",
            message=f"{TOLERATIONS_ANNOTATION} may not be set by a Binding",
        ),
        *_guard(
            STATUS_GUARD_NAME,
            rule=_rule(["UPDATE"], ["pods/status"]),
            expression=f"object.metadata.{text} ==\n  oldObject.metadata.{text}",
            message=f"{TOLERATIONS_ANNOTATION} may not be changed by way of the status",
        ),
    ]


def policy_spec(more: int | None) -> dict[str, Any]:
    """Return the `spec` of the policy, which the chart takes as it is."""
    is_backstop = more is not None
    variables = handover_variables() if more is None else backstop_variables(more)
    conditions = {"not-a-mirror-pod": NOT_A_MIRROR, "worth-a-look": worth_a_look(is_backstop=is_backstop)}
    return {
        "failurePolicy": "Ignore",  # what cannot be moved keeps its seconds: the built-in controller evicts it in time
        "reinvocationPolicy": "IfNeeded",  # webhooks behind it may add tolerations
        "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [_rule(["CREATE", "UPDATE"], ["pods"])]},
        "matchConditions": _named(conditions),
        "variables": _named(variables),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch(is_backstop=is_backstop)}}],
    }


def namespace_selector(excluded: Iterable[str]) -> dict[str, Any]:
    """Return which namespaces the policy is bound to: all but these, and those that have opted out."""
    names = list(dict.fromkeys((*NEVER_MOVED, *excluded)))
    return {
        "matchExpressions": [
            {"key": NAMESPACE_NAME_LABEL, "operator": "NotIn", "values": names},
            {"key": OPT_OUT_LABEL, "operator": "NotIn", "values": ["off"]},
        ]
    }


def policy_annotations(more: int | None) -> dict[str, str]:
    """Return what tells a program which policy it has found."""
    return {
        VERSION_ANNOTATION: str(POLICY_VERSION),
        VARIANT_ANNOTATION: variant_of(more).value,
        **({} if more is None else {MORE_ANNOTATION: str(more)}),
    }


def _policy(more: int | None) -> PolicyObject:
    return _object("MutatingAdmissionPolicy", POLICY_NAME, policy_spec(more), policy_annotations(more))


def _policy_binding(excluded: Sequence[str]) -> PolicyObject:
    spec = {"policyName": POLICY_NAME, "matchResources": {"namespaceSelector": namespace_selector(excluded)}}
    return _object("MutatingAdmissionPolicyBinding", POLICY_NAME, spec)


def _guard(name: str, *, rule: dict[str, Any], expression: str, message: str) -> Iterable[PolicyObject]:
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": message}],
    }
    yield _object("ValidatingAdmissionPolicy", name, spec, {VERSION_ANNOTATION: str(POLICY_VERSION)})
    yield _object("ValidatingAdmissionPolicyBinding", name, {"policyName": name, "validationActions": ["Deny"]})


def _object(kind: str, name: str, spec: dict[str, Any], annotations: Mapping[str, str] | None = None) -> PolicyObject:
    metadata: dict[str, Any] = {"name": name, "labels": {"app.kubernetes.io/name": "evictstream"}}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _rule(operations: list[str], resources: list[str]) -> dict[str, Any]:
    return {"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": resources}


def _named(expressions: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "expression": text} for name, text in expressions.items()]
