"""Errors of one object as data, in the form in which the API server reports them.

Source: `staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go`.
"""

import enum
from collections.abc import Sequence

import msgspec

from evictstream.kit.rules.go_texts import as_json, quoted


class ErrorType(enum.StrEnum):
    """What is wrong with a field; the values are the machine-readable names of Kubernetes."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    DUPLICATE = "FieldValueDuplicate"
    FORBIDDEN = "FieldValueForbidden"
    TYPE_INVALID = "FieldValueTypeInvalid"

    @property
    def text(self) -> str:
        """The first words of Kubernetes' message; as there, a wrong type reads "Invalid value"."""
        return _TEXTS[self]


_TEXTS = {
    ErrorType.REQUIRED: "Required value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.TYPE_INVALID: "Invalid value",
}

_WITHOUT_VALUE = frozenset({ErrorType.REQUIRED, ErrorType.FORBIDDEN})


class FieldError(msgspec.Struct, frozen=True, gc=False):
    """One broken rule.

    Attributes:
        type: kind of error.
        field: path as Kubernetes gives it, such as `spec.taints[0].key`; empty for the object as a whole.
        bad_value: the value of the field, as in JSON; an empty text if there is none to show.
        detail: the rule, in Kubernetes' words if it has the rule; may be empty.
        shown: the value as in Kubernetes' message, if its Go type makes that another text; else empty.
    """

    type: ErrorType
    field: str
    bad_value: object = ""
    detail: str = ""
    shown: str = ""

    def __str__(self) -> str:
        """Write it as the API server does: field, kind, value where it helps, rule."""
        parts = [self.field or "object", self.type.text]
        if self.type not in _WITHOUT_VALUE:
            parts.append(self.shown or _shown(self.bad_value))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)


def required(field: str) -> FieldError:
    """Report a missing or empty field."""
    return FieldError(ErrorType.REQUIRED, field)


def invalid(field: str, value: object, detail: str) -> FieldError:
    """Report a value in a wrong form."""
    return FieldError(ErrorType.INVALID, field, value, detail)


def invalid_name(field: str, name: str, detail: str) -> FieldError:
    """Report an effect or operator in the wrong place; Go has a type for them, so the value is shown as JSON."""
    return FieldError(ErrorType.INVALID, field, name, detail, shown=as_json(name))


def not_supported(field: str, name: str, supported: Sequence[str]) -> FieldError:
    """Report an effect or operator outside a fixed set, and name the set."""
    names = ", ".join(map(quoted, supported))
    return FieldError(ErrorType.NOT_SUPPORTED, field, name, f"supported values: {names}", shown=as_json(name))


def duplicate(field: str, value: object, detail: str, shown: str) -> FieldError:
    """Report a value that occurs twice.

    Args:
        field: path of the later one.
        value: the value of the field.
        detail: the rule.
        shown: the value in the shape of its Go type, as JSON.
    """
    return FieldError(ErrorType.DUPLICATE, field, value, detail, shown=shown)


def forbidden(field: str, detail: str) -> FieldError:
    """Report a change that is not allowed."""
    return FieldError(ErrorType.FORBIDDEN, field, "", detail)


def wrong_type(field: str, value: object, wanted: str) -> FieldError:
    """Report a value of another JSON type than the field's.

    The API server stops at the first of these while it decodes; here they are listed like all others.

    Args:
        field: path of the field.
        value: the value of the field.
        wanted: the type with its article, such as `a string`.
    """
    return FieldError(ErrorType.TYPE_INVALID, field, value, f"must be {wanted}")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    try:
        return as_json(value)
    except (TypeError, ValueError, RecursionError):  # YAML allows more: keys of any type, loops, endless numbers
        return f"<{type(value).__name__}>"
