"""Brackets in the bytes of JSON, found without making values: a whole object that is there counts as one token."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from evictstream.models.messages.envelope import DECODE_ERRORS

_DEPTH: Final = 8
"""Levels of brackets that one token may hold. Pods have ten at most; what is deeper costs a token for each bracket."""

_LOOK_BACK: Final = 128
"""Bytes before a bracket that are looked at for what is no white space. Printers indent by less."""

# `*+` never goes back, so nothing here can explode. A text ends on its line, as JSON has it.
_TEXT: Final = rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
_NO_BRACKETS: Final = rb'(?:[^"{}\[\]]++|' + _TEXT + rb")*+"


def _balanced(levels: int) -> bytes:
    inner = rb"|" + _balanced(levels - 1) if levels > 1 else b""
    return rb'[{\[](?:[^"{}\[\]]++|' + _TEXT + inner + rb")*+[}\]]"


_TOKEN: Final = re.compile(_NO_BRACKETS + rb"(?:(?P<whole>" + _balanced(_DEPTH) + rb')|(?P<mark>[{\[}\]"]))')
_SIGN: Final = re.compile(rb'["{}\[\]\n]')
_WHOLE_TEXT: Final = re.compile(_TEXT)
_SCALAR: Final = re.compile(rb'[^\s,\[\]{}":]+(?=[\s,\]])')

_any: Final = msgspec.json.Decoder(msgspec.Raw)


class Token(NamedTuple):
    """Something with brackets.

    Attributes:
        at: where it begins.
        end: where it ends.
        mark: its first byte: a bracket, or a quote whose partner is not there yet.
        is_whole: a JSON object or array.
    """

    at: int
    end: int
    mark: int
    is_whole: bool


def next_token(data: bytearray, start: int, largest: int) -> Token | None:
    """Return what comes first from `start` on, behind all texts and numbers; None if there is no bracket any more.

    What is larger than `largest` bytes is not taken as a whole: it may be a list.
    """
    match = _TOKEN.match(data, start)
    if match is None:
        return None
    at, end = match.span(match.lastgroup or 0)
    if match.lastgroup == "whole" and end - at <= largest and _is_json(match["whole"]):
        return Token(at, end, data[at], is_whole=True)
    return Token(at, at + 1, data[at], is_whole=False)


def _is_json(text: bytes) -> bool:
    try:
        _any.decode(text)
    except DECODE_ERRORS:
        return False
    return True


def has_sign(data: bytearray, start: int) -> bool:
    """Tell whether anything from `start` on could complete a token that was not there before."""
    return _SIGN.search(data, start) is not None


def first_text(data: bytearray, at: int) -> int | None:
    """Return the end of the text that begins at a quote; None if it is not there yet."""
    match = _WHOLE_TEXT.match(data, at)
    return None if match is None else match.end()


def scalar(data: bytearray, at: int) -> int | None:
    """Return the end of a number or word; None if it is none, or its end is not there yet."""
    match = _SCALAR.match(data, at)
    return None if match is None else match.end()


def last_sign(data: bytearray, start: int, end: int) -> int | None:
    """Return the last byte between two places that is no white space; None if there is none."""
    near = data[max(start, end - _LOOK_BACK) : end].rstrip() or data[start:end].rstrip()
    return near[-1] if near else None
