"""Lists of tolerations in the annotations of a namespace, read as the API server reads them.

Go's JSON decoder (`encoding/json`) decides what is legal. It ignores the case of field names and fields that it does
not know. Of repeated fields the last one wins, null changes nothing, and half a surrogate pair is U+FFFD.

One difference: Go reads 10,000 levels deep, Python's decoder as deep as its stack allows, which is more than 500. A
list of tolerations has two levels. If an ignored field goes deeper, the pod is refused here, with that reason.
"""

import json
import math
from collections.abc import Mapping
from typing import Final, Never, TypeAlias

from evictstream.kit.rules.go_texts import valid_text
from evictstream.models.kubernetes.tolerations import Toleration, Tolerations

_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1

_TEXT_FIELDS: Final = frozenset({"key", "operator", "value", "effect"})
_SECONDS_FIELD: Final = "tolerationseconds"

_MOST_DIGITS: Final = len(str(_LOWEST))  # of a number that fits, sign included
_LONG_S: Final = "\u017f"  # Go folds it into the ASCII letter `s`, which `lower` does not

_Pairs: TypeAlias = list[tuple[str, object]]


class AnnotationError(ValueError):
    """An annotation is no list of tolerations.

    Attributes:
        annotation: its name.
        reason: what is wrong, one line.
    """

    def __init__(self, annotation: str, reason: str) -> None:
        super().__init__(f"annotation {annotation}: {reason}")
        self.annotation = annotation
        self.reason = reason


class _JsonObject:
    """The fields of a JSON object in the order of the text, repeated ones too."""

    def __init__(self, pairs: _Pairs) -> None:
        self.pairs = pairs


def namespace_tolerations(annotations: Mapping[str, str], name: str) -> Tolerations | None:
    """Read the list of tolerations in one annotation.

    Args:
        annotations: of the namespace.
        name: of the annotation.

    Returns:
        The list; an empty one if the annotation is there but empty, or null; None if it is not there.

    Raises:
        AnnotationError: the text is no JSON, or no list of tolerations.
    """
    text = annotations.get(name)
    if text is None:
        return None
    if not text:
        return ()
    try:
        found = json.loads(
            text, object_pairs_hook=_JsonObject, parse_constant=_refuse_constant, parse_int=_read_integer
        )
    except ValueError as error:
        raise AnnotationError(name, "is not JSON") from error
    except RecursionError as error:
        raise AnnotationError(name, "is nested too deep to be read") from error
    if found is None:
        return ()
    if not isinstance(found, list):
        raise AnnotationError(name, "is not a list of tolerations")
    return tuple(_toleration(entry, f"{name}[{index}]", name) for index, entry in enumerate(found))


def _toleration(entry: object, path: str, name: str) -> Toleration:
    if entry is None:
        return Toleration()
    if not isinstance(entry, _JsonObject):
        raise AnnotationError(name, f"{path} is not an object")
    texts = dict.fromkeys(_TEXT_FIELDS, "")
    seconds: int | None = None
    for field, value in entry.pairs:
        folded = field.lower().replace(_LONG_S, "s")
        if folded in _TEXT_FIELDS:
            if value is not None and not isinstance(value, str):
                raise AnnotationError(name, f"{path}.{field} is not a string")
            texts[folded] = texts[folded] if value is None else valid_text(value)
        elif folded == _SECONDS_FIELD:
            seconds = _seconds(value, f"{path}.{field}", name)
    return Toleration(**texts, toleration_seconds=seconds)


def _seconds(value: object, path: str, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not _LOWEST <= value <= _HIGHEST:
        raise AnnotationError(name, f"{path} is not an integer of 64 bits")
    return value


def _read_integer(text: str) -> int | float:
    """Read a number without a fraction; one that is too large for any field becomes infinite, whatever its length."""
    return int(text) if len(text) <= _MOST_DIGITS else math.inf


def _refuse_constant(text: str) -> Never:
    raise ValueError(f"{text} is not JSON")
