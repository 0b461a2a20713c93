"""Tolerations of a pod, and the shared tuples in which they are kept.

Most pods of a cluster carry one of a few lists of tolerations, so a list is decoded once and then shared: equal lists
are one tuple. That saves memory, and comparing identities is enough to see that nothing changed.
"""

from functools import lru_cache
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

EQUAL: Final = "Equal"
EXISTS: Final = "Exists"
GREATER_THAN: Final = "Gt"
LESS_THAN: Final = "Lt"

LONGEST_SHARED_BYTES: Final = 4096
"""Of the text of a list; with the entries below at most 16 MiB. Real lists have some 300 bytes."""

SHARED_LISTS: Final = 4096
"""Lists that are shared; a cluster has tens of different ones, a fleet of odd ones some hundreds."""

_SHARED_LONG_LISTS: Final = 64  # of longer lists; the limit bounds their memory to some 64 MB


class SpecToleration(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A toleration in the spec of a pod."""

    # Odd values are read as they are (semantics.md 12.3): an unknown operator matches nothing, negative seconds count
    # as 0.
    key: Annotated[str, Meta(description="Label key; absent matches every key.")] = ""
    operator: Annotated[str, Meta(description="`Equal` (also if absent), `Exists`, `Gt` or `Lt`.")] = ""
    value: Annotated[str, Meta(description="Label value; absent means empty.")] = ""
    effect: Annotated[str, Meta(description="Effect of the taint; absent matches every effect.")] = ""
    toleration_seconds: Annotated[
        int | None,
        Meta(description="How long the taint is tolerated, in seconds of any size; absent means forever."),
    ] = None

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """All but the seconds: two with one identity are the same to Kubernetes (semantics.md 1)."""
        return self.key, self.operator, self.value, self.effect


class Toleration(SpecToleration, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A toleration of a pod, with the seconds in force."""

    built_in_seconds: Annotated[
        int | msgspec.UnsetType | None,
        Meta(
            description="What the spec has for Kubernetes' own controller, where an annotation has the seconds: null"
            " means forever. Absent where nothing was moved."
        ),
    ] = msgspec.UNSET


Tolerations: TypeAlias = tuple[Toleration, ...]
"""The tolerations of a pod in pod order, which decides between them (semantics.md 3.4)."""


class TolerationObject(msgspec.Struct, rename="camel", gc=False):
    """A toleration as JSON has it, where null stands for absent."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class _TolerationRow(msgspec.Struct, array_like=True, gc=False):
    """A toleration in a row of the state: without names of fields, which halves the bytes."""

    key: str
    operator: str
    value: str
    effect: str
    toleration_seconds: int | None
    built_in_seconds: int | msgspec.UnsetType | None = msgspec.UNSET  # only of those that were moved


_decoder: Final = msgspec.json.Decoder(list[TolerationObject] | None)
_row_decoder: Final = msgspec.json.Decoder(list[_TolerationRow])
_encoder: Final = msgspec.json.Encoder()
_row_texts: Final[dict[int, tuple[Tolerations, bytes]]] = {}


def is_same_toleration(one: Toleration, other: Toleration) -> bool:
    """Return whether two tolerations are the same to Kubernetes, whatever their seconds."""
    return one.identity == other.identity


def flat_toleration(entry: TolerationObject) -> Toleration:
    """Return a toleration with empty texts for those that JSON leaves out."""
    return Toleration(
        key=entry.key or "",
        operator=entry.operator or "",
        value=entry.value or "",
        effect=entry.effect or "",
        toleration_seconds=entry.toleration_seconds,
    )


def read_tolerations(text: bytes) -> Tolerations:
    """Read a JSON list of tolerations, or null, into the tuple that all equal lists share.

    Args:
        text: the JSON of `pod.spec.tolerations`.

    Raises:
        msgspec.ValidationError: something has the wrong type; the message names the field below the list (`$[0].key`).
        msgspec.DecodeError: the text is not JSON.
    """
    return _read_kept(text) if len(text) <= LONGEST_SHARED_BYTES else _read(text)


def tolerations_row(tolerations: Tolerations) -> bytes:
    """Write tolerations for a row: JSON lists, in which seconds of any size survive."""
    return _encoder.encode([_in_row(toleration) for toleration in tolerations])


def shared_tolerations_row(tolerations: Tolerations) -> bytes:
    """Write a tuple from `read_tolerations` for a row, and keep the text for the next pod with the same tuple."""
    kept = _row_texts.get(id(tolerations))
    if kept is not None:
        return kept[1]
    text = tolerations_row(tolerations)
    if len(text) <= LONGEST_SHARED_BYTES:
        if len(_row_texts) >= SHARED_LISTS:
            _row_texts.clear()
        _row_texts[id(tolerations)] = (tolerations, text)  # the reference keeps the id from being used again
    return text


def read_tolerations_row(text: bytes) -> Tolerations:
    """Read what `tolerations_row` wrote into the tuple that all equal lists share.

    Raises:
        msgspec.DecodeError: `tolerations_row` did not write the text.
    """
    return _read_row_kept(text) if len(text) <= LONGEST_SHARED_BYTES else _read_row(text)


def _in_row(one: Toleration) -> tuple[str | int | None, ...]:
    fields = (one.key, one.operator, one.value, one.effect, one.toleration_seconds)
    return fields if one.built_in_seconds is msgspec.UNSET else (*fields, one.built_in_seconds)


def shared_tolerations(tolerations: Tolerations, length_bytes: int) -> Tolerations:
    """Return the tuple that all equal lists share; texts of equal lists may differ in spacing and order of fields.

    Args:
        tolerations: the list.
        length_bytes: of the text that it was read from; of long ones fewer are kept.
    """
    return _shared(tolerations) if length_bytes <= LONGEST_SHARED_BYTES else _shared_long(tolerations)


def _read_row(text: bytes) -> Tolerations:
    read = tuple(
        Toleration(
            row.key,
            row.operator,
            row.value,
            row.effect,
            toleration_seconds=row.toleration_seconds,
            built_in_seconds=row.built_in_seconds,
        )
        for row in _row_decoder.decode(text)
    )
    return shared_tolerations(read, len(text))


@lru_cache(maxsize=SHARED_LISTS)
def _read_row_kept(text: bytes) -> Tolerations:
    return _read_row(text)


def _read(text: bytes) -> Tolerations:
    read = tuple(flat_toleration(entry) for entry in _decoder.decode(text) or ())
    return shared_tolerations(read, len(text))


@lru_cache(maxsize=SHARED_LISTS)
def _read_kept(text: bytes) -> Tolerations:
    return _read(text)


@lru_cache(maxsize=SHARED_LISTS)
def _shared(tolerations: Tolerations) -> Tolerations:
    return tolerations


@lru_cache(maxsize=_SHARED_LONG_LISTS)
def _shared_long(tolerations: Tolerations) -> Tolerations:
    return tolerations
