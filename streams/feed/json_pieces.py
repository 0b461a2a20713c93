"""Finds members of JSON that no decoder reads: too deep, broken in another place, or cut.

It looks without recursion and makes no objects. What is no JSON gives little or nothing, and never an error. It is
slow, so it is for what a decoder has refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

_TEXT: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BRACKET: Final = re.compile(_TEXT + rb'|[{}\[\]"]', re.DOTALL)
_TOKEN: Final = re.compile(_TEXT + rb'|[{}\[\]",:]|[^\s"{}\[\],:]++', re.DOTALL)
_OPENING, _CLOSING, _QUOTE = b"{[", b"}]", ord('"')


class Piece(NamedTuple):
    """A member of an object, or an element of a list.

    Attributes:
        key: as it is written, without quotes; empty for an element.
        value: its JSON.
        is_whole: whether the value has an end. Only the last piece may have none.
    """

    key: bytes
    value: bytes
    is_whole: bool

    @property
    def text(self) -> str:
        """The value as text; empty if it is none, or cut. Broken UTF-8 in it is replaced."""
        if not self.is_whole or self.value[:1] != b'"':
            return ""
        try:
            return msgspec.json.decode(self.value.decode("utf-8", "replace"), type=str)
        except msgspec.DecodeError:
            return ""


def pieces(text: bytes) -> Iterator[Piece]:
    """Take an object, or a list, apart; what is neither has no pieces."""
    first = _TOKEN.search(text)
    if first is None or text[first.start()] not in _OPENING:
        return
    is_object, key, at = first[0] == b"{", b"", first.end()
    while (match := _TOKEN.search(text, at)) is not None:
        begin, at = match.span()
        token = text[begin]
        if token in _CLOSING:
            return
        if token == ord(","):
            key = b""
        elif token == ord(":"):
            pass
        elif token == _QUOTE and is_object and not key:
            if at == begin + 1:  # the name is cut
                return
            key = match[0][1:-1]
        else:
            end = _end(text, begin) if token in _OPENING else _scalar_end(text, begin, at)
            yield Piece(key, text[begin:end], end is not None)
            if end is None:
                return
            at = end


def piece(text: bytes, *keys: bytes) -> Piece | None:
    """Return the member of this name, of the member of the name before and so on; None without one."""
    match: Piece | None = None
    for key in keys:
        match = next((one for one in pieces(text) if one.key == key), None)
        if match is None:
            return None
        text = match.value
    return match


def _end(text: bytes, begin: int) -> int | None:
    """Find the end of the object or list that begins there; None if it is cut."""
    depth = 0
    for bracket in _BRACKET.finditer(text, begin):
        token = text[bracket.start()]
        if token in _OPENING:
            depth += 1
        elif token in _CLOSING:
            depth -= 1
            if not depth:
                return bracket.end()
        elif bracket.end() == bracket.start() + 1:  # a text without its end
            return None
    return None


def _scalar_end(text: bytes, begin: int, end: int) -> int | None:
    """Return the end of a text, number or word if it has one: what stands at the very end may lack a part."""
    is_text = text[begin] == _QUOTE
    return end if (end > begin + 1 if is_text else end < len(text)) else None
