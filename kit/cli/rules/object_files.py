"""Files of Kubernetes objects, as all commands read them: what kubectl prints of objects, in JSON or YAML.

The values are those that the API server would see, and are checked more strictly than elsewhere: what a command of
`rules` says about an object has to hold for all of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from evictstream.kit.inputs.files import pieces_of
from evictstream.kit.inputs.opening import live
from evictstream.kit.inputs.pieces import Broken
from evictstream.kit.inputs.recognition import (
    AuditEvent,
    ChangeOfWatch,
    EndOfList,
    KubernetesObject,
    OtherLine,
    Recognised,
    recognised,
)
from evictstream.streams.errors import ObjectFileError, RecordingError


class FoundObject(NamedTuple):
    """One object of a file.

    Attributes:
        source: the file, `-` for standard input.
        value: the mapping that JSON or YAML decodes to, unchecked.
    """

    source: str
    value: dict[object, object]


def read_objects(*sources: str) -> list[FoundObject]:
    """Read the objects of files; a list gives each of its items.

    Args:
        sources: paths, or `-` for standard input; a repeated source is read once.

    Raises:
        ObjectFileError: a file cannot be read, is neither JSON nor YAML, or contains something that is no object.
    """
    return [FoundObject(source, value) for source in dict.fromkeys(sources) for value in _objects(source)]


def _objects(source: str) -> Iterator[dict[object, object]]:
    is_empty = True
    (named,) = live([source])
    try:
        with named.open() as file:
            for item in recognised(pieces_of(source, file, text_is_yaml=True)):
                is_empty = False
                match item:
                    case KubernetesObject():
                        yield _value(source, item.line, item.text)
                    case EndOfList():
                        pass
                    case _:
                        raise ObjectFileError(source, _refusal(item))
    except RecordingError as error:
        raise ObjectFileError(source, error.reason) from error
    if is_empty:
        raise ObjectFileError(source, "it is empty")


def _refusal(item: Recognised) -> str:
    match item:
        case ChangeOfWatch():
            return f"it is a watch (line {item.line}); use `evictstream what-if`"
        case AuditEvent() | OtherLine():
            return f"it is an audit log (line {item.line}); use `evictstream what-if`"
        case Broken():
            return f"{item.problem} (line {item.line})"
        case _:
            return f"the document on line {item.line} is not an object"


def _value(source: str, line: int, text: bytes) -> dict[object, object]:
    """Decode an object, which is JSON already; a field that stands twice is refused, as the API server can do."""
    try:
        return dict(json.loads(text, object_pairs_hook=_unique))
    except UnicodeDecodeError as error:
        raise ObjectFileError(source, f"it is not UTF-8 (line {line})") from error
    except ValueError as error:
        raise ObjectFileError(source, f"{error} (line {line})") from error
    except RecursionError as error:
        raise ObjectFileError(source, f"it is nested too deeply (line {line})") from error


def _unique(pairs: list[tuple[str, object]]) -> Mapping[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f'the field "{twice}" appears twice in one object')
    return fields
