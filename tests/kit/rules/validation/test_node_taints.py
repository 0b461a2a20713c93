"""semantics.md 2.1; cases of TestValidateNode in pkg/apis/core/validation/validation_test.go."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from evictstream.kit.rules.validation import ErrorType, FieldError, validate_node_taints, validate_taints
from evictstream.models.kubernetes import Taint

EFFECTS = 'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric"
    " character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
NO_KEY = [(ErrorType.INVALID, "spec.taints[0].key"), (ErrorType.INVALID, "spec.taints[0].key")]


def node(*taints: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": list(taints)}}


def taint(key: str = "a", effect: str = "NoSchedule", **fields: object) -> dict[str, Any]:
    return {"key": key, "effect": effect} | fields


def places(errors: tuple[FieldError, ...]) -> list[tuple[ErrorType, str]]:
    return [(error.type, error.field) for error in errors]


@pytest.mark.parametrize(
    "taints",
    [
        pytest.param([], id="2.1 none"),
        pytest.param([taint("GPU", "NoSchedule", value="abc")], id="TestValidateNode key, value, effect"),
        pytest.param([taint("GPU", "NoExecute")], id="2.1 no value"),
        pytest.param([taint("GPU", "PreferNoSchedule", value="")], id="2.1 empty value"),
        pytest.param([taint("GPU", value=None, timeAdded=None)], id="2.1 null is absent"),
        pytest.param([taint("example.com/dedicated", value="user_1.a")], id="2.1 prefixed key"),
        pytest.param(
            [taint("a", "NoSchedule"), taint("a", "NoExecute"), taint("a", "PreferNoSchedule")],
            id="2.1 same key with every effect",
        ),
        pytest.param([taint("a"), taint("b")], id="2.1 same effect with another key"),
        pytest.param([taint(timeAdded="2026-11-21T02:15:53Z")], id="2.1 timeAdded"),
        pytest.param([taint(timeAdded="2026-11-21T02:15:53.123456789+01:00")], id="2.1 timeAdded, fraction and zone"),
        pytest.param([taint("a", "NoSchedule", timeAdded="1970-01-01T00:00:00Z")], id="2.1 timeAdded long ago"),
        pytest.param([taint(timeAdded="0000-01-01T3:04:05+24:00")], id="2.1 timeAdded, as leniently as Go"),
        pytest.param([taint(timeAdded=dt.datetime(2026, 11, 21, tzinfo=dt.UTC))], id="timeAdded as YAML reads it"),
        pytest.param([taint(unknown=[1])], id="unknown fields are not looked at"),
    ],
)
def test_legal_taints(taints: list[object]) -> None:
    assert validate_node_taints(node(*taints)) == ()


@pytest.mark.parametrize(
    ("taints", "found"),
    [
        pytest.param([{"value": "v", "effect": "NoSchedule"}], NO_KEY, id="TestValidateNode missing-taint-key"),
        pytest.param(
            [taint("NoUppercaseOrSpecialCharsLike=Equals", value="special-user-1")],
            [(ErrorType.INVALID, "spec.taints[0].key")],
            id="TestValidateNode bad-taint-key",
        ),
        pytest.param(
            [taint("dedicated", value="some\\bad\\value")],
            [(ErrorType.INVALID, "spec.taints[0].value")],
            id="TestValidateNode bad-taint-value",
        ),
        pytest.param(
            [{"key": "dedicated", "value": "special-user-3", "effect": ""}],
            [(ErrorType.REQUIRED, "spec.taints[0].effect")],
            id="TestValidateNode missing-taint-effect",
        ),
        pytest.param(
            [taint("dedicated", "NoExecuteNoAdmit", value="abc")],
            [(ErrorType.NOT_SUPPORTED, "spec.taints[0].effect")],
            id="TestValidateNode invalid-taint-effect",
        ),
        pytest.param(
            [taint("dedicated", value="1"), taint("dedicated", value="2")],
            [(ErrorType.DUPLICATE, "spec.taints[1]")],
            id="TestValidateNode duplicated-taints-with-same-key-effect",
        ),
        pytest.param(
            [taint(), taint("b"), taint()], [(ErrorType.DUPLICATE, "spec.taints[2]")], id="2.1 on the second one"
        ),
        pytest.param(
            [taint(), taint(), taint()],
            [(ErrorType.DUPLICATE, "spec.taints[1]"), (ErrorType.DUPLICATE, "spec.taints[2]")],
            id="2.1 every further one",
        ),
        pytest.param(
            [taint("a", "noschedule")],
            [(ErrorType.NOT_SUPPORTED, "spec.taints[0].effect")],
            id="2.1 case of the effect",
        ),
        pytest.param([taint(value="-5")], [(ErrorType.INVALID, "spec.taints[0].value")], id="2.4 negative number"),
        pytest.param([taint(value="a" * 64)], [(ErrorType.INVALID, "spec.taints[0].value")], id="2.4 long value"),
        pytest.param([None], [*NO_KEY, (ErrorType.REQUIRED, "spec.taints[0].effect")], id="2.1 null entry has nothing"),
        pytest.param(
            [taint("a b", "x", value="é"), {}],
            [
                (ErrorType.INVALID, "spec.taints[0].key"),
                (ErrorType.INVALID, "spec.taints[0].value"),
                (ErrorType.NOT_SUPPORTED, "spec.taints[0].effect"),
                (ErrorType.INVALID, "spec.taints[1].key"),
                (ErrorType.INVALID, "spec.taints[1].key"),
                (ErrorType.REQUIRED, "spec.taints[1].effect"),
            ],
            id="2.1 all errors of all taints at once",
        ),
        pytest.param([taint(5)], [(ErrorType.TYPE_INVALID, "spec.taints[0].key")], id="key is a number"),  # type: ignore[arg-type]  # a wrong type is the case
        pytest.param([taint(value=True)], [(ErrorType.TYPE_INVALID, "spec.taints[0].value")], id="value is a boolean"),
        pytest.param(
            [{"key": "a", "effect": ["NoExecute"]}],
            [(ErrorType.TYPE_INVALID, "spec.taints[0].effect")],
            id="effect is a list",
        ),
        pytest.param(
            [taint(timeAdded=1)], [(ErrorType.TYPE_INVALID, "spec.taints[0].timeAdded")], id="timeAdded is a number"
        ),
        pytest.param(
            [taint(timeAdded="yesterday")],
            [(ErrorType.TYPE_INVALID, "spec.taints[0].timeAdded")],
            id="timeAdded is no instant",
        ),
        pytest.param(
            [taint(timeAdded="2026-13-21T02:15:53Z")],
            [(ErrorType.TYPE_INVALID, "spec.taints[0].timeAdded")],
            id="timeAdded is no date",
        ),
        pytest.param(
            [taint(timeAdded="2026-11-21T02:15:53")],
            [(ErrorType.TYPE_INVALID, "spec.taints[0].timeAdded")],
            id="timeAdded has no zone",
        ),
        pytest.param(["a=b:NoExecute"], [(ErrorType.TYPE_INVALID, "spec.taints[0]")], id="taint is a text"),
        pytest.param(
            [7, taint("a b")],
            [(ErrorType.TYPE_INVALID, "spec.taints[0]"), (ErrorType.INVALID, "spec.taints[1].key")],
            id="rules go on behind a wrong type",
        ),
    ],
)
def test_illegal_taints(taints: list[object], found: list[tuple[ErrorType, str]]) -> None:
    assert places(validate_node_taints(node(*taints))) == found


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        pytest.param([], "", id="object is a list"),
        pytest.param({"spec": "text"}, "spec", id="spec is a text"),
        pytest.param({"spec": {"taints": {}}}, "spec.taints", id="taints are an object"),
        pytest.param({"spec": {"taints": "a"}}, "spec.taints", id="taints are a text"),
        pytest.param({"spec": {"taints": 1}}, "spec.taints", id="taints are a number"),
    ],
)
def test_wrong_types_above_the_taints(broken: object, path: str) -> None:
    assert places(validate_node_taints(broken)) == [(ErrorType.TYPE_INVALID, path)]


@pytest.mark.parametrize("empty", [{}, {"spec": None}, {"spec": {}}, {"spec": {"taints": None}}, None])
def test_a_node_without_taints_has_no_errors(empty: object) -> None:
    assert validate_node_taints(empty) == ()


def test_errors_stand_in_the_order_of_the_api_server() -> None:
    """validateNodeTaints: by entry; in it key, value, effect, duplicate"""
    errors = validate_node_taints(node({"key": "a b", "value": "-"}, {"key": "a b", "value": "-"}))
    assert [error.field for error in errors] == [
        "spec.taints[0].key",
        "spec.taints[0].value",
        "spec.taints[0].effect",
        "spec.taints[1].key",
        "spec.taints[1].value",
        "spec.taints[1].effect",
        "spec.taints[1]",
    ]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        pytest.param({"key": "a"}, "spec.taints[0].effect: Required value", id="errors.go Required"),
        pytest.param(
            taint("a", "x"), f'spec.taints[0].effect: Unsupported value: "x": {EFFECTS}', id="errors.go NotSupported"
        ),
        pytest.param(
            taint("a", '<\x00"'),
            rf'spec.taints[0].effect: Unsupported value: "\u003c\u0000\"": {EFFECTS}',
            id="errors.go NotSupported: an effect as JSON",
        ),
        pytest.param(
            taint("<\x00"),
            rf'spec.taints[0].key: Invalid value: "<\x00": {KEY_RULE}',
            id="errors.go Invalid: a text in Go's quotes",
        ),
        pytest.param(taint(7), "spec.taints[0].key: Invalid value: 7: must be a string", id="errors.go TypeInvalid"),  # type: ignore[arg-type]  # a wrong type is the case
        pytest.param(
            taint("a" * 64),
            f'spec.taints[0].key: Invalid value: "{"a" * 64}": name part must be no more than 63 bytes',
            id="errors.go Invalid",
        ),
    ],
)
def test_errors_read_as_those_of_the_api_server(entry: object, text: str) -> None:
    assert [str(error) for error in validate_node_taints(node(entry))] == [text]


@pytest.mark.parametrize(
    ("second", "shown"),
    [
        pytest.param(taint(), '{"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}', id="absent fields too"),
        pytest.param(
            taint(value="v", timeAdded="2026-11-21T03:15:53.9+01:00", other=1),
            '{"Key":"a","Value":"v","Effect":"NoSchedule","TimeAdded":"2026-11-21T02:15:53Z"}',
            id="UTC in whole seconds, no unknown fields",
        ),
        pytest.param(
            taint(timeAdded=dt.datetime(2026, 11, 21, tzinfo=dt.UTC)),
            '{"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":"2026-11-21T00:00:00Z"}',
            id="timeAdded as YAML reads it",
        ),
        pytest.param(
            Taint("a", "", "NoSchedule", 5),
            '{"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":"1970-01-01T00:00:00Z"}',
            id="a taint that was read",
        ),
    ],
)
def test_a_duplicate_is_shown_as_go_has_it(second: object, shown: str) -> None:
    """errors.go, ErrorBody: `json.Marshal` of the internal type, which has no names for JSON."""
    (error,) = validate_taints([taint(), second])
    assert str(error) == (f"spec.taints[1]: Duplicate value: {shown}: taints must be unique by key and effect pair")


def test_texts_that_go_reads_alike_are_one_key() -> None:
    errors = validate_taints([taint("\ud800"), taint("\ufffd")])
    assert (ErrorType.DUPLICATE, "spec.taints[1]") in places(errors)


def test_an_error_of_the_object_itself_has_no_path() -> None:
    (error,) = validate_node_taints(5)
    assert (error.field, str(error)) == ("", "object: Invalid value: 5: must be an object")


def test_taints_already_read_are_validated_under_any_path() -> None:
    errors = validate_taints((Taint("a", "", "NoExecute", 1), Taint("a", "v", "NoExecute")), "taints")
    assert places(errors) == [(ErrorType.DUPLICATE, "taints[1]")]
