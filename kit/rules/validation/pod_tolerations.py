"""What the API server refuses in the tolerations of a pod (semantics.md 2.2).

Source: `ValidateTolerations` in `pkg/apis/core/validation/validation.go`.
"""

from collections.abc import Mapping
from typing import Final

from evictstream.kit.rules.validation.field_errors import FieldError, invalid, invalid_name, not_supported
from evictstream.kit.rules.validation.labels import int64_errors, label_value_errors
from evictstream.kit.rules.validation.node_taints import effect_errors, key_errors
from evictstream.kit.rules.validation.raw import check_int64, entries_at, object_at, text_at
from evictstream.models.kubernetes.taints import NO_EXECUTE
from evictstream.models.kubernetes.tolerations import EQUAL, EXISTS, GREATER_THAN, LESS_THAN

_OPERATORS: Final = (EQUAL, EXISTS)
# As upstream: the error with the gate off, which refuses `Gt` and `Lt`, lists all four; with the gate on it does not.
_OPERATORS_FOR_COMPARISON: Final = (EQUAL, EXISTS, LESS_THAN, GREATER_THAN)


def validate_pod_tolerations(pod: object, *, comparison_operators: bool = False) -> tuple[FieldError, ...]:
    """List all errors in `spec.tolerations` of a new pod.

    Args:
        pod: the pod as parsed from JSON or YAML; only `spec.tolerations` is checked.
        comparison_operators: whether the gate `TaintTolerationComparisonOperators` allows `Gt` and `Lt`.
    """
    errors: list[FieldError] = []
    tolerations = tolerations_of(pod, errors)
    return (*errors, *validate_tolerations(tolerations, comparison_operators=comparison_operators))


def validate_tolerations(
    tolerations: object, path: str = "spec.tolerations", *, comparison_operators: bool = False
) -> tuple[FieldError, ...]:
    """List all errors in a list of tolerations, by entry and then in the order of the API server.

    Duplicates are no errors, the length of the list is free, and seconds may be negative.

    Args:
        tolerations: raw objects or `Toleration` values; None for no list.
        path: where the list stands, for the errors.
        comparison_operators: whether `Gt` and `Lt` are allowed.
    """
    errors: list[FieldError] = []
    for at, fields in entries_at(tolerations, path, errors):
        key = text_at(fields, "key", at, errors)
        operator = text_at(fields, "operator", at, errors)
        value = text_at(fields, "value", at, errors)
        effect = text_at(fields, "effect", at, errors)
        check_int64(fields, "tolerationSeconds", at, errors)
        if key:
            errors += key_errors(key, f"{at}.key")
        if key == "" and operator is not None and operator != EXISTS:
            errors.append(invalid_name(f"{at}.operator", operator, _NO_KEY))
        if fields.get("tolerationSeconds") is not None and effect is not None and effect != NO_EXECUTE:
            errors.append(invalid_name(f"{at}.effect", effect, _SECONDS_WITHOUT_NO_EXECUTE))
        if operator is not None:
            errors += _operator_errors(operator, value, at, comparison_operators=comparison_operators)
        if effect:
            errors += effect_errors(effect, f"{at}.effect")
    return tuple(errors)


def tolerations_of(pod: object, errors: list[FieldError]) -> object:
    """Get `spec.tolerations` of a raw pod, unchecked; wrong types above it become errors."""
    fields: Mapping[object, object] | None = object_at({} if pod is None else pod, "", errors)
    spec = None if fields is None else object_at(fields.get("spec"), "spec", errors)
    return None if spec is None else spec.get("tolerations")


_NO_KEY: Final = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
_SECONDS_WITHOUT_NO_EXECUTE: Final = "effect must be 'NoExecute' when `tolerationSeconds` is set"
_VALUE_WITH_EXISTS: Final = "value must be empty when `operator` is 'Exists'"


def _operator_errors(
    operator: str, value: str | None, path: str, *, comparison_operators: bool
) -> tuple[FieldError, ...]:
    """Check operator and value together; the value of `Equal` and `Exists` is reported on the operator, as upstream.

    Args:
        operator: as given, empty for `Equal`.
        value: None if its type is wrong, which is reported elsewhere.
        path: of the toleration.
        comparison_operators: whether `Gt` and `Lt` are allowed.
    """
    match operator:
        case "" | "Equal":
            broken = label_value_errors(value or "")
            return (invalid(f"{path}.operator", value, ";".join(broken)),) if broken else ()
        case "Exists":
            return (invalid(f"{path}.operator", value, _VALUE_WITH_EXISTS),) if value else ()
        case "Gt" | "Lt" if not comparison_operators:
            return (not_supported(f"{path}.operator", operator, _OPERATORS_FOR_COMPARISON),)
        case "Gt" | "Lt":
            broken = () if value is None else int64_errors(value)
            return tuple(invalid(f"{path}.value", value, message) for message in broken)
        case _:
            return (not_supported(f"{path}.operator", operator, _OPERATORS),)
