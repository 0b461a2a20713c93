"""Whether the policy acts: what becomes of a pod that is created in a dry run, and which objects there are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from evictstream.models.kubernetes.shapes import TOLERATIONS_ANNOTATION, TaintObject
from evictstream.models.kubernetes.taints import NO_EXECUTE
from evictstream.streams.handover.api_requests import DRY_RUN, ApiRequests
from evictstream.streams.handover.pod_states import ClusterPod, decode_pod
from evictstream.streams.handover.policy_objects import (
    BINDING_GUARD_NAME,
    GROUP,
    MORE_ANNOTATION,
    NAMESPACE_NAME_LABEL,
    NEVER_MOVED,
    POLICY_NAME,
    POLICY_VERSION,
    STATUS_GUARD_NAME,
    VARIANT_ANNOTATION,
    VERSION_ANNOTATION,
    HandoverVariant,
    policy_objects,
    policy_spec,
)
from evictstream.streams.kubernetes.answers import ApiAnswer

_T = TypeVar("_T")

PROBED_KEY: Final = "evictstream.io/handover-check"
PROBED_SECONDS: Final = 300
_PATH: Final = f"/apis/{GROUP}/v1"
_INVALID: Final = 422
_DENIED: Final = frozenset({400, 403, _INVALID})
"""By an admission policy or a webhook, or by a quota."""

_PODS_LOOKED_AT: Final = 50
_ABSENT: Final = "evictstream-handover-check"

_COMPARED: Final = {
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}

_TOLERATION: Final = {
    "key": PROBED_KEY,
    "operator": "Exists",
    "effect": NO_EXECUTE,
    "tolerationSeconds": PROBED_SECONDS,
}

# Of a namespace with the pod security standard `restricted`, and of one with a quota: a probe is refused by neither.
_PROBE: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "evictstream-handover-check-"},
    "spec": {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65_534, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "none",
                "image": "none.invalid/none",
                "resources": {
                    "requests": {"cpu": "1m", "memory": "1Mi"},
                    "limits": {"cpu": "1m", "memory": "1Mi"},
                },
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
        "tolerations": [_TOLERATION],
    },
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ActingPolicy:
    """What the policy does now.

    Attributes:
        variant: which one acts.
        more: seconds that it adds; None without a backstop.
    """

    variant: HandoverVariant
    more: int | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FoundPolicy:
    """A policy of this program, as its object says.

    Attributes:
        name: of the object.
        version: of the program's policies; 0 where it says none.
        variant: that it says; empty where it says none.
        more: that it says.
        is_edited: whether its spec differs from what this program writes for version, variant and seconds.
    """

    name: str
    version: int
    variant: str
    more: int | None
    is_edited: bool

    @property
    def is_older(self) -> bool:
        """Whether this program writes a newer one."""
        return self.version < POLICY_VERSION


class _Metadata(msgspec.Struct):
    name: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class _NodeSpec(msgspec.Struct):
    taints: list[TaintObject] | None = None


class _Node(msgspec.Struct):
    metadata: _Metadata
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)


class _List(msgspec.Struct, Generic[_T]):
    items: list[_T] | None = None


def probe_policy(requests: ApiRequests, namespace: str) -> ActingPolicy | None:
    """Create a pod in a dry run, and return what the policy made of it; None if nothing.

    Where others' policies refuse the pod, such as for its image, a pod that is there gets a toleration in a dry run.

    Raises:
        ApiRefusedError: no pod may be created there, or changed.
        KubernetesError: the API server does not answer.
    """
    path = f"/api/v1/namespaces/{namespace}/pods"
    answer = requests.ask("POST", path, DRY_RUN, body=_PROBE)
    if answer.is_done:
        return _acting(answer)
    if answer.status in _DENIED:
        patched = _patched_in_dry_run(requests, path)
        if patched is not None and patched.is_done:
            return _acting(patched)
    raise requests.connection.refusal(path, answer)


def _patched_in_dry_run(requests: ApiRequests, path: str) -> ApiAnswer | None:
    """Add a toleration to one of the pods that are there, the one with the fewest; None if there is none."""
    usable = [
        pod
        for pod in _listed(requests, path, ClusterPod, {"limit": str(_PODS_LOOKED_AT)})
        if not pod.is_over() and not (pod.metadata and pod.metadata.is_mirror) and pod.handed().tolerations
    ]
    if not usable:
        return None
    pod = min(usable, key=lambda each: len(each.handed().tolerations))
    patch = [{"op": "add", "path": "/spec/tolerations/-", "value": _TOLERATION}]
    return requests.ask("PATCH", pod.path, DRY_RUN, body=patch, kind="json-patch+json")


def _acting(answer: ApiAnswer) -> ActingPolicy | None:
    pod = decode_pod(answer.body)
    for one in pod.handed().tolerations:
        if one.key == PROBED_KEY and one.built_in_seconds is not msgspec.UNSET:
            if one.built_in_seconds is None:
                return ActingPolicy(variant=HandoverVariant.HANDOVER, more=None)
            return ActingPolicy(variant=HandoverVariant.BACKSTOP, more=one.built_in_seconds - PROBED_SECONDS)
    return None


def found_policies(requests: ApiRequests) -> list[FoundPolicy]:
    """List the policies of this program: usually one.

    Raises:
        ApiRefusedError: they may not be listed.
        KubernetesError: the API server does not answer.
    """
    return [
        _found(each)
        for each in _listed(requests, f"{_PATH}/mutatingadmissionpolicies", _Object)
        if each.metadata.name == POLICY_NAME or _annotation(each, VERSION_ANNOTATION)
    ]


def selector_expressions(requests: ApiRequests) -> Sequence[Mapping[str, object]] | None:
    """Return which namespaces the binding selects; None if there is no binding.

    Raises:
        ApiRefusedError: it may not be read.
        KubernetesError: the API server does not answer.
    """
    found = requests.get(f"{_PATH}/mutatingadmissionpolicybindings/{POLICY_NAME}", _Object)
    if found is None:
        return None
    selector = (found.spec.get("matchResources") or {}).get("namespaceSelector") or {}
    labels = [
        {"key": key, "operator": "In", "values": [value]} for key, value in (selector.get("matchLabels") or {}).items()
    ]
    return [*labels, *(selector.get("matchExpressions") or [])]


def is_guard_there(requests: ApiRequests) -> bool:
    """Whether both guards and their bindings exist, and refuse a Binding that has the annotation.

    Raises:
        ApiRefusedError: they may not be read.
        KubernetesError: the API server does not answer.
    """
    for name in (BINDING_GUARD_NAME, STATUS_GUARD_NAME):
        for kind in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
            if requests.get(f"{_PATH}/{kind}/{name}", _Object) is None:
                return False
    # Of a pod that does not exist, so nothing can be bound; policies are asked before it is looked for.
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": _ABSENT, "annotations": {TOLERATIONS_ANNOTATION: "[]"}},
        "target": {"kind": "Node", "name": _ABSENT},
    }
    answer = requests.ask("POST", f"/api/v1/namespaces/default/pods/{_ABSENT}/binding", DRY_RUN, body=body)
    return answer.status == _INVALID


def edited_objects(requests: ApiRequests) -> list[str]:
    """Name the binding, the guards and their bindings that are there and do something else than this program writes.

    Namespaces that the binding leaves out in addition are no edit.

    Raises:
        ApiRefusedError: they may not be read.
        KubernetesError: the API server does not answer.
    """
    found = []
    for expected in policy_objects(None, guard=True):
        kind, name = expected["kind"], expected["metadata"]["name"]
        if kind not in _COMPARED:
            continue
        there = requests.get(f"{_PATH}/{_COMPARED[kind]}/{name}", _Object)
        if there is not None and _comparable(there.spec) != _comparable(expected["spec"]):
            found.append(f"{kind} {name}")
    return found


def namespace_labels(requests: ApiRequests) -> dict[str, Mapping[str, str]]:
    """Return the labels of all namespaces.

    Raises:
        ApiRefusedError: they may not be listed.
        KubernetesError: the API server does not answer.
    """
    listed = _listed(requests, "/api/v1/namespaces", _Object)
    return {each.metadata.name: each.metadata.labels or {} for each in listed}


def tainted_nodes(requests: ApiRequests) -> frozenset[str]:
    """Return the nodes from which the built-in controller evicts now.

    Raises:
        ApiRefusedError: nodes may not be listed.
        KubernetesError: the API server does not answer.
    """
    return frozenset(
        each.metadata.name
        for each in _listed(requests, "/api/v1/nodes", _Node)
        if any(taint.effect == NO_EXECUTE for taint in each.spec.taints or ())
    )


def _listed(requests: ApiRequests, path: str, shape: type[_T], query: Mapping[str, str] | None = None) -> Sequence[_T]:
    """Return the objects of a list in one answer; none where the API server has no such list."""
    found = requests.get(path, _List[shape], query)  # type: ignore[valid-type]
    return (found.items if found else None) or ()


def _annotation(policy: _Object, name: str) -> str:
    return (policy.metadata.annotations or {}).get(name, "")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _found(policy: _Object) -> FoundPolicy:
    variant, more = _annotation(policy, VARIANT_ANNOTATION), _number(_annotation(policy, MORE_ANNOTATION))
    expected = policy_spec(more if variant == HandoverVariant.BACKSTOP else None)
    return FoundPolicy(
        name=policy.metadata.name,
        version=_number(_annotation(policy, VERSION_ANNOTATION)) or 0,
        variant=variant,
        more=more,
        is_edited=_comparable(policy.spec) != _comparable(expected),
    )


def _comparable(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what decides what a policy or a binding does, with what the API server writes where nothing was said.

    Fields that only a newer API server knows are left out: it sets them too.
    """
    constraints = spec.get("matchConstraints") or spec.get("matchResources") or {}
    parts = ("policyName", "paramKind", "paramRef", "matchConditions", "variables", "mutations", "validationActions")
    return {
        **{part: spec.get(part) or None for part in parts},
        "validations": [each.get("expression") for each in spec.get("validations") or ()],
        "failurePolicy": spec.get("failurePolicy") or "Fail",
        "reinvocationPolicy": spec.get("reinvocationPolicy") or "Never",
        "matchPolicy": constraints.get("matchPolicy") or "Equivalent",
        "namespaceSelector": _without_more_names(constraints.get("namespaceSelector") or {}),
        "objectSelector": constraints.get("objectSelector") or {},
        **{
            part: [{"scope": "*", **rule} for rule in constraints.get(part) or ()]
            for part in ("resourceRules", "excludeResourceRules")
        },
    }


def _without_more_names(selector: Mapping[str, Any]) -> dict[str, Any]:
    """Return a selector without the names of namespaces that somebody has left out in addition."""
    expressions = []
    for each in selector.get("matchExpressions") or ():
        if each.get("key") == NAMESPACE_NAME_LABEL and each.get("operator") == "NotIn":
            expressions.append({**each, "values": sorted(set(NEVER_MOVED).intersection(each.get("values") or ()))})
        else:
            expressions.append(each)
    return {
        **({"matchLabels": labels} if (labels := selector.get("matchLabels")) else {}),
        **({"matchExpressions": expressions} if expressions else {}),
    }
