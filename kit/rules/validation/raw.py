"""Reads fields of raw objects, as parsed from JSON or YAML, and checks their types.

A wrong type becomes an error in the caller's list. The field then counts as unknown, so that no second error follows
from the first. Null stands for an absent field, as in Kubernetes. Unknown fields are ignored.
"""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from evictstream.kit.rules.go_texts import valid_text
from evictstream.kit.rules.validation.field_errors import FieldError, wrong_type
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.times import read_time, time_text
from evictstream.models.kubernetes.tolerations import Toleration

_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1


def object_at(value: object, path: str, errors: list[FieldError]) -> Mapping[object, object] | None:
    """Get an object; None if it is absent, or of another type, which adds an error."""
    if isinstance(value, Mapping):
        return value
    if value is not None:
        errors.append(wrong_type(path, value, "an object"))
    return None


def entries_at(value: object, path: str, errors: list[FieldError]) -> Iterator[tuple[str, Mapping[object, object]]]:
    """Iterate over a list of taints or tolerations, each with its path; entries of another type become errors.

    A null entry is an entry without fields, as it is to the API server. `Taint` and `Toleration` are accepted too.
    """
    if value is None:
        return
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        errors.append(wrong_type(path, value, "a list"))
        return
    for index, entry in enumerate(value):
        entry_path = f"{path}[{index}]"
        fields = object_at(_fields_of(entry), entry_path, errors)
        if fields is not None:
            yield entry_path, fields


def text_at(fields: Mapping[object, object], name: str, path: str, errors: list[FieldError]) -> str | None:
    """Get a text, empty if absent; None if it has another type, which adds an error."""
    value = fields.get(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return valid_text(value)
    errors.append(wrong_type(f"{path}.{name}", value, "a string"))
    return None


def check_int64(fields: Mapping[object, object], name: str, path: str, errors: list[FieldError]) -> None:
    """Report a value that is no integer within signed 64 bit; an absent one is fine."""
    value = fields.get(name)
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        errors.append(wrong_type(f"{path}.{name}", value, "an integer"))
    elif not _LOWEST <= value <= _HIGHEST:
        errors.append(wrong_type(f"{path}.{name}", value, "an integer of 64 bit"))


def check_instant(fields: Mapping[object, object], name: str, path: str, errors: list[FieldError]) -> None:
    """Report a value that Kubernetes cannot read as an instant; an absent one is fine, and YAML may have parsed it."""
    value = fields.get(name)
    if value is None or (isinstance(value, dt.datetime) and value.tzinfo is not None):
        return
    if isinstance(value, str) and read_time(value) is not None:
        return
    errors.append(wrong_type(f"{path}.{name}", value, "an instant such as 2006-01-02T15:04:05Z"))


def _fields_of(entry: object) -> object:
    match entry:
        case None:
            return {}
        case Taint(key=key, value=value, effect=effect, time_added_us=added_us):
            added = None if added_us is None else time_text(added_us)
            return {"key": key, "value": value, "effect": effect, "timeAdded": added}
        case Toleration(key=key, operator=operator, value=value, effect=effect, toleration_seconds=seconds):
            return {"key": key, "operator": operator, "value": value, "effect": effect, "tolerationSeconds": seconds}
        case _:
            return entry
