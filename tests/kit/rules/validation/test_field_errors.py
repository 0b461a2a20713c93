"""How errors read: staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go."""

from __future__ import annotations

import datetime as dt

import pytest

from evictstream.kit.rules.validation import ErrorType, FieldError

LOOP: list[object] = []
LOOP.append(LOOP)
STEERING = 'f: Invalid value: "é\\n\\x1b[2J\\u009b\ufffd"'


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(FieldError(ErrorType.REQUIRED, "f"), "f: Required value", id="Required without detail"),
        pytest.param(
            FieldError(ErrorType.REQUIRED, "f", "x", "d"), "f: Required value: d", id="Required hides the value"
        ),
        pytest.param(FieldError(ErrorType.FORBIDDEN, "f", "x", "d"), "f: Forbidden: d", id="Forbidden hides the value"),
        pytest.param(FieldError(ErrorType.INVALID, "f", "x", "d"), 'f: Invalid value: "x": d', id="text in quotes"),
        pytest.param(FieldError(ErrorType.INVALID, "f", ""), 'f: Invalid value: ""', id="empty text"),
        pytest.param(FieldError(ErrorType.INVALID, "f", 5, "d"), "f: Invalid value: 5: d", id="number"),
        pytest.param(FieldError(ErrorType.INVALID, "f", bad_value=True), "f: Invalid value: true", id="boolean"),
        pytest.param(FieldError(ErrorType.INVALID, "f", None), "f: Invalid value: null", id="null"),
        pytest.param(FieldError(ErrorType.DUPLICATE, "f", {"k": 1}), 'f: Duplicate value: {"k":1}', id="object"),
        pytest.param(
            FieldError(ErrorType.INVALID, "f", "<", "d", r'"\u003c"'),
            r'f: Invalid value: "\u003c": d',
            id="shown in the words of its Go type",
        ),
        pytest.param(FieldError(ErrorType.NOT_SUPPORTED, "f", "x"), 'f: Unsupported value: "x"', id="Unsupported"),
        pytest.param(
            FieldError(ErrorType.TYPE_INVALID, "f", []), "f: Invalid value: []", id="TypeInvalid reads as Invalid"
        ),
        pytest.param(
            FieldError(ErrorType.INVALID, "f", "é\n\x1b[2J\x9b\ud800"), STEERING, id="a terminal is not steered"
        ),
        pytest.param(
            FieldError(ErrorType.INVALID, "f", dt.datetime(2026, 11, 21, tzinfo=dt.UTC)),
            'f: Invalid value: "2026-11-21 00:00:00+00:00"',
            id="instant from YAML",
        ),
        pytest.param(FieldError(ErrorType.INVALID, "f", {(1, 2): 3}), "f: Invalid value: <dict>", id="keys of YAML"),
        pytest.param(FieldError(ErrorType.INVALID, "f", LOOP), "f: Invalid value: <list>", id="loop of YAML"),
        pytest.param(FieldError(ErrorType.INVALID, "f", 1 << 20_000), "f: Invalid value: <int>", id="endless number"),
    ],
)
def test_text_of_an_error(error: FieldError, text: str) -> None:
    assert str(error) == text


def test_types_have_the_names_of_kubernetes() -> None:
    assert {error.value: error.text for error in ErrorType} == {
        "FieldValueRequired": "Required value",
        "FieldValueInvalid": "Invalid value",
        "FieldValueNotSupported": "Unsupported value",
        "FieldValueDuplicate": "Duplicate value",
        "FieldValueForbidden": "Forbidden",
        "FieldValueTypeInvalid": "Invalid value",
    }
