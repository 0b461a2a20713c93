"""semantics.md 2.2; cases of TestValidatePod and TestValidatePodSpec in pkg/apis/core/validation/validation_test.go."""

from __future__ import annotations

from typing import Any

import pytest

from evictstream.kit.rules.validation import (
    ErrorType,
    FieldError,
    validate_pod_tolerations,
    validate_tolerations,
)
from evictstream.models.kubernetes import Toleration

OPERATOR = "spec.tolerations[0].operator"
EFFECT = "spec.tolerations[0].effect"
KEY = "spec.tolerations[0].key"
VALUE = "spec.tolerations[0].value"
SECONDS = "spec.tolerations[0].tolerationSeconds"


def pod(*tolerations: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"tolerations": list(tolerations)}}


def toleration(
    key: object = "", operator: object = "", value: object = "", effect: object = "", seconds: object = None
) -> dict[str, Any]:
    return {"key": key, "operator": operator, "value": value, "effect": effect, "tolerationSeconds": seconds}


def places(errors: tuple[FieldError, ...]) -> list[tuple[ErrorType, str]]:
    return [(error.type, error.field) for error in errors]


@pytest.mark.parametrize(
    "tolerations",
    [
        pytest.param([toleration("key", "Equal", "value", "NoSchedule")], id="TestValidatePod Equal"),
        pytest.param([toleration("key", "", "value", "NoSchedule")], id="TestValidatePod no operator is Equal"),
        pytest.param([toleration("key", "Exists", "", "NoSchedule")], id="TestValidatePod Exists"),
        pytest.param([toleration("", "Exists", "", "NoSchedule")], id="TestValidatePod no key with Exists"),
        pytest.param([toleration("", "Exists")], id="TestValidatePod Exists alone"),
        pytest.param([toleration("key", "Exists")], id="TestValidatePod no effect"),
        pytest.param([toleration("key", "Equal", "", "NoExecute")], id="TestValidatePod no value"),
        pytest.param(
            [toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute", -99)],
            id="TestValidatePod negative seconds",
        ),
        pytest.param([toleration("key", "Exists", "", "NoExecute", 0)], id="2.2 zero seconds"),
        pytest.param([toleration("key", "Exists", "", "NoExecute", 2**63 - 1)], id="2.2 longest time"),
        pytest.param([toleration("key", "Exists", "", "PreferNoSchedule")], id="2.2 PreferNoSchedule"),
        pytest.param([toleration("", "Exists")] * 2, id="2.2 duplicates are accepted"),
        pytest.param([toleration(f"k{i}", "Exists") for i in range(1000)], id="2.2 no limit on their number"),
        pytest.param([{"operator": "Exists"}], id="2.2 absent fields"),
        pytest.param([{"operator": "Exists", "unknown": 1}], id="unknown fields are not looked at"),
        pytest.param([], id="none"),
    ],
)
def test_legal_tolerations(tolerations: list[object]) -> None:
    assert validate_pod_tolerations(pod(*tolerations)) == ()
    assert validate_pod_tolerations(pod(*tolerations), comparison_operators=True) == ()


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        pytest.param(
            toleration("nospecialchars^=@", "Equal", "bar", "NoSchedule"),
            [(ErrorType.INVALID, KEY)],
            id="TestValidatePod invalid toleration key",
        ),
        pytest.param(
            toleration("foo", "In", "bar", "NoSchedule"),
            [(ErrorType.NOT_SUPPORTED, OPERATOR)],
            id="TestValidatePod invalid toleration operator",
        ),
        pytest.param(
            toleration("foo", "Exists", "bar", "NoSchedule"),
            [(ErrorType.INVALID, OPERATOR)],
            id="TestValidatePod value must be empty with Exists",
        ),
        pytest.param(
            toleration("", "Equal", "bar", "NoSchedule"),
            [(ErrorType.INVALID, OPERATOR)],
            id="TestValidatePod operator must be Exists without key",
        ),
        pytest.param(
            toleration("node.kubernetes.io/not-ready", "Exists", "", "NoSchedule", 20),
            [(ErrorType.INVALID, EFFECT)],
            id="TestValidatePod effect must be NoExecute with seconds",
        ),
        pytest.param(
            toleration("k", "Exists", "", "", 20), [(ErrorType.INVALID, EFFECT)], id="2.2 NoExecute must be spelled out"
        ),
        pytest.param(
            toleration("k", "Exists", "", "", -1), [(ErrorType.INVALID, EFFECT)], id="2.2 negative seconds count as set"
        ),
        pytest.param(
            toleration("k", "Exists", "", "PreferNoSchedule", 0),
            [(ErrorType.INVALID, EFFECT)],
            id="2.2 zero counts too",
        ),
        pytest.param(toleration(), [(ErrorType.INVALID, OPERATOR)], id="2.2 nothing at all"),
        pytest.param(None, [(ErrorType.INVALID, OPERATOR)], id="2.2 null entry has nothing"),
        pytest.param(
            toleration("k", "Equal", "-5"), [(ErrorType.INVALID, OPERATOR)], id="2.2 value of Equal, on the operator"
        ),
        pytest.param(toleration("k", "", "a b"), [(ErrorType.INVALID, OPERATOR)], id="2.2 value without operator"),
        pytest.param(toleration("k", "exists"), [(ErrorType.NOT_SUPPORTED, OPERATOR)], id="2.2 case of the operator"),
        pytest.param(
            toleration("k", "Exists", "", "Never"), [(ErrorType.NOT_SUPPORTED, EFFECT)], id="2.2 unknown effect"
        ),
        pytest.param(
            toleration("k", "Exists", "", "Never", 5),
            [(ErrorType.INVALID, EFFECT), (ErrorType.NOT_SUPPORTED, EFFECT)],
            id="2.2 unknown effect with seconds: both rules",
        ),
        pytest.param(
            toleration("", "In", "a b"),
            [(ErrorType.INVALID, OPERATOR), (ErrorType.NOT_SUPPORTED, OPERATOR)],
            id="2.2 unknown operator without key: both rules, nothing of the value",
        ),
        pytest.param(
            toleration("", "", "a b"),
            [(ErrorType.INVALID, OPERATOR), (ErrorType.INVALID, OPERATOR)],
            id="2.2 no key and a broken value: both rules",
        ),
        pytest.param(
            toleration("a b", "Exists", "v", "x", 1),
            [
                (ErrorType.INVALID, KEY),
                (ErrorType.INVALID, EFFECT),
                (ErrorType.INVALID, OPERATOR),
                (ErrorType.NOT_SUPPORTED, EFFECT),
            ],
            id="ValidateTolerations all at once, in its order",
        ),
        pytest.param(toleration(5, "Exists"), [(ErrorType.TYPE_INVALID, KEY)], id="key is a number"),
        pytest.param(toleration("k", 5), [(ErrorType.TYPE_INVALID, OPERATOR)], id="operator is a number"),
        pytest.param(toleration("k", "Equal", 5), [(ErrorType.TYPE_INVALID, VALUE)], id="value is a number"),
        pytest.param(toleration("k", "Exists", value=True), [(ErrorType.TYPE_INVALID, VALUE)], id="value is a boolean"),
        pytest.param(toleration("k", "Exists", "", {}), [(ErrorType.TYPE_INVALID, EFFECT)], id="effect is an object"),
        pytest.param(
            toleration("k", "Exists", "", "NoExecute", "5"),
            [(ErrorType.TYPE_INVALID, SECONDS)],
            id="seconds are a text",
        ),
        pytest.param(
            toleration("k", "Exists", "", "NoExecute", 5.0),
            [(ErrorType.TYPE_INVALID, SECONDS)],
            id="seconds have a fraction",
        ),
        pytest.param(
            toleration("k", "Exists", "", "NoExecute", seconds=True),
            [(ErrorType.TYPE_INVALID, SECONDS)],
            id="seconds are a boolean",
        ),
        pytest.param(
            toleration("k", "Exists", "", "NoExecute", 2**63),
            [(ErrorType.TYPE_INVALID, SECONDS)],
            id="seconds beyond 64 bit",
        ),
        pytest.param(
            toleration("k", "Exists", "", "NoExecute", -(2**63) - 1),
            [(ErrorType.TYPE_INVALID, SECONDS)],
            id="seconds below 64 bit",
        ),
        pytest.param([], [(ErrorType.TYPE_INVALID, "spec.tolerations[0]")], id="toleration is a list"),
    ],
)
def test_illegal_tolerations(broken: object, found: list[tuple[ErrorType, str]]) -> None:
    assert places(validate_pod_tolerations(pod(broken))) == found


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        pytest.param(toleration("sla", "Gt", "950"), [], id="TestValidatePod Gt"),
        pytest.param(toleration("sla", "Lt", "0"), [], id="2.4 zero"),
        pytest.param(toleration("sla", "Lt", "-5"), [], id="2.4 negative bound"),
        pytest.param(toleration("sla", "Gt", "9223372036854775807"), [], id="ValidateTolerations highest number"),
        pytest.param(toleration("sla", "Gt", "-9223372036854775808"), [], id="ValidateTolerations lowest number"),
        pytest.param(toleration("sla", "Gt", "1", "NoExecute", 5), [], id="2.2 with seconds"),
        pytest.param(toleration("sla", "Gt", ""), [(ErrorType.INVALID, VALUE)] * 2, id="2.4 no number"),
        pytest.param(toleration("sla", "Gt", "high"), [(ErrorType.INVALID, VALUE)] * 2, id="2.4 a word"),
        pytest.param(toleration("sla", "Lt", "0950"), [(ErrorType.INVALID, VALUE)], id="2.4 leading zero"),
        pytest.param(toleration("sla", "Lt", "+5"), [(ErrorType.INVALID, VALUE)], id="2.4 plus"),
        pytest.param(toleration("sla", "Gt", "-0"), [(ErrorType.INVALID, VALUE)], id="2.4 minus zero"),
        pytest.param(toleration("sla", "Gt", "95.5"), [(ErrorType.INVALID, VALUE)] * 2, id="2.4 fraction"),
        pytest.param(toleration("sla", "Gt", " 5"), [(ErrorType.INVALID, VALUE)] * 2, id="2.4 space"),
        pytest.param(
            toleration("sla", "Gt", "9223372036854775808"),
            [(ErrorType.INVALID, VALUE)],
            id="ValidateTolerations beyond 64 bit",
        ),
        pytest.param(toleration("sla", "Gt", 950), [(ErrorType.TYPE_INVALID, VALUE)], id="bound is a number"),
        pytest.param(toleration("", "Gt", "5"), [(ErrorType.INVALID, OPERATOR)], id="2.2 no key needs Exists"),
        pytest.param(
            toleration("", "Lt", "x", "", 1),
            [(ErrorType.INVALID, OPERATOR), (ErrorType.INVALID, EFFECT), *[(ErrorType.INVALID, VALUE)] * 2],
            id="2.2 all at once",
        ),
        pytest.param(toleration("sla", "gt", "5"), [(ErrorType.NOT_SUPPORTED, OPERATOR)], id="2.2 case"),
        pytest.param(toleration("sla", "Ge", "5"), [(ErrorType.NOT_SUPPORTED, OPERATOR)], id="2.2 other comparison"),
    ],
)
def test_comparisons_with_the_gate(entry: object, found: list[tuple[ErrorType, str]]) -> None:
    assert places(validate_pod_tolerations(pod(entry), comparison_operators=True)) == found


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
@pytest.mark.parametrize("value", ["950", "high"])
def test_comparisons_without_the_gate(operator: str, value: str) -> None:
    """TestValidatePod: numeric operators require the gate; the value is not looked at"""
    errors = validate_pod_tolerations(pod(toleration("node.kubernetes.io/sla", operator, value, "NoSchedule")))
    assert [str(error) for error in errors] == [
        f'{OPERATOR}: Unsupported value: "{operator}": supported values: "Equal", "Exists", "Lt", "Gt"'
    ]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        pytest.param(
            toleration("k", "In", "v"),
            f'{OPERATOR}: Unsupported value: "In": supported values: "Equal", "Exists"',
            id="operator",
        ),
        pytest.param(
            toleration("k", "Exists", "v"),
            f"{OPERATOR}: Invalid value: \"v\": value must be empty when `operator` is 'Exists'",
            id="Exists with value",
        ),
        pytest.param(
            toleration("", "Equal", "v"),
            f'{OPERATOR}: Invalid value: "Equal": operator must be Exists when `key` is empty, '
            'which means "match all values and all keys"',
            id="no key",
        ),
        pytest.param(
            toleration("k", "Exists", "", "NoSchedule", 1),
            f"{EFFECT}: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
            id="seconds",
        ),
        pytest.param(
            toleration("k", "Exists", "", "NoExecute", 1.5),
            f"{SECONDS}: Invalid value: 1.5: must be an integer",
            id="type",
        ),
    ],
)
def test_errors_read_as_those_of_the_api_server(entry: object, text: str) -> None:
    """validation.go, ValidateTolerations"""
    assert [str(error) for error in validate_pod_tolerations(pod(entry))] == [text]


