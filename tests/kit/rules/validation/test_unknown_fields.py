"""Fields that Kubernetes does not know: refused by kubectl, and dropped by an API server (semantics.md 2)."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.kit.rules.validation import unknown_fields
from evictstream.kit.rules.validation.known_fields import FIELDS

TOLERATIONS = [{"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 600}]
Fields = dict[Any, Any]

POD: Fields = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "n",
        "labels": {"anything": "goes"},
        "managedFields": [{"fieldsV1": {"f:x": {}}}],
    },
    "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "E"}]}], "tolerations": TOLERATIONS},
    "status": {"phase": "Running"},
}


def paths(value: Fields, kind: str = "Pod", *, is_stored: bool = False) -> list[str]:
    return [error.field for error in unknown_fields(value, kind, is_stored=is_stored)]


def with_spec(**more: object) -> Fields:
    return POD | {"spec": POD["spec"] | more}


def with_container(**more: object) -> Fields:
    return with_spec(containers=[POD["spec"]["containers"][0] | more])


def test_an_ordinary_pod_has_none() -> None:
    assert paths(POD) == []


@pytest.mark.parametrize(
    ("pod", "path", "meant"),
    [
        pytest.param(with_spec(toleration=TOLERATIONS), "spec.toleration", "tolerations", id="singular"),
        pytest.param(with_spec(Tolerations=TOLERATIONS), "spec.Tolerations", "tolerations", id="capital"),
        pytest.param(with_spec(tollerations=[]), "spec.tollerations", "tolerations", id="slip"),
        pytest.param(
            with_container(tolerations=TOLERATIONS),
            "spec.containers[0].tolerations",
            "spec.tolerations",
            id="container",
        ),
        pytest.param(
            with_spec(initContainers=[{"name": "i", "toleration": []}]),
            "spec.initContainers[0].toleration",
            "spec.tolerations",
            id="init-container",
        ),
        pytest.param(POD | {"tolerations": TOLERATIONS}, "tolerations", "spec.tolerations", id="top"),
        pytest.param(
            POD | {"metadata": {"name": "p", "tolerations": []}},
            "metadata.tolerations",
            "spec.tolerations",
            id="metadata",
        ),
        pytest.param(
            with_spec(affinity={"nodeAffinity": {}, "tolerations": []}),
            "spec.affinity.tolerations",
            "spec.tolerations",
            id="affinity",
        ),
        pytest.param(
            with_spec(tolerations=[{"key": "k", "tolerationSecond": 5}]),
            "spec.tolerations[0].tolerationSecond",
            "tolerationSeconds",
            id="within-a-toleration",
        ),
    ],
)
@pytest.mark.parametrize("is_stored", [False, True], ids=["manifest", "stored"])
def test_a_slip_around_tolerations_is_named(pod: Fields, path: str, meant: str, *, is_stored: bool) -> None:
    (error,) = unknown_fields(pod, "Pod", is_stored=is_stored)
    assert str(error) == f"{path}: Forbidden: unknown field, did you mean {meant}?"


@pytest.mark.parametrize(
    ("node", "path"),
    [
        ({"spec": {"taint": []}}, "spec.taint"),
        ({"taints": []}, "taints"),
        ({"spec": {"tolerations": []}}, "spec.tolerations"),
        ({"spec": {"taints": [{"key": "k", "effects": "NoExecute"}]}}, "spec.taints[0].effects"),
    ],
)
@pytest.mark.parametrize("is_stored", [False, True], ids=["manifest", "stored"])
def test_a_slip_around_taints_is_named(node: Fields, path: str, *, is_stored: bool) -> None:
    assert paths(node, "Node", is_stored=is_stored) == [path]


def test_any_other_field_is_reported_of_a_manifest_only() -> None:
    """A newer API server has fields that are not known here, and what it has stored it has known."""
    pod = with_spec(nodename="n", newField={}) | {"metadata": {"name": "p", "uid": "u"}}
    assert paths(pod) == ["spec.nodename", "spec.newField"]
    assert paths(pod, is_stored=True) == []


def test_wrong_types_are_passed_over() -> None:
    assert paths({"spec": "text", "metadata": [1, "x", None], "status": None}) == []


def test_a_flood_of_fields_is_reported_in_part() -> None:
    assert len(paths({f"tolerations{number}": 1 for number in range(1_000)})) == 100


def test_every_type_that_a_field_has_is_there() -> None:
    below = {field.partition(":")[2] for fields in FIELDS.values() for field in fields.split()} - {""}
    assert below <= FIELDS.keys()
    assert {"Node", "Pod"} <= FIELDS.keys()
