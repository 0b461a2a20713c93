"""A byte stream cut into JSON documents, in bounded memory.

JSON lines are the usual case and cost one decode. Documents may also span lines, in any layout, or follow each other on
one line. Whoever recorded may have been killed in the middle of a document: a brace in the first column, where what is
open can hold no object, begins a new one. What is broken costs itself and what follows up to the next line that begins
with a bracket, never the rest of the file.

A list may be larger than memory, so its values come one by one, and then the list without them. Lists are the `items`
of Kubernetes, what tools of clouds put around records of logs, and plain arrays.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from evictstream.kit.inputs.open_document import NOT_JSON, OpenDocument
from evictstream.kit.inputs.pieces import Broken, Document, InputPiece, ListItem
from evictstream.kit.inputs.read_window import ByteStream, ReadWindow
from evictstream.models.messages.envelope import DECODE_ERRORS

LARGEST_DOCUMENT_BYTES: Final = 67_108_864
"""64 MiB: an audit log holds the answer to a deletion of a whole collection, and 5,000 pods take 50 MB. A document, or
a value of a list; twice this is held in memory at most."""

LONGEST_JSON_LINE_BYTES: Final = 2_097_152
"""2 MiB: the largest object of Kubernetes (1.5 MiB) with an envelope. A longer line is not waited for as a whole."""

BEHIND_A_PREFIX: Final = "JSON after other text on its line: remove that text, for example with `sed 's/^[^{]*//'`"

_BETWEEN: Final = re.compile(rb"(?:[\s,]++|^(?:---|\.\.\.)[ \t\r]*$)*", re.MULTILINE)
"""Between documents: white space, what separates the values of a list that was cut, and YAML's lines."""


class _Lists(msgspec.Struct, rename="camel", gc=False):
    """Where an object has its list, if it is one."""

    items: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    events: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    log_events: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    records: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    results: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_NAMES: Final = {field.name: field.encode_name for field in msgspec.structs.fields(_Lists)}

_lists: Final = msgspec.json.Decoder(_Lists)
_values: Final = msgspec.json.Decoder(list[msgspec.Raw])
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_any: Final = msgspec.json.Decoder(msgspec.Raw)


def documents(stream: ByteStream, largest_bytes: int = LARGEST_DOCUMENT_BYTES) -> Iterator[InputPiece]:
    """Cut a stream into documents.

    Args:
        stream: bytes, UTF-8.
        largest_bytes: larger documents, and larger values of lists, are `Broken`.
    """
    broken: Broken | None = None  # lines that follow each other and have one problem are one piece
    for piece in _pieces(ReadWindow(stream), largest_bytes):
        if not isinstance(piece, Broken):
            if broken is not None:
                yield broken
            broken = None
            yield piece
        elif broken is not None and broken.problem == piece.problem and broken.line + broken.lines == piece.line:
            broken = broken._replace(lines=broken.lines + piece.lines)
        else:
            if broken is not None:
                yield broken
            broken = piece
    if broken is not None:
        yield broken


def _pieces(window: ReadWindow, largest_bytes: int) -> Iterator[InputPiece]:
    while window.skip(_BETWEEN):
        if window.data[0] not in b"{[":
            broken = _broken_line(window)
            if broken is not None:
                yield broken
            continue
        if window.is_at_line_start:
            line = _whole_line(window, largest_bytes)
            if line is not None:
                yield from line
                continue
        for piece in OpenDocument(window, largest_bytes).pieces():
            yield from _taken_apart(piece, largest_bytes)


def _taken_apart(piece: InputPiece, largest_bytes: int) -> Iterator[InputPiece]:
    """Give the parts of a list, and the documents that may have begun in what is broken."""
    if isinstance(piece, Document):
        yield from parts(piece.line, piece.text) or (piece,)
    elif isinstance(piece, Broken):
        yield piece._replace(inside=())
        for line, text in piece.inside:
            for document in documents(io.BytesIO(text), largest_bytes):
                yield document._replace(line=line + document.line - 1)
    else:
        yield piece


def _whole_line(window: ReadWindow, largest_bytes: int) -> list[Document | ListItem] | None:
    """Take a line that is a document; None if it is none, or not the whole of it."""
    end = window.line_end(min(LONGEST_JSON_LINE_BYTES, largest_bytes))
    if end is None:
        return None
    pieces = parts(window.line, bytes(window.data[:end]).rstrip())
    if pieces is not None:
        window.take(end)
    return pieces


def parts(line: int, text: bytes) -> list[Document | ListItem] | None:
    """Take a document apart, if it is a list; None if it is not JSON."""
    try:
        if text.startswith(b"["):
            return _list_parts(line, text, _values.decode(text), b"[]")
        lists = _lists.decode(text)
        for name, encoded in _NAMES.items():
            value = getattr(lists, name)
            if isinstance(value, msgspec.Raw) and bytes(value)[:1] == b"[":
                head = msgspec.json.encode(_fields.decode(text) | {encoded: msgspec.Raw(b"[]")})
                return _list_parts(line, text, _values.decode(value), head)
    except DECODE_ERRORS:
        return None
    return [Document(line, text)]


def _list_parts(line: int, text: bytes, values: list[msgspec.Raw], head: bytes) -> list[Document | ListItem]:
    taken: list[Document | ListItem] = []
    number, at = line, 0
    has_lines = b"\n" in text
    for value in map(bytes, values):
        if has_lines:
            start = text.index(value, at)
            number += text.count(b"\n", at, start)
            at = start
        taken.append(ListItem(number, value, head))
    return [*taken, Document(line, head, is_list=True)]


def _broken_line(window: ReadWindow) -> Broken | None:
    """Take the rest of a line, which begins with no bracket; None if nothing is in it."""
    line, end = window.line, window.line_end(LONGEST_JSON_LINE_BYTES)
    text = bytes(window.data[:end]).rstrip()
    window.drop_line()
    if _BETWEEN.fullmatch(text):
        return None
    begins = text.find(b"{")
    try:
        _any.decode(text[begins:] if begins >= 0 else b"")
    except DECODE_ERRORS:
        return Broken(line, NOT_JSON)
    return Broken(line, BEHIND_A_PREFIX)
