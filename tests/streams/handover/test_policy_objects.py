"""The objects of the policy; what the API server makes of them is tried in `tests/e2e/handover`."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.handover.object_files import objects_as_yaml
from evictstream.streams.handover.policy_objects import (
    MORE_ANNOTATION,
    POLICY_NAME,
    VARIANT_ANNOTATION,
    VERSION_ANNOTATION,
    policy_objects,
    policy_spec,
)

VARIANTS = pytest.mark.parametrize("more", [pytest.param(3600, id="backstop"), pytest.param(None, id="handover")])
MENTIONED = re.compile(r"\bvariables\.(\w+)")


def one(objects: list[dict[str, Any]], kind: str, name: str = POLICY_NAME) -> dict[str, Any]:
    (found,) = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


@VARIANTS
def test_yaml_is_read_back_as_the_objects(more: int | None) -> None:
    objects = policy_objects(more, guard=True, excluded=["gke-managed-system"])
    text = objects_as_yaml(objects, "made")
    assert list(yaml.safe_load_all(text)) == objects
    assert text.startswith("# made\n")
    assert max(map(len, text.splitlines())) <= 130
    assert "&id" not in text


@VARIANTS
def test_each_variable_stands_behind_what_it_uses(more: int | None) -> None:
    """CEL knows a variable only behind its definition, and conditions know none."""
    spec = policy_spec(more)
    defined = set[str]()
    for variable in spec["variables"]:
        assert set(MENTIONED.findall(variable["expression"])) <= defined
        defined.add(variable["name"])
    (mutation,) = spec["mutations"]
    assert set(MENTIONED.findall(mutation["jsonPatch"]["expression"])) <= defined
    assert not any(MENTIONED.search(each["expression"]) for each in spec["matchConditions"])


def test_a_policy_says_its_version_and_variant() -> None:
    backstop = one(policy_objects(20, guard=False), "MutatingAdmissionPolicy")["metadata"]["annotations"]
    assert backstop == {VERSION_ANNOTATION: "1", VARIANT_ANNOTATION: "backstop", MORE_ANNOTATION: "20"}
    handover = one(policy_objects(None, guard=False), "MutatingAdmissionPolicy")["metadata"]["annotations"]
    assert handover == {VERSION_ANNOTATION: "1", VARIANT_ANNOTATION: "handover"}


def test_more_stands_in_one_place() -> None:
    texts = [str(policy_spec(more)).replace(f"'{more}'", "MORE") for more in (20, 86_400)]
    assert texts[0] == texts[1]
    assert texts[0].count("MORE") == 1


def test_what_errs_leaves_pods_to_the_built_in_controller() -> None:
    assert policy_spec(3600)["failurePolicy"] == policy_spec(None)["failurePolicy"] == "Ignore"


def test_namespaces_are_left_out_once() -> None:
    binding = one(
        policy_objects(3600, guard=False, excluded=["a", "kube-system", "a"]), "MutatingAdmissionPolicyBinding"
    )
    names, label = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert names["values"] == ["kube-system", "kube-public", "kube-node-lease", "evictstream", "a"]
    assert label == {"key": "evictstream.io/handover", "operator": "NotIn", "values": ["off"]}


def test_the_guard_comes_first_and_can_be_left_out() -> None:
    guarded = policy_objects(3600, guard=True)
    assert [each["kind"] for each in guarded] == [
        *["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] * 2,
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    ]
    assert policy_objects(3600, guard=False) == guarded[4:]
