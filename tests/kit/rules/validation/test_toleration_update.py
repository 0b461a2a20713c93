"""semantics.md 2.3; cases of TestValidatePodUpdate in pkg/apis/core/validation/validation_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.kit.rules.validation import (
    ErrorType,
    FieldError,
    validate_added_tolerations,
    validate_toleration_update,
)
from evictstream.models.kubernetes import Toleration

CHANGED = (ErrorType.FORBIDDEN, "spec.tolerations")
ONE = Toleration("key1", "Equal", "value1", "NoExecute", 10)
OTHER = Toleration("key2", "Equal", "value2", "NoExecute", 30)
NO_SECONDS = Toleration("key1", "Equal", "value1", "NoExecute")


def one(**changes: Any) -> Toleration:
    fields = {"key": "key1", "operator": "Equal", "value": "value1", "effect": "NoExecute", "toleration_seconds": 10}
    return Toleration(**(fields | changes))  # type: ignore[arg-type]  # a table of changes


def places(errors: tuple[FieldError, ...]) -> list[tuple[ErrorType, str]]:
    return [(error.type, error.field) for error in errors]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        pytest.param(
            [Toleration("key1", "", "value1")],
            [Toleration("key1", "", "value2")],
            [CHANGED],
            id="TestValidatePodUpdate value modified",
        ),
        pytest.param(
            [ONE],
            [one(value="value2", toleration_seconds=None)],
            [CHANGED],
            id="TestValidatePodUpdate value modified with modified seconds",
        ),
        pytest.param([one(toleration_seconds=20)], [ONE], [], id="TestValidatePodUpdate seconds modified"),
        pytest.param([ONE], [ONE], [], id="TestValidatePodUpdate unmodified"),
        pytest.param(
            [ONE], [one(toleration_seconds=20), OTHER], [], id="TestValidatePodUpdate added, and seconds modified"
        ),
        pytest.param(
            [ONE],
            [one(toleration_seconds=20), Toleration("key2", "Equal", "value2", "NoSchedule", 30)],
            [(ErrorType.INVALID, "spec.tolerations[1].effect")],
            id="TestValidatePodUpdate added an illegal one",
        ),
        pytest.param([ONE], [NO_SECONDS], [], id="2.3 seconds may vanish"),
        pytest.param([NO_SECONDS], [ONE], [], id="2.3 seconds may appear"),
        pytest.param([ONE, OTHER], [OTHER, ONE], [], id="2.3 order may change"),
        pytest.param([ONE], [OTHER, ONE], [], id="2.3 added in front"),
        pytest.param([], [ONE], [], id="2.3 first one"),
        pytest.param([], [], [], id="2.3 none"),
        pytest.param([ONE], [], [CHANGED], id="2.3 removed"),
        pytest.param([ONE, OTHER], [ONE], [CHANGED], id="2.3 one of two removed"),
        pytest.param([ONE, ONE], [ONE], [], id="2.3 a duplicate may go: an equal one is still there"),
        pytest.param([ONE], [one(key="key3")], [CHANGED], id="2.3 key"),
        pytest.param(
            [ONE], [one(effect="")], [(ErrorType.INVALID, "spec.tolerations[0].effect"), CHANGED], id="2.3 effect"
        ),
        pytest.param([ONE], [one(operator="Exists", value="")], [CHANGED], id="2.3 operator"),
        pytest.param([ONE], [one(operator="")], [CHANGED], id="2.3 no operator is another one than Equal"),
        pytest.param(
            [ONE],
            [one(value="a b")],
            [(ErrorType.INVALID, "spec.tolerations[0].operator"), CHANGED],
            id="2.3 change and broken rule: both, rule first",
        ),
    ],
)
def test_edits(old: list[Toleration], new: list[Toleration], found: list[tuple[ErrorType, str]]) -> None:
    assert places(validate_added_tolerations(old, new)) == found


@pytest.mark.parametrize(
    ("old", "new", "gate", "found"),
    [
        pytest.param([], [Toleration("k", "Gt", "5")], True, [], id="gate on"),
        pytest.param(
            [],
            [Toleration("k", "Gt", "5")],
            False,
            [(ErrorType.NOT_SUPPORTED, "spec.tolerations[0].operator")],
            id="gate off",
        ),
        pytest.param([Toleration("k", "Gt", "5")], [Toleration("k", "Gt", "5")], False, [], id="gate off: kept"),
        pytest.param(
            [Toleration("k", "Gt", "5")],
            [Toleration("k", "Gt", "5"), Toleration("k", "Lt", "9")],
            False,
            [],
            id="gate off: a pod that has one may get more",
        ),
        pytest.param(
            [Toleration("k", "Gt", "5")],
            [Toleration("k", "Gt", "5"), Toleration("k", "Lt", "x")],
            False,
            [(ErrorType.INVALID, "spec.tolerations[1].value")] * 2,
            id="gate off: the rules for them hold",
        ),
    ],
)
def test_comparisons_on_an_existing_pod(
    old: list[Toleration], new: list[Toleration], *, gate: bool, found: list[tuple[ErrorType, str]]
) -> None:
    """pkg/api/pod/util.go, allowTaintTolerationComparisonOperators"""
    assert places(validate_added_tolerations(old, new, comparison_operators=gate)) == found


def pod(tolerations: object, node_name: str = "") -> dict[str, Any]:
    return {"spec": {"nodeName": node_name, "tolerations": tolerations}}


RAW: dict[str, Any] = {"key": "key1", "value": "value1"}


@pytest.mark.parametrize("node_name", ["", "node1"])
def test_bound_or_not_a_toleration_may_not_change(node_name: str) -> None:
    """TestValidatePodUpdate: toleration modified in updates to an unscheduled pod"""
    errors = validate_toleration_update(pod([RAW], node_name), pod([RAW | {"value": "value2"}], node_name))
    assert [str(error) for error in errors] == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    ]


def test_absent_null_and_empty_are_the_same() -> None:
    assert validate_toleration_update(pod([RAW]), pod([RAW | {"operator": None, "effect": ""}])) == ()


@pytest.mark.parametrize("empty", [{}, {"spec": None}, pod(None), None])
def test_a_pod_without_tolerations_may_get_some(empty: object) -> None:
    assert validate_toleration_update(empty, pod([RAW])) == ()


def test_wrong_types_are_reported_without_errors_that_follow() -> None:
    errors = validate_toleration_update(pod([RAW]), pod([RAW | {"value": 5}]))
    assert places(errors) == [(ErrorType.TYPE_INVALID, "spec.tolerations[0].value")]
    errors = validate_toleration_update(pod([{"key": 5}]), pod([RAW]))
    assert places(errors) == [(ErrorType.TYPE_INVALID, "spec.tolerations[0].key")]
    errors = validate_toleration_update({"spec": 5}, pod("x"))
    assert places(errors) == [(ErrorType.TYPE_INVALID, "spec"), (ErrorType.TYPE_INVALID, "spec.tolerations")]
