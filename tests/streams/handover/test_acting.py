"""Which policies count as edited: what an API server adds by itself does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import pytest

from evictstream.streams.handover.acting import found_policies
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
