"""Which seconds of a pod's tolerations are in force where Kubernetes' own controller stays on (semantics.md 12.12).

An admission policy (docs/managed-clusters.md) moves the seconds of `NoExecute` tolerations into an annotation. In the
spec it leaves later ones, or none, for the built-in controller. The annotation is worth as much as the spec, since who
may write the one may write the other; so it only shortens, and only what it fits.

An annotation that cannot be read counts as absent: the spec is there, and readable. Its readers count it.
"""

from functools import lru_cache
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from evictstream.models.kubernetes.shapes import NULL
from evictstream.models.kubernetes.taints import NO_EXECUTE
from evictstream.models.kubernetes.tolerations import (
    LONGEST_SHARED_BYTES,
    SHARED_LISTS,
    Toleration,
    TolerationObject,
    Tolerations,
    flat_toleration,
    read_tolerations,
    shared_tolerations,
)

LARGEST_ANNOTATION_BYTES: Final = 65_536
"""Of the text in UTF-8; a larger one counts as absent. The policy moves up to some 300 tolerations: 37,000 bytes."""

MOST_ENTRIES: Final = 1_000
"""Opening braces of an annotation; with more it counts as absent. As many tolerations as a pod may have."""

_NANOSECONDS: Final = 1_000_000_000
_LAST_COUNTED_SECONDS: Final = (2**63 - 1) // _NANOSECONDS
_REST_BYTES: Final = 60  # of a toleration in JSON, without key and value
_LONGEST_KEPT: Final = 50  # tolerations of a list; with all that is at most 30 MB


class HandedOver(NamedTuple):
    """What is in force for a pod.

    Attributes:
        tolerations: in pod order, with the seconds in force; of those that were moved, with what the spec has beside.
            Equal lists are one tuple. The spec's own, if nothing was moved.
        is_unreadable: whether there is an annotation that counts as absent.
    """

    tolerations: Tolerations
    is_unreadable: bool = False


_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Entry(TolerationObject, gc=False, rename="camel"):
    toleration_seconds: _Int64 | None = None
    built_in_seconds: _Int64 | None = None


_text: Final = msgspec.json.Decoder(str)
_entries: Final = msgspec.json.Decoder(list[_Entry])
_for_built_in: Final[dict[int, tuple[Tolerations, Tolerations]]] = {}

_BROKEN: Final = (msgspec.DecodeError, UnicodeError, RecursionError)


def handed_over(tolerations: Tolerations, annotation: str | None) -> HandedOver:
    """Put the seconds of the annotation in force where they fit the spec.

    An entry applies to the first toleration of its identity: key, operator, value and effect, spelled the same. The
    effect is `NoExecute`, and the spec has the seconds `builtInSeconds`, or none as the entry; otherwise the spec has
    been edited since. Of two entries with one identity the first counts. An entry with as many seconds as the spec, or
    more, does not apply.

    Args:
        tolerations: of the spec, in pod order.
        annotation: text of `evictstream.io/tolerations`; None if the pod has none.
    """
    if annotation is None:
        return HandedOver(tolerations)
    entries = _read(annotation)
    if entries is None:
        return HandedOver(tolerations, is_unreadable=True)
    by_identity: dict[tuple[str, str, str, str], _Entry] = {}
    for entry in entries:
        by_identity.setdefault(flat_toleration(entry).identity, entry)
    in_force = list(tolerations)
    length_bytes = 0
    for place, toleration in enumerate(tolerations):
        length_bytes += len(toleration.key) + len(toleration.value) + _REST_BYTES
        moved = by_identity.pop(toleration.identity, None)
        if moved is not None and _applies(moved, toleration):
            spec, seconds = toleration.toleration_seconds, moved.toleration_seconds
            in_force[place] = replace(toleration, toleration_seconds=seconds, built_in_seconds=spec)
    found = tuple(in_force)
    return HandedOver(tolerations if found == tolerations else shared_tolerations(found, length_bytes))


