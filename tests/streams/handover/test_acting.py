"""Which policies count as edited: what an API server adds by itself does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import pytest

from evictstream.streams.handover.acting import edited_objects, found_policies
from evictstream.streams.handover.api_requests import ApiRequests
from evictstream.streams.handover.policy_objects import policy_objects
from tests.streams.handover.scripted import Scripted

Object = dict[str, Any]


def served(more: int | None) -> Object:
    """The policy as the API server gives it back: with its defaults."""
    (policy,) = [each for each in policy_objects(more, guard=False) if each["kind"] == "MutatingAdmissionPolicy"]
    found: Object = copy.deepcopy(policy)
    constraints = found["spec"]["matchConstraints"]
    constraints |= {"namespaceSelector": {}, "objectSelector": {}}
    constraints["resourceRules"][0]["scope"] = "*"
    return found


def is_edited(policy: Object, server: Scripted, requests: ApiRequests) -> bool:
    server.answers = [(200, {}, {"items": [policy]})]
    (found,) = found_policies(requests)
    return found.is_edited


@pytest.mark.parametrize("more", [3600, None])
def test_what_the_api_server_adds_is_no_edit(more: int | None, server: Scripted, requests: ApiRequests) -> None:
    policy = served(more)
    assert not is_edited(policy, server, requests)
    policy["spec"]["fieldOfNewerServer"] = "default"
    assert not is_edited(policy, server, requests)


def set_in(*path: str | int, value: Any) -> Callable[[Object], None]:
    """Return an edit of the spec."""

    def edit(spec: Object) -> None:
        place: Any = spec
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value

    return edit


RULE: Final = ("matchConstraints", "resourceRules", 0)
EDITS: Final = {
    "refuses-what-fails": set_in("failurePolicy", value="Fail"),
    "failure-policy-away": lambda spec: spec.pop("failurePolicy"),
    "before-webhooks-alone": set_in("reinvocationPolicy", value="Never"),
    "reinvocation-away": lambda spec: spec.pop("reinvocationPolicy"),
    "matches-exactly": set_in("matchConstraints", "matchPolicy", value="Exact"),
    "some-namespaces": set_in("matchConstraints", "namespaceSelector", value={"matchLabels": {"a": "b"}}),
    "some-pods": set_in("matchConstraints", "objectSelector", value={"matchLabels": {"a": "b"}}),
    "no-updates": set_in(*RULE, "operations", value=["CREATE"]),
    "status-too": set_in(*RULE, "resources", value=["pods", "pods/status"]),
    "some-names": set_in(*RULE, "resourceNames", value=["p"]),
    "another-scope": set_in(*RULE, "scope", value="Cluster"),
    "excluded": set_in("matchConstraints", "excludeResourceRules", value=[{"resources": ["pods"]}]),
    "parameters": set_in("paramKind", value={"apiVersion": "v1", "kind": "ConfigMap"}),
    "condition-away": lambda spec: spec["matchConditions"].pop(),
    "expression": set_in("variables", 1, "expression", value="2000000000"),
    "mutation": set_in("mutations", 0, "jsonPatch", "expression", value="[]"),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_each_edit_of_the_spec_counts(
    edit: Callable[[Object], object], server: Scripted, requests: ApiRequests
) -> None:
    policy = served(3600)
    edit(policy["spec"])
    assert is_edited(policy, server, requests)


BINDING: Final = "MutatingAdmissionPolicyBinding evictstream-handover"
GUARD: Final = "ValidatingAdmissionPolicy evictstream-handover-status"
GUARD_BINDING: Final = "ValidatingAdmissionPolicyBinding evictstream-handover-status"
NAMES: Final = ("matchResources", "namespaceSelector", "matchExpressions", 0, "values")


def others() -> dict[str, Object]:
    """The binding and the guard as the API server gives them back, by kind and name, in the order of the questions."""
    found: dict[str, Object] = {}
    for each in copy.deepcopy(policy_objects(3600, guard=True, excluded=["mine"])):
        spec = each["spec"]
        if each["kind"] == "MutatingAdmissionPolicyBinding":
            spec["matchResources"] |= {"matchPolicy": "Equivalent", "objectSelector": {}}
        elif each["kind"] == "ValidatingAdmissionPolicy":
            constraints = spec["matchConstraints"]
            constraints |= {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
            constraints["resourceRules"][0]["scope"] = "*"
        if each["kind"] != "MutatingAdmissionPolicy":
            found[f"{each['kind']} {each['metadata']['name']}"] = each
    return found


def edited(objects: dict[str, Object], server: Scripted, requests: ApiRequests) -> list[str]:
    server.answers = [(200, {}, each) if each else (404, {}, {}) for each in objects.values()]
    return edited_objects(requests)


def test_what_the_api_server_adds_to_others_is_no_edit(server: Scripted, requests: ApiRequests) -> None:
    assert edited(others(), server, requests) == []
    assert [path.rpartition("/")[2] for path in server.asked].count("evictstream-handover") == 1


def test_what_is_not_there_is_no_edit(server: Scripted, requests: ApiRequests) -> None:
    assert edited({name: {} for name in others()}, server, requests) == []


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        pytest.param(BINDING, set_in(*NAMES, value=["kube-system"]), id="moves-kube-public"),
        pytest.param(BINDING, set_in(*NAMES[:-1], "operator", value="In"), id="moves-kube-system-alone"),
        pytest.param(BINDING, lambda spec: spec["matchResources"]["namespaceSelector"].clear(), id="moves-all"),
        pytest.param(BINDING, set_in(*NAMES[:2], "matchLabels", value={"a": "b"}), id="some-namespaces"),
        pytest.param(
            BINDING, lambda spec: spec["matchResources"]["namespaceSelector"]["matchExpressions"].pop(), id="no-way-out"
        ),
        pytest.param(
            BINDING, set_in("matchResources", "objectSelector", value={"matchLabels": {"a": "b"}}), id="some-pods"
        ),
        pytest.param(BINDING, set_in("policyName", value="other"), id="other-policy"),
        pytest.param(GUARD, set_in("validations", 0, "expression", value="true"), id="refuses-nothing"),
        pytest.param(GUARD, set_in("failurePolicy", value="Ignore"), id="lets-failures-pass"),
        pytest.param(GUARD, set_in(*RULE, "resources", value=["pods"]), id="other-resource"),
        pytest.param(GUARD, set_in("matchConditions", value=[{"name": "n", "expression": "false"}]), id="on-condition"),
        pytest.param(GUARD_BINDING, set_in("validationActions", value=["Warn"]), id="warns"),
        pytest.param(
            GUARD_BINDING,
            set_in("matchResources", value={"namespaceSelector": {"matchLabels": {"a": "b"}}}),
            id="guards-some",
        ),
    ],
)
def test_each_edit_of_binding_or_guard_is_named(
    name: str, edit: Callable[[Object], object], server: Scripted, requests: ApiRequests
) -> None:
    objects = others()
    edit(objects[name]["spec"])
    assert edited(objects, server, requests) == [name]


def test_another_text_of_a_refusal_is_no_edit(server: Scripted, requests: ApiRequests) -> None:
    objects = others()
    objects[GUARD]["spec"]["validations"][0]["message"] = "ask the platform team"
    assert edited(objects, server, requests) == []
