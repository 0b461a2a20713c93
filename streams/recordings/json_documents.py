"""A byte stream cut into JSON documents, in bounded memory.

JSON lines are the usual case and cost one decode. Documents may also span lines (`jq` prints them so) or follow each
other on one line. Whoever recorded may have been killed in the middle of a document, so a line that begins with `{` in
its first column always begins a new one: no printer indents an inner object by nothing. What is broken costs itself and
what follows up to the next such line, never the rest of the file.

A list of Kubernetes may be larger than memory, so what is in its `items` comes one by one, and then the list without
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

import msgspec

from evictstream.models.messages.envelope import DECODE_ERRORS

LARGEST_DOCUMENT_BYTES: Final = 2_097_152
"""2 MiB: the largest object of Kubernetes (1.5 MiB) with room for an envelope and white space. Twice this is held in
memory at most."""

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_ITEMS: Final = re.compile(rb'(?<!\\)"items"\s*:\s*\Z')
_LOOK_BACK_BYTES: Final = 64  # enough for `"items":` and the white space of printers
_DEPTH_OF_ITEMS: Final = 2  # brackets that are open between two items of a list

# A text from quote to quote, a bracket, or a quote without its partner. `*+` never goes back, so it cannot explode.
_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]"]', re.DOTALL)


class Lines(Protocol):
    """What is read of a file."""

    def readline(self, size: int, /) -> bytes:
        """Up to `size` bytes, ending after the first newline; nothing at the end."""


class Document(NamedTuple):
    """Text whose brackets are balanced, so probably a JSON document, and the line on which it begins."""

    line: int
    text: bytes


class ListItem(NamedTuple):
    """One of the `items` of a list.

    Attributes:
        line: on which it begins.
        text: of the item.
        head: of the list, as far as its items, closed.
    """

    line: int
    text: bytes
    head: bytes


class Broken(NamedTuple):
    """Something that is no document: the line on which it begins, and what is wrong, for people."""

    line: int
    problem: str


class _NoList(msgspec.Struct):
    """Any JSON object; looks at nothing in it but whether there are items, which are taken one by one."""

    items: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_whole: Final = msgspec.json.Decoder(_NoList)


class _NotJsonError(Exception):
    """Text between documents, brackets that close nothing, or an open quote at the end of a line."""


class _Open:
    """A document that has begun: its bytes, how far they were looked at, and how deep they are nested there.

    Attributes:
        line: on which the document, or the item of a list, has begun.
    """

    def __init__(self) -> None:
        self.line = 0
        self._bytes = bytearray()
        self._seen = 0
        self._depth = 0
        self._head: bytes | None = None  # of the list whose items are read

    def __len__(self) -> int:
        return len(self._bytes) + len(self._head or b"")

    def clear(self) -> None:
        self._bytes.clear()
        self._seen = self._depth = 0
        self._head = None

    def add(self, piece: bytes, line: int) -> Iterator[Document | ListItem]:
        """Take a line, or a part of an endless one, and yield what it completes.

        Raises:
            _NotJsonError: nothing can be made of it; forget what is open.
        """
        if not self:
            self.line = line
        self._bytes += piece
        yield from self._completed(line)
        if self._depth == 0 and self._bytes.strip():
            raise _NotJsonError
        if self._depth == 0:
            self.clear()

    def _completed(self, line: int) -> Iterator[Document | ListItem]:
        while (token := _TOKEN.search(self._bytes, self._seen)) is not None:
            mark, (start, self._seen) = token[0], token.span()
            del token  # it would keep the bytes from being cut
            if mark == b'"':
                if self._bytes.find(b"\n", start) >= 0:
                    raise _NotJsonError  # no JSON text goes over the end of its line
                self._seen = start  # the rest of it comes with the next piece
                return
            if mark in {b"{", b"["}:
                self._opens(mark, start, line)
            elif mark in {b"}", b"]"}:
                found = self._closes(start)
                if found is not None:
                    yield found

    def _opens(self, mark: bytes, start: int, line: int) -> None:
        if self._depth == (0 if self._head is None else _DEPTH_OF_ITEMS):
            self._cut_separators(start)
            self._seen, self.line = 1, line
        self._depth += 1
        if mark == b"[" and self._depth == _DEPTH_OF_ITEMS and self._head is None:
            end = self._seen - 1
            if _ITEMS.search(self._bytes, max(0, end - _LOOK_BACK_BYTES), end):
                self._head = bytes(self._bytes[:end])
                del self._bytes[: end + 1]  # bytes are cut off in front for nothing, and elsewhere by a copy
                self._seen = 0

    def _closes(self, start: int) -> Document | ListItem | None:
        if self._depth == 0:
            raise _NotJsonError
        self._depth -= 1
        if self._head is None:
            return None if self._depth else Document(self.line, self._cut())
        if self._depth == _DEPTH_OF_ITEMS:
            return ListItem(self.line, self._cut(), self._head + b"[]}")
        if self._depth < _DEPTH_OF_ITEMS:  # the end of the items: what is left is the list without them
            self._cut_separators(start)
            self._bytes[:0] = self._head + b"["
            self._seen, self._head = len(self._head) + 2, None
        return None

    def _cut(self) -> bytes:
        text = bytes(self._bytes[: self._seen])
        del self._bytes[: self._seen]
        self._seen = 0
        return text

    def _cut_separators(self, end: int) -> None:
        if self._bytes[:end].strip(b" \t\r\n" if self._head is None else b" \t\r\n,"):
            raise _NotJsonError
        del self._bytes[:end]


def documents(stream: Lines, largest_bytes: int = LARGEST_DOCUMENT_BYTES) -> Iterator[Document | ListItem | Broken]:
    """Cut a stream into documents.

    Args:
        stream: bytes, UTF-8; a byte order mark is passed over.
        largest_bytes: larger documents are `Broken`.
    """
    found = _Open()
    passing_over = False
    for line, begins, piece in _pieces(stream, largest_bytes):
        if begins and found:
            yield Broken(found.line, "ends in the middle")
            found.clear()
        if passing_over and not begins:
            continue
        if begins and len(piece) <= largest_bytes and _is_whole(piece):
            passing_over = False
            yield Document(line, piece.rstrip())
            continue
        problem = ""
        try:
            for document in found.add(piece, line):
                too_large = len(document.text) > largest_bytes
                yield Broken(document.line, _too_large(largest_bytes)) if too_large else document
        except _NotJsonError:
            problem = "not JSON"
        if len(found) > largest_bytes:
            problem = problem or _too_large(largest_bytes)
        passing_over = bool(problem)
        if problem:
            yield Broken(found.line, problem)
            found.clear()
    if found:
        yield Broken(found.line, "ends in the middle")


def _pieces(stream: Lines, largest_bytes: int) -> Iterator[tuple[int, bool, bytes]]:
    """Yield lines, endless ones in parts: the line's number, whether a document must begin here, and the bytes."""
    line, at_line_start = 0, True
    while piece := stream.readline(largest_bytes + 1):
        begins = False
        if at_line_start:
            line += 1
            if line == 1:
                piece = piece.removeprefix(_BYTE_ORDER_MARK)
            begins = piece.startswith(b"{")
        at_line_start = piece.endswith(b"\n")
        yield line, begins, piece


def _too_large(largest_bytes: int) -> str:
    return f"larger than {largest_bytes} bytes"


def _is_whole(line: bytes) -> bool:
    try:
        return _whole.decode(line).items is msgspec.UNSET
    except DECODE_ERRORS:
        return False
