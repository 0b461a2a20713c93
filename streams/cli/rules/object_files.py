"""Files of Kubernetes objects: JSON or YAML, several documents, lists of objects; read into plain values.

The values are those that the API server would see. YAML therefore follows the rules of Kubernetes' own reader where
Python's differ: an unquoted time is a text, `1:30` too, `yes` and `on` are true, `1e3` is a number.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Never

from evictstream.streams.errors import ObjectFileError

STDIN = "-"
SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
"""An escape for half of a character beyond 16 bit; without its other half it is no text that can be written again."""

WHITESPACE: Final = re.compile(r"\s*")

MOST_BYTES = 64 * 2**20
"""Largest file. A list of 5,000 whole nodes in JSON has about 50 MiB; reading it takes several times as much
memory."""

MOST_YAML_BYTES = 4 * 2**20
"""Largest file in YAML, which reads about fifty times slower than JSON: this much takes 20 seconds."""


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
    return [FoundObject(source, found) for source in dict.fromkeys(sources) for found in _objects(source)]


def _objects(source: str) -> Iterator[dict[object, object]]:
    text = _text(source)
    documents = list(_documents(source, text))
    if SURROGATE.search(text):
        _refuse_halves(source, documents)
    if not any(document is not None for document in documents):
        raise ObjectFileError(source, "it is empty")
    for number, document in enumerate(documents, start=1):
        if document is not None:
            place = f"document {number}" if len(documents) > 1 else "it"
            yield from _flattened(source, document, place, kind="")


def _refuse_halves(source: str, documents: list[object]) -> None:
    try:
        json.dumps(documents, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ObjectFileError(source, "a text holds half of a surrogate pair") from error


def _flattened(source: str, found: object, place: str, kind: str) -> Iterator[dict[object, object]]:
    """Yield the items of a list, or the object itself; items of a `NodeList` need not repeat their kind."""
    if not isinstance(found, dict):
        raise ObjectFileError(source, f"{place} is not an object")
    own_kind = found.get("kind")
    if isinstance(own_kind, str) and own_kind.endswith("List") and "items" in found:
        items = found["items"]
        if not isinstance(items, list | None):
            raise ObjectFileError(source, f"{place} is a {own_kind} whose items are no list")
        for index, item in enumerate(items or ()):
            yield from _flattened(source, item, f"item {index} of {place}", own_kind.removesuffix("List"))
    else:
        yield {"kind": kind, **found} if kind and own_kind is None else found


def _text(source: str) -> str:
    try:
        if source == STDIN:
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(source).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise ObjectFileError(source, getattr(error, "strerror", None) or str(error)) from error
    if len(content) > MOST_BYTES:
        raise ObjectFileError(source, f"it has more than {MOST_BYTES} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ObjectFileError(source, f"it is not UTF-8 (byte {error.start})") from error


def _documents(source: str, text: str) -> Iterator[object]:
    """Return the documents of a text; malformed JSON may still be YAML in flow style."""
    if not text.lstrip().startswith(("{", "[")):
        return iter(_yaml_documents(source, text))
    try:
        return iter(_json_documents(text))
    except _DuplicateError as error:
        raise ObjectFileError(source, str(error)) from error
    except (ValueError, RecursionError) as error:
        try:
            return iter(_yaml_documents(source, text))
        except ObjectFileError:
            reason = f"it is neither JSON nor YAML: {error}"
            raise ObjectFileError(source, reason if isinstance(error, ValueError) else "it is nested too deeply") from (
                error
            )


class _DuplicateError(ValueError):
    """A field stands twice in one object."""


def _json_documents(text: str) -> list[object]:
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant)
    found: list[object] = []
    position = WHITESPACE.match(text, 0).end()  # type: ignore[union-attr] # it matches the empty text too
    while position < len(text):
        document, position = decoder.raw_decode(text, position)
        found.append(document)
        position = WHITESPACE.match(text, position).end()  # type: ignore[union-attr] # as above
    return found


def _refuse_constant(text: str) -> Never:
    raise ValueError(f"{text} is no number of JSON")


def _unique(pairs: list[tuple[str, object]]) -> Mapping[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise _DuplicateError(f'the field "{twice}" stands twice in one object')
    return found


def _yaml_documents(source: str, text: str) -> list[object]:
    import yaml  # type: ignore[import-untyped]

    from evictstream.streams.cli.rules.yaml_loader import ObjectLoader

    if len(text) > MOST_YAML_BYTES:
        raise ObjectFileError(source, f"it has more than {MOST_YAML_BYTES} characters of YAML; JSON may be longer")
    try:
        return list(yaml.load_all(text, Loader=ObjectLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" (line {mark.line + 1})" if mark else ""
        raise ObjectFileError(source, f"it is not YAML: {error.problem or error.context}{place}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ObjectFileError(source, f"it is not YAML: {error}") from error
    except RecursionError as error:
        raise ObjectFileError(source, "it is nested too deeply") from error
