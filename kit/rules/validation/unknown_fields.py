"""Which fields of a node or a pod Kubernetes does not know: kubectl refuses them, since a misspelt one does nothing.

Source: strict field validation of the API server, which kubectl asks for (`--validate=strict` is its default). The
names are those of the version in `known_fields`; a newer API server knows more. So of an object that an API server has
stored, which drops what it does not know, only what looks like a taint or a toleration is reported.
"""

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from evictstream.kit.rules.validation.field_errors import FieldError, forbidden
from evictstream.kit.rules.validation.known_fields import FIELDS

_STRICT_TYPES: Final = frozenset({"Taint", "Toleration"})
"""What verdicts rest on is checked in stored objects too: a file may have been edited since."""

_LOOKED_FOR: Final = frozenset({"tolerations", "taints"})
_ALIKE: Final = 0.75
"""Of difflib's ratio: `toleration`, `Tolerations`, `tolerences` and `taint` are alike, `volumes` is not."""

_MOST_REPORTED: Final = 100
"""Of one object; each costs a search for names that are alike."""


def unknown_fields(value: Mapping[object, object], kind: str, *, is_stored: bool) -> tuple[FieldError, ...]:
    """List the fields that Kubernetes does not know, each with its path and a field that may have been meant.

    Args:
        value: a raw object of dicts and lists; what is of a wrong type is passed over.
        kind: `Node` or `Pod`.
        is_stored: it has a UID, so an API server has taken it in.
    """
    errors: list[FieldError] = []
    for above, field, type_ in _unknown(value, kind):
        meant = _meant(field, type_, kind)
        is_looked_for = bool({field.lower(), meant.rpartition(".")[2]} & _LOOKED_FOR)
        if is_stored and type_ not in _STRICT_TYPES and not is_looked_for:
            continue
        errors.append(
            forbidden(_path((above, field)), f"unknown field, did you mean {meant}?" if meant else "unknown field")
        )
        if len(errors) == _MOST_REPORTED:
            break
    return tuple(errors)


_Place = tuple["_Place | None", str | int]
"""A field or an index, behind the place of what it is in. Most places are of no error, and are never written out."""


def _unknown(value: Mapping[object, object], type_: str) -> Iterator[tuple[_Place | None, str, str]]:
    """Yield, of each unknown field, the place of its object, its name, and the type of the object."""
    waiting: list[tuple[object, str, _Place | None]] = [(value, type_, None)]
    while waiting:
        node, type_, place = waiting.pop()
        if isinstance(node, dict):
            fields = _fields(type_)
            for field, content in node.items():
                below = fields.get(field)
                if below is None:
                    yield place, str(field), type_
                elif below and content:
                    waiting.append((content, below, (place, field)))
        elif isinstance(node, list):
            waiting += [(node[index], type_, (place, index)) for index in range(len(node) - 1, -1, -1)]


def _path(place: _Place) -> str:
    above, last = place
    if above is None:
        return str(last)
    return f"{_path(above)}[{last}]" if isinstance(last, int) else f"{_path(above)}.{last}"


def _meant(field: str, type_: str, kind: str) -> str:
    """Return the field that may have been meant: of the same object, else of the spec; empty if none is alike."""
    for prefix, fields in (("", _fields(type_)), ("spec.", _fields(f"{kind}Spec"))):
        lower = {name.lower(): name for name in fields}
        near = difflib.get_close_matches(field.lower(), lower, n=1, cutoff=_ALIKE)
        if near:
            return prefix + lower[near[0]]
    return ""


@cache
def _fields(type_: str) -> Mapping[str, str]:
    """Return the fields of a type, each with the type of its content; empty where that has no fields."""
    return {name: below for name, _, below in (field.partition(":") for field in FIELDS[type_].split())}