def read_handed_over(tolerations: msgspec.Raw, annotation: msgspec.Raw) -> HandedOver:
    """Read what is in force from the JSON of `spec.tolerations` and of the annotation, which is null if absent.

    Raises:
        msgspec.ValidationError: a toleration of the spec has a wrong type.
        msgspec.DecodeError: the list of the spec is not JSON.
    """
    if annotation == NULL:
        return HandedOver(read_tolerations(bytes(tolerations)))
    spec, text = bytes(tolerations), bytes(annotation)
    if len(spec) + len(text) <= LONGEST_SHARED_BYTES:
        return _read_kept(spec, text)
    return _read_both(spec, text)


def has_moved(tolerations: Tolerations) -> bool:
    """Return whether an annotation has the seconds of one of them."""
    return any(one.built_in_seconds is not msgspec.UNSET for one in tolerations)


def in_spec(tolerations: Tolerations) -> Tolerations:
    """Return tolerations as the spec has them: the same tuple, if nothing was moved."""
    if not has_moved(tolerations):
        return tolerations
    return tuple(_with_seconds(one, spec_seconds(one)) for one in tolerations)


def for_built_in(tolerations: Tolerations) -> Tolerations:
    """Return tolerations as the built-in controller counts them: the same tuple, if nothing differs.

    Its seconds are 64 bits of nanoseconds (semantics.md 13 row 33): of those that overflow, negative ones mean forever.
    """
    kept = _for_built_in.get(id(tolerations))
    if kept is not None:
        return kept[1]
    counted = tolerations
    if any(_counted(spec_seconds(one)) != one.toleration_seconds for one in tolerations):
        counted = tuple(_with_seconds(one, _counted(spec_seconds(one))) for one in tolerations)
    if len(tolerations) <= _LONGEST_KEPT:
        if len(_for_built_in) >= SHARED_LISTS:
            _for_built_in.clear()
        _for_built_in[id(tolerations)] = (tolerations, counted)  # the reference keeps the id from being used again
    return counted


def spec_seconds(toleration: Toleration) -> int | None:
    """Return the seconds that the spec has; None for forever."""
    moved = toleration.built_in_seconds
    return toleration.toleration_seconds if moved is msgspec.UNSET else moved


def is_same_in_force(one: Tolerations, other: Tolerations) -> bool:
    """Return whether two lists differ in nothing, or only in what the spec has beside: a move is no edit."""
    if len(one) != len(other):
        return False
    for mine, yours in zip(one, other, strict=True):  # each edit comes here, and most are of seconds
        if mine.toleration_seconds != yours.toleration_seconds:
            return False
    return all(mine.identity == yours.identity for mine, yours in zip(one, other, strict=True))


def _read(annotation: str) -> list[_Entry] | None:
    # A character has at most four bytes: what is far too long is not encoded to find out.
    if len(annotation) > LARGEST_ANNOTATION_BYTES:
        return None
    try:
        text = annotation.encode()
        if len(text) > LARGEST_ANNOTATION_BYTES or text.count(b"{") > MOST_ENTRIES:
            return None
        return _entries.decode(text)
    except _BROKEN:
        return None


def _read_both(tolerations: bytes, annotation: bytes) -> HandedOver:
    spec = read_tolerations(tolerations)
    try:
        text = _text.decode(annotation)
    except _BROKEN:
        return HandedOver(spec, is_unreadable=True)
    return handed_over(spec, text)


@lru_cache(maxsize=SHARED_LISTS)
def _read_kept(tolerations: bytes, annotation: bytes) -> HandedOver:
    return _read_both(tolerations, annotation)


def _applies(entry: _Entry, toleration: Toleration) -> bool:
    spec, seconds = toleration.toleration_seconds, entry.toleration_seconds
    return (
        toleration.effect == NO_EXECUTE
        and spec == entry.built_in_seconds
        and seconds is not None
        and (spec is None or seconds < spec)
    )


def _with_seconds(one: Toleration, seconds: int | None) -> Toleration:
    return replace(one, toleration_seconds=seconds, built_in_seconds=msgspec.UNSET)


def _counted(seconds: int | None) -> int | None:
    if seconds is None or seconds <= _LAST_COUNTED_SECONDS:
        return seconds
    nanoseconds = (seconds * _NANOSECONDS + 2**63) % 2**64 - 2**63
    return None if seconds >= 2**63 - 1 or nanoseconds < 0 else nanoseconds // _NANOSECONDS
