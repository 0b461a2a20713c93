"""What the API server refuses in the taints of a node (semantics.md 2.1).

Source: `validateNodeTaints` and `validateTaintEffect` in `pkg/apis/core/validation/validation.go`.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Final

from evictstream.kit.rules.go_texts import as_json
from evictstream.kit.rules.validation.field_errors import (
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
)
from evictstream.kit.rules.validation.labels import label_key_errors, label_value_errors
from evictstream.kit.rules.validation.raw import check_instant, entries_at, object_at, text_at
from evictstream.models.instants import microseconds
from evictstream.models.kubernetes.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE
from evictstream.models.kubernetes.times import read_time, time_text

EFFECTS: Final = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
"""The three effects, in the order in which Kubernetes names them."""


def validate_node_taints(node: object) -> tuple[FieldError, ...]:
    """List all errors in `spec.taints` of a node.

    Args:
        node: the node as parsed from JSON or YAML; only `spec.taints` is checked.

    Returns:
        Errors with the path at which the field stands. The API server says `metadata.taints`, because `ValidateNode`
        hands that path down; there is no such field.
    """
    errors: list[FieldError] = []
    fields = object_at({} if node is None else node, "", errors)
    spec = None if fields is None else object_at(fields.get("spec"), "spec", errors)
    if spec is not None:
        errors += validate_taints(spec.get("taints"))
    return tuple(errors)


def validate_taints(taints: object, path: str = "spec.taints") -> tuple[FieldError, ...]:
    """List all errors in a list of taints, by entry and then in the order of the API server.

    The same key may come with several effects, and the value does not make a taint unique. `timeAdded` has no rule but
    its type.

    Args:
        taints: raw objects or `Taint` values; None for no list.
        path: where the list stands, for the errors.
    """
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for at, fields in entries_at(taints, path, errors):
        key = text_at(fields, "key", at, errors)
        if key is not None:
            errors += key_errors(key, f"{at}.key")
        value = text_at(fields, "value", at, errors)
        if value is not None and (broken := label_value_errors(value)):
            errors.append(invalid(f"{at}.value", value, ";".join(broken)))
        effect = text_at(fields, "effect", at, errors)
        if effect is not None:
            errors += effect_errors(effect, f"{at}.effect")
        check_instant(fields, "timeAdded", at, errors)
        if key is not None and effect is not None:
            if (key, effect) in seen:
                errors.append(_duplicate(at, fields, key, value or "", effect))
            seen.add((key, effect))
    return tuple(errors)


def key_errors(key: str, path: str) -> tuple[FieldError, ...]:
    """List what is wrong with a label key, one error for each rule; an empty key breaks two."""
    return tuple(invalid(path, key, broken) for broken in label_key_errors(key))


def effect_errors(effect: str, path: str) -> tuple[FieldError, ...]:
    """Report an effect that is missing or none of the three."""
    if not effect:
        return (required(path),)
    return () if effect in EFFECTS else (not_supported(path, effect, EFFECTS),)


def _duplicate(path: str, fields: Mapping[object, object], key: str, value: str, effect: str) -> FieldError:
    """Report a duplicate; the message shows the taint as Go's internal type, every field under its Go name."""
    added = fields.get("timeAdded")
    if isinstance(added, dt.datetime):
        added_us: int | None = microseconds(added)
    else:
        added_us = read_time(added) if isinstance(added, str) else None
    shown = {
        "Key": key,
        "Value": value,
        "Effect": effect,
        "TimeAdded": None if added_us is None else time_text(added_us),
    }
    return duplicate(path, dict(fields), "taints must be unique by key and effect pair", as_json(shown))
