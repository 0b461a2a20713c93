"""JSON that is too deep, or too large, for a decoder: read without recursion, in linear time, whatever it holds.

A tenant may nest `managedFields` of a pod thousands of levels deep, and decoders answer with `RecursionError`. Nothing
that decides lies deeper than `MOST_LEVELS`. `shallow` makes such an object readable; `ListSplitter` takes a list apart
while it arrives, so that no object of it costs the others. They take longer than a decoder: for what it refuses.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeVar

import msgspec

MOST_LEVELS: Final = 32
"""Levels that are kept. The deepest field that is used, in a node affinity, has 12; decoders take some hundreds."""

LONGEST_KEY_BYTES: Final = 64
"""Longest key, with its quotes, that is looked at on the first level of a list."""

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL)
"""A whole string, a bracket, or the quote of a string without an end. Possessive, so that no text is scanned twice."""

_REST_OF_STRING: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)

_QUOTE, _OPEN, _OBJECT = b'"'[0], frozenset(b"{["), b"{"[0]


_T = TypeVar("_T")


class SplitItem(NamedTuple):
    """An item of a list.

    Attributes:
        text: its JSON; of one that is larger than allowed only the beginning.
        is_whole: whether it is all of it.
    """

    text: bytes
    is_whole: bool


def shallow(text: bytes, *, most_levels: int = MOST_LEVELS) -> bytes:
    """Replace what lies deeper than `most_levels` by null, and what is no UTF-8 by U+FFFD; the rest stays as it is.

    Raises:
        msgspec.DecodeError: brackets or quotes do not match. Other faults are left to the decoder.
    """
    pieces: list[bytes] = []
    kept_to = depth = began = 0
    for match in _TOKEN.finditer(text):
        token, at = text[match.start()], match.start()
        if token == _QUOTE:
            if match.end() == at + 1:
                raise msgspec.DecodeError("a string has no end")
        elif token in _OPEN:
            depth += 1
            if depth == most_levels + 1:
                began = at
        else:
            if depth == most_levels + 1:
                pieces += (text[kept_to:began], b"null")
                kept_to = at + 1
            depth -= 1
            if depth < 0:
                break
    if depth:
        raise msgspec.DecodeError("brackets do not match")
    pieces.append(text[kept_to:])
    return b"".join(pieces).decode(errors="replace").encode()


def decode_any_depth(decoder: msgspec.json.Decoder[_T], text: bytes) -> _T:
    """Decode an object; one that the decoder refuses for its depth or its bytes is made `shallow` before.

    Raises:
        msgspec.DecodeError: it is not what is wanted.
    """
    try:
        return decoder.decode(text)
    except (RecursionError, UnicodeDecodeError):
        return decoder.decode(shallow(text))


class ListSplitter:
    """Takes a list of Kubernetes apart while its text arrives, in pieces of any size and with its keys in any order.

    It keeps one item, and what has arrived of the next. Whether an item is JSON, its decoder finds out.
    """

    def __init__(self, *, most_item_bytes: int) -> None:
        """Begin a list; of items larger than `most_item_bytes` so much is kept as a beginning."""
        self._most = most_item_bytes
        self._text = bytearray()
        self._at = 0  # up to where it was scanned
        self._depth = 0
        self._is_in_string = False
        self._string_began = 0
        self._key = b""  # the last string of the first level
        self._is_in_items = False
        self._began: int | None = None  # of the value that is kept
        self._head: bytes | None = None  # of one that is too large
        self._metadata = b"null"
        self._is_object = False

    def add(self, piece: bytes) -> list[SplitItem]:
        """Take more of the text; returns the items that end in it.

        Raises:
            msgspec.DecodeError: it is no list.
        """
        self._text += piece
        if not self._is_object:
            begin = self._text.lstrip()
            if not begin:
                return []
            if begin[0] != _OBJECT:
                raise msgspec.DecodeError("it is no object")
            self._is_object = True
        items: list[SplitItem] = []
        self._scan(items)
        self._drop()
        return items

    def end(self) -> bytes:
        """Return the JSON of the list's `metadata`; null if it has none. All of the text has come.

        Raises:
            msgspec.DecodeError: the list has no end.
        """
        if self._depth or self._is_in_string or not self._is_object:
            raise msgspec.DecodeError("the list has no end")
        return self._metadata

    def _scan(self, items: list[SplitItem]) -> None:
        while self._at < len(self._text):
            if self._is_in_string and not self._end_string():
                return
            for match in _TOKEN.finditer(self._text, self._at):
                began, self._at = match.span()
                token = self._text[began]
                if token == _QUOTE:
                    if self._at == began + 1:  # its end has not come yet
                        self._is_in_string, self._string_began = True, began
                        break
                    if self._depth == 1:
                        self._key = bytes(self._text[began : self._at])
                elif token in _OPEN:
                    self._open(began)
                else:
                    self._close(items)
            else:
                self._at = len(self._text)

    def _end_string(self) -> bool:
        match = _REST_OF_STRING.match(self._text, self._at)
        self._at = match.end() if match is not None else self._at
        if self._at >= len(self._text) or self._text[self._at] != _QUOTE:
            return False
        self._at += 1
        self._is_in_string = False
        if self._depth == 1:
            self._key = bytes(self._text[self._string_began : self._at])
        return True

    def _open(self, at: int) -> None:
        self._depth += 1
        if self._depth == 2:  # noqa: PLR2004 - a field of the list
            name = self._key_name()
            self._is_in_items = name == "items"
            self._began = at if name == "metadata" else None
        elif self._depth == 3 and self._is_in_items:  # noqa: PLR2004 - an item
            self._began, self._head = at, None

    def _close(self, items: list[SplitItem]) -> None:
        self._depth -= 1
        if self._depth < 0:
            raise msgspec.DecodeError("brackets do not match")
        if self._began is None or self._depth > (2 if self._is_in_items else 1):
            return
        text = bytes(self._text[self._began : self._at])
        if not self._is_in_items:
            self._metadata = text if self._head is None else b"null"
        elif self._head is None and len(text) <= self._most:
            items.append(SplitItem(text, is_whole=True))
        else:
            items.append(SplitItem(self._head or text[: self._most], is_whole=False))
        self._began = self._head = None

    def _key_name(self) -> str:
        if len(self._key) > LONGEST_KEY_BYTES:
            return ""
        try:
            return msgspec.json.decode(self._key, type=str)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""

    def _drop(self) -> None:
        """Forget what is not needed any more, and of a value that is too large all but its beginning."""
        keep = self._at
        if self._began is not None:
            if len(self._text) - self._began > self._most:
                self._head = self._head or bytes(self._text[self._began : self._began + self._most])
                self._began = keep
            keep = self._began
        elif self._is_in_string and self._depth == 1 and self._at - self._string_began <= LONGEST_KEY_BYTES:
            keep = self._string_began
        del self._text[:keep]
        self._at -= keep
        self._string_began = max(self._string_began - keep, 0)
        if self._began is not None:
            self._began -= keep