INTEGER_RULE = "must be a valid decimal integer in canonical form"


@pytest.mark.parametrize(
    ("value", "details"),
    [
        pytest.param("v", (INTEGER_RULE, 'strconv.ParseInt: parsing "v": invalid syntax'), id="a word"),
        pytest.param("", ("must be non-empty", 'strconv.ParseInt: parsing "": invalid syntax'), id="nothing"),
        pytest.param("-", (INTEGER_RULE, 'strconv.ParseInt: parsing "-": invalid syntax'), id="only a sign"),
        pytest.param("007", (INTEGER_RULE,), id="a number to Go"),
        pytest.param("+5", (INTEGER_RULE,), id="a number with a plus to Go"),
        pytest.param("0" * 9_000, (INTEGER_RULE,), id="endless zeros are a number to Go"),
        pytest.param(
            "9223372036854775808",
            ('strconv.ParseInt: parsing "9223372036854775808": value out of range',),
            id="beyond 64 bit",
        ),
        pytest.param(
            "-9223372036854775809",
            ('strconv.ParseInt: parsing "-9223372036854775809": value out of range',),
            id="below 64 bit",
        ),
        pytest.param(
            "00009223372036854775808",
            (INTEGER_RULE, 'strconv.ParseInt: parsing "00009223372036854775808": value out of range'),
            id="both",
        ),
        pytest.param(
            "18446744073709551615x",
            (INTEGER_RULE, 'strconv.ParseInt: parsing "18446744073709551615x": invalid syntax'),
            id="digits that Go can still count, and a letter",
        ),
        pytest.param(
            "18446744073709551616x",
            (INTEGER_RULE, 'strconv.ParseInt: parsing "18446744073709551616x": value out of range'),
            id="past 64 bit Go looks no further",
        ),
        pytest.param("\n", (INTEGER_RULE, r'strconv.ParseInt: parsing "\n": invalid syntax'), id="line end"),
    ],
)
def test_a_non_numeric_bound_has_the_api_servers_error(value: str, details: tuple[str, ...]) -> None:
    """validation.go, ValidateTolerations: `IsDecimalInteger`, then `strconv.ParseInt`."""
    errors = validate_tolerations([toleration("k", "Gt", value)], comparison_operators=True)
    assert [(error.field, error.bad_value, error.detail) for error in errors] == [
        (VALUE, value, detail) for detail in details
    ]


