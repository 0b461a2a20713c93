"""Which edits of tolerations the API server allows on a pod that exists (semantics.md 2.3).

Bound or not, a toleration may be added, but none may vanish or change, except for its seconds. The order is free.
Source: `ValidatePodUpdate` and `validateOnlyAddedTolerations` in `pkg/apis/core/validation/validation.go`, and
`allowTaintTolerationComparisonOperators` in `pkg/api/pod/util.go` for what an older pod may keep.
"""

from typing import Final

from evictstream.kit.rules.validation.field_errors import FieldError, forbidden
from evictstream.kit.rules.validation.pod_tolerations import tolerations_of, validate_tolerations
from evictstream.kit.rules.validation.raw import entries_at, text_at
from evictstream.models.kubernetes.tolerations import GREATER_THAN, LESS_THAN

_CHANGED: Final = "existing toleration can not be modified except its tolerationSeconds"

# The fields that make two tolerations different: all but the seconds.
_IDENTITY: Final = ("key", "operator", "value", "effect")


def validate_toleration_update(
    old: object, new: object, *, comparison_operators: bool = False
) -> tuple[FieldError, ...]:
    """List all errors of an edit of `spec.tolerations`.

    Args:
        old: the pod as it is stored.
        new: the pod after the edit.
        comparison_operators: whether `Gt` and `Lt` are allowed; a pod that has one already may keep and add them.
    """
    errors: list[FieldError] = []
    before = tolerations_of(old, errors)
    after = tolerations_of(new, errors)
    return (*errors, *validate_added_tolerations(before, after, comparison_operators=comparison_operators))


def validate_added_tolerations(
    old: object, new: object, path: str = "spec.tolerations", *, comparison_operators: bool = False
) -> tuple[FieldError, ...]:
    """List all errors of an edit of a list of tolerations: those of the new list, then what is missing in it.

    Args:
        old: the list as it is stored; raw objects or `Toleration` values.
        new: the list after the edit.
        path: where the list stands, for the errors.
        comparison_operators: whether `Gt` and `Lt` are allowed.
    """
    errors: list[FieldError] = []
    before = _identities(old, path, errors)
    unreadable: list[FieldError] = []  # reported with the rules of the new list
    after = _identities(new, path, unreadable)
    in_use = any(operator in (GREATER_THAN, LESS_THAN) for _, operator, _, _ in before)
    is_missing = not set(before) <= set(after) and not errors and not unreadable
    errors += validate_tolerations(new, path, comparison_operators=comparison_operators or in_use)
    if is_missing:
        errors.append(forbidden(path, _CHANGED))
    return tuple(errors)


def _identities(tolerations: object, path: str, errors: list[FieldError]) -> list[tuple[str | None, ...]]:
    return [
        tuple(text_at(fields, name, at, errors) for name in _IDENTITY)
        for at, fields in entries_at(tolerations, path, errors)
    ]
