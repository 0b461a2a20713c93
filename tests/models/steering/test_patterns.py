"""Policies select by zone, labels of the node, owner and priority; what is not known is held."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.models.kubernetes.traits import NO_TRAITS, PodTraits
from evictstream.models.messages.policy import decode_policy
from evictstream.models.messages.unreadable import Unreadable
from tests.models.steering.test_policies import OBSERVED, hold, policy_record, read_policies

ZONE = "topology.kubernetes.io/zone"
FACTS: dict[str, Any] = {
    "zone": "eu-1a",
    "node_labels": (("pool", "gpu"), ("spot", ""), (ZONE, "eu-1a")),
    "traits": PodTraits("ReplicaSet", "web-5d7f9", 1000, "train-1"),
}
BARE: dict[str, Any] = {"zone": "", "node_labels": (), "traits": NO_TRAITS}
UNKNOWN: dict[str, Any] = {"zone": None, "node_labels": None, "traits": None}

SELECTIONS = [
    pytest.param({"zones": ["eu-1a"]}, True, id="zone"),
    pytest.param({"zones": ["eu-2*", "eu-1?"]}, True, id="pattern of a zone"),
    pytest.param({"zones": ["eu-1"]}, False, id="another zone"),
    pytest.param({"owners": ["ReplicaSet"]}, True, id="kind"),
    pytest.param({"owners": ["*Set"]}, True, id="pattern of a kind"),
    pytest.param({"owners": ["replicaset", "Deployment"]}, False, id="another kind"),
    pytest.param({"owners": ["ReplicaSet/web-*"]}, True, id="kind and name"),
    pytest.param({"owners": ["*/web-5d7f9"]}, True, id="name"),
    pytest.param({"owners": ["ReplicaSet/web"]}, False, id="another name"),
    pytest.param({"owners": ["Job/*", "ReplicaSet/api-*"]}, False, id="none of two"),
    pytest.param({"nodeLabels": ["pool=gpu"]}, True, id="label"),
    pytest.param({"nodeLabels": ["pool=cpu", "pool=g*"]}, True, id="one of two values"),
    pytest.param({"nodeLabels": ["rack=7", "spot="]}, True, id="one of two labels, and an empty value"),
    pytest.param({"nodeLabels": ["pool=cpu", "rack=*"]}, False, id="another value, and no such label"),
    pytest.param({"nodeLabels": [f"{ZONE}=eu-*"]}, True, id="the zone as a label"),
    pytest.param({"priority": {"below": 1001}}, True, id="lower"),
    pytest.param({"priority": {"below": 1000}}, False, id="not lower"),
    pytest.param({"zones": ["eu-1a"], "owners": ["Job"]}, False, id="all fields have to match"),
]
ANY = [
    pytest.param({"zones": ["*"]}, id="zone"),
    pytest.param({"owners": ["*"]}, id="owner"),
    pytest.param({"nodeLabels": ["pool=*"]}, id="label"),
]


def is_held(spec: dict[str, Any], facts: dict[str, Any]) -> bool:
    found = hold(read_policies(policy_record(spec={"observe": True, **spec})), **facts)
    assert found in (None, OBSERVED)
    return found is not None


@pytest.mark.parametrize(("selection", "expected"), SELECTIONS)
def test_a_selection_matches_what_it_names(selection: dict[str, Any], expected: bool) -> None:  # noqa: FBT001 - a case
    assert is_held({"for": selection}, FACTS) is expected
    assert is_held({"except": selection}, FACTS) is not expected


@pytest.mark.parametrize("selection", ANY)
def test_what_a_pod_has_not_no_pattern_matches(selection: dict[str, Any]) -> None:
    assert is_held({"for": selection}, FACTS)
    assert not is_held({"for": selection}, BARE)
    assert is_held({"except": selection}, BARE)


@pytest.mark.parametrize("selection", [*ANY, pytest.param({"priority": {"below": 5}}, id="priority")])
def test_what_is_not_known_is_held(selection: dict[str, Any]) -> None:
    assert is_held({"for": selection}, UNKNOWN)
    assert is_held({"except": selection}, UNKNOWN)


def test_a_pod_without_priority_has_zero() -> None:
    assert is_held({"for": {"priority": {"below": 1}}}, BARE)
    assert not is_held({"for": {"priority": {"below": 0}}}, BARE)


@pytest.mark.parametrize(
    "selection",
    [
        {"nodeLabels": ["pool"]},
        {"nodeLabels": ["=gpu"]},
        {"nodeLabels": ["p*=gpu"]},
        {"nodeLabels": ["a=b=c"]},
        {"priority": {"below": 2**31 + 1}},
        {"priority": {"above": 5}},
        {"priority": 5},
    ],
    ids=str,
)
def test_a_record_with_another_selection_is_unreadable(selection: dict[str, Any]) -> None:
    with pytest.raises(Unreadable):
        decode_policy(policy_record(spec={"observe": True, "for": selection}))