def test_operators_and_effects_are_shown_as_json() -> None:
    """errors.go, ErrorBody: `%q` is for Go's own string type only."""
    errors = validate_tolerations([toleration("", "<", "", "x&y", 1)])
    assert [str(error).split(": ")[2] for error in errors] == [
        r'"\u003c"',
        r'"x\u0026y"',
        r'"\u003c"',
        r'"x\u0026y"',
    ]


def test_the_entry_is_named() -> None:
    errors = validate_pod_tolerations(pod({"operator": "Exists"}, {"operator": "Exists"}, toleration("a b", "x")))
    assert [error.field for error in errors] == ["spec.tolerations[2].key", "spec.tolerations[2].operator"]


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        pytest.param("text", "", id="object is a text"),
        pytest.param({"spec": []}, "spec", id="spec is a list"),
        pytest.param({"spec": {"tolerations": {"operator": "Exists"}}}, "spec.tolerations", id="one without list"),
    ],
)
def test_wrong_types_above_the_tolerations(broken: object, path: str) -> None:
    assert places(validate_pod_tolerations(broken)) == [(ErrorType.TYPE_INVALID, path)]


@pytest.mark.parametrize("empty", [{}, {"spec": None}, {"spec": {}}, {"spec": {"tolerations": None}}, None])
def test_a_pod_without_tolerations_has_no_errors(empty: object) -> None:
    assert validate_pod_tolerations(empty) == ()


def test_tolerations_already_read_are_validated_under_any_path() -> None:
    errors = validate_tolerations((Toleration("a", "Exists", "", "", 5), Toleration("", "Exists")), "tolerations")
    assert places(errors) == [(ErrorType.INVALID, "tolerations[0].effect")]
