"""The seconds in force for a pod, written once more from the contract of its annotation (semantics.md 12.12)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from evictstream.kit.oracle.reading import Json

ANNOTATION = "evictstream.io/tolerations"
_LARGEST_BYTES = 65_536
_MOST_ENTRIES = 1_000
_INT64 = range(-(2**63), 2**63)
_TEXTS = ("key", "operator", "value", "effect")
_SECONDS = ("tolerationSeconds", "builtInSeconds")


def in_force(tolerations: Sequence[Json], annotation: str | None) -> tuple[Json, ...]:
    """Give the tolerations of the spec, with the seconds of the annotation where it applies."""
    entries = None if annotation is None else _entries(annotation)
    if not entries:
        return tuple(tolerations)
    found: list[Json] = []
    for place, toleration in enumerate(tolerations):
        is_first = all(not _is_same(toleration, earlier) for earlier in tolerations[:place])
        entry = next((one for one in entries if _is_same(one, toleration)), None)
        if is_first and entry is not None and _applies(entry, toleration):
            found.append({**toleration, "tolerationSeconds": entry["tolerationSeconds"]})
        else:
            found.append(toleration)
    return tuple(found)


def _entries(annotation: str) -> list[Json] | None:
    """Read the entries; none if the annotation counts as absent."""
    try:
        if len(annotation.encode()) > _LARGEST_BYTES or annotation.count("{") > _MOST_ENTRIES:
            return None
        entries = json.loads(annotation)
        json.dumps(entries, ensure_ascii=False).encode()  # half a character is none
    except (ValueError, RecursionError):
        return None
    return entries if isinstance(entries, list) and all(map(_is_toleration, entries)) else None


def _is_toleration(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and all(entry.get(name) is None or type(entry[name]) is str for name in _TEXTS)
        and all(entry.get(name) is None or (type(entry[name]) is int and entry[name] in _INT64) for name in _SECONDS)
    )


def _is_same(one: Json, other: Json) -> bool:
    return all((one.get(name) or "") == (other.get(name) or "") for name in _TEXTS)


def _applies(entry: Json, toleration: Json) -> bool:
    in_spec, seconds = toleration.get("tolerationSeconds"), entry.get("tolerationSeconds")
    if toleration.get("effect") != "NoExecute" or in_spec != entry.get("builtInSeconds") or seconds is None:
        return False
    return in_spec is None or seconds < in_spec
