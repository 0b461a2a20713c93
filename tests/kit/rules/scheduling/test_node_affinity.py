"""What a pod asks of its node, as Kubernetes' own test of the package `nodeaffinity` has it."""

from __future__ import annotations

import json

import msgspec
import pytest

from evictstream.kit.rules.scheduling.node_affinity import ANYWHERE, NodePlacement, read_placement

LABELS = {"zone": "a", "pool": "gpu", "cores": "16", "odd": "007"}


def placement(selector: object = None, *terms: object, required: object = None) -> NodePlacement:
    wanted = {"nodeSelectorTerms": list(terms)} if terms else required
    return read_placement(json.dumps(selector).encode(), json.dumps(wanted).encode())


def term(key: str, operator: str, *values: str) -> dict[str, object]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(operator: str, *names: str, key: str = "metadata.name") -> dict[str, object]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(names)}]}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(placement(), True, id="nothing asked"),
        pytest.param(placement({}), True, id="empty selector"),
        pytest.param(placement({"zone": "a", "pool": "gpu"}), True, id="all labels"),
        pytest.param(placement({"zone": "a", "pool": "cpu"}), False, id="one label differs"),
        pytest.param(placement({"new": ""}), False, id="an absent label is not an empty one"),
        pytest.param(placement(None, term("zone", "In", "b", "a")), True, id="In"),
        pytest.param(placement(None, term("zone", "In", "b")), False, id="not In"),
        pytest.param(placement(None, term("zone", "NotIn", "a")), False, id="NotIn"),
        pytest.param(placement(None, term("new", "NotIn", "a")), True, id="NotIn without the label"),
        pytest.param(placement(None, term("zone", "Exists")), True, id="Exists"),
        pytest.param(placement(None, term("new", "Exists")), False, id="Exists without the label"),
        pytest.param(placement(None, term("new", "DoesNotExist")), True, id="DoesNotExist"),
        pytest.param(placement(None, term("zone", "DoesNotExist")), False, id="DoesNotExist with the label"),
        pytest.param(placement(None, term("cores", "Gt", "8")), True, id="Gt"),
        pytest.param(placement(None, term("cores", "Gt", "16")), False, id="Gt of an equal number"),
        pytest.param(placement(None, term("cores", "Lt", "17")), True, id="Lt"),
        pytest.param(placement(None, term("odd", "Lt", "+8")), True, id="numbers as Go reads them"),
        pytest.param(placement(None, term("zone", "Gt", "8")), False, id="Gt of no number"),
        pytest.param(placement(None, term("cores", "Gt", str(-(2**63) - 1))), False, id="a number beyond 64 bit"),
        pytest.param(placement(None, term("cores", "Gt", "8", "9")), False, id="Gt with two bounds"),
        pytest.param(placement(None, term("zone", "Near", "a")), False, id="unknown operator"),
        pytest.param(placement(None, term("zone", "In", "b"), term("pool", "In", "gpu")), True, id="one term of two"),
        pytest.param(placement(None, {}), False, id="an empty term"),
        pytest.param(placement(None, required={"nodeSelectorTerms": []}), False, id="no terms"),
        pytest.param(placement(None, named("In", "n-1")), True, id="its name"),
        pytest.param(placement(None, named("In", "n-2")), False, id="another name"),
        pytest.param(placement(None, named("NotIn", "n-1")), False, id="not its name"),
        pytest.param(placement(None, named("NotIn", "n-2")), True, id="not another name"),
        pytest.param(placement(None, named("In", "n-1", "n-2")), False, id="several names are illegal"),
        pytest.param(placement(None, named("In", "n-1", key="spec.x")), False, id="another field"),
        pytest.param(placement(None, named("In", "n-1") | term("zone", "In", "b")), False, id="both parts of a term"),
        pytest.param(placement({"zone": "b"}, named("In", "n-1")), False, id="selector and affinity"),
    ],
)
def test_which_nodes_are_admitted(wanted: NodePlacement, expected: bool) -> None:  # noqa: FBT001 - a table
    assert wanted.admits("n-1", LABELS) is expected


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(placement(), True, id="nothing asked"),
        pytest.param(placement({"zone": "a"}), None, id="a label"),
        pytest.param(placement(None, term("zone", "In", "a")), None, id="a term about labels"),
        pytest.param(placement(None, named("In", "n-1")), True, id="its name"),
        pytest.param(placement(None, named("In", "n-2"), {}), False, id="another name"),
        pytest.param(placement(None, named("In", "n-1"), term("zone", "In", "a")), True, id="its name, or a label"),
        pytest.param(placement(None, named("In", "n-2"), term("zone", "In", "a")), None, id="another name, or a label"),
        pytest.param(placement({"zone": "a"}, named("In", "n-1")), None, id="its name, and a label"),
        pytest.param(placement({"zone": "a"}, named("In", "n-2")), False, id="another name, and a label"),
    ],
)
def test_what_can_be_told_without_labels(wanted: NodePlacement, expected: bool | None) -> None:  # noqa: FBT001
    assert wanted.admits("n-1", None) is expected


def test_equal_texts_are_read_once() -> None:
    assert placement({"zone": "a"}) is placement({"zone": "a"})
    assert placement() == ANYWHERE


def test_another_shape_is_an_error() -> None:
    with pytest.raises(msgspec.DecodeError):
        read_placement(b"[]", b"null")
