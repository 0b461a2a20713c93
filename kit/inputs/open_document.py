"""A JSON document that has begun: its brackets, followed up to where they are closed, or cannot be any more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from evictstream.kit.inputs.json_tokens import Token, first_text, has_sign, last_sign, next_token, scalar
from evictstream.kit.inputs.pieces import Broken, Document, InputPiece, ListItem
from evictstream.kit.inputs.read_window import ReadWindow

NOT_JSON: Final = "not JSON"
IN_THE_MIDDLE: Final = "ends in the middle"
TOO_DEEP: Final = "nested too deeply"

_DEEPEST_LEVELS: Final = 10_000
"""Of brackets: no reader of JSON takes more."""

MOST_INSIDE: Final = 10_000
"""Documents that may have begun within another: more than follow a cut before that shows."""

_LIST_NAME: Final = re.compile(rb'(?<!\\)"(?:items|events|logEvents|records|results)"\s*:\s*\Z')
_LOOK_BACK: Final = 128  # bytes: enough for such a name and the white space of printers
_SEPARATORS: Final = re.compile(rb"[\s,]*")
_OBJECT, _ARRAY, _END_OF_OBJECT, _END_OF_ARRAY, _QUOTE, _COMMA, _COLON, _NEWLINE = b'{[}]",:\n'
_BRACKETS: Final = b"{["
_OPENED_BY: Final = {_END_OF_OBJECT: _OBJECT, _END_OF_ARRAY: _ARRAY}


class _FailedError(Exception):
    """Nothing can be made of the document. `at`: up to where; `is_new`: there another document begins."""

    def __init__(self, problem: str, at: int, *, is_new: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at
        self.is_new = is_new


class OpenDocument:
    """The document with which a window begins."""

    def __init__(self, window: ReadWindow, largest_bytes: int) -> None:
        self._window = window
        self._largest_bytes = largest_bytes
        self._line = window.line
        self._seen = 0  # looked at up to here
        self._open: list[int] = []  # brackets
        self._starts: list[int] = []  # where they stand
        self._before = 0  # the last bracket
        self._head = b""  # of the list whose values are read, as far as these
        self._closed_head = b""
        self._depth_of_values = 0  # brackets that are open between two of them; 0 outside of a list
        self._is_first_value = False
        self._inside: list[list[int]] = []  # begins and ends of what may be documents; an end of 0 is not there yet

    def pieces(self) -> Iterator[InputPiece]:
        """Give the values of a list, then the document, or that it is broken; the window stands behind it then."""
        try:
            while True:
                if self._depth_of_values and len(self._open) == self._depth_of_values:
                    token = self._value()
                else:
                    token = self._bracket()
                if token is not None:
                    yield token
                if not self._open:
                    return
        except _FailedError as failed:
            yield self._broken(failed)

    def _value(self) -> InputPiece | None:
        """Look at the next value of a list, or at the end of the list."""
        data = self._window.data
        separated = _SEPARATORS.match(data, self._seen)
        at = self._seen if separated is None else separated.end()
        if at == len(data):
            self._read_on()
            return None
        mark = data[at]
        if mark != _END_OF_ARRAY and not self._is_first_value and data.find(b",", self._seen, at) < 0:
            raise self._no_value_here(at)
        if mark == _QUOTE:
            end = first_text(data, at)
            if end is None:
                self._wait_for_text(at)
                return None
            return self._list_item(at, end)
        if mark not in b"{[]":
            end = scalar(data, at)
            if end is None:
                raise _FailedError(NOT_JSON, at)
            return self._list_item(at, end)
        return self._bracket()

    def _bracket(self) -> InputPiece | None:
        """Look at the next bracket, or at all that stands between two which belong together."""
        data = self._window.data
        token = next_token(data, self._seen, self._largest_bytes)
        if token is None:
            self._read_on()
            return None
        if token.mark == _QUOTE:
            self._wait_for_text(token.at)
            return None
        if token.mark in _OPENED_BY:
            return self._closed(token)
        return self._opened(token)

    def _opened(self, token: Token) -> InputPiece | None:
        data, depth = self._window.data, len(self._open)
        if depth and depth != self._depth_of_values:
            self._check_place(token)
        if token.mark == _OBJECT and depth and token.at and data[token.at - 1] == _NEWLINE:
            self._begins_inside(token)
        if token.is_whole:
            self._seen, self._before = token.end, data[token.end - 1]
            if depth == 0:
                return self._document(token.end)
            return self._list_item(token.at, token.end) if depth == self._depth_of_values else None
        if depth == _DEEPEST_LEVELS:
            raise _FailedError(TOO_DEEP, token.at)
        is_list = token.mark == _ARRAY and not self._depth_of_values
        is_list = is_list and (depth == 0 or (depth == 1 and self._open[0] == _OBJECT and self._is_named(token.at)))
        self._open.append(token.mark)
        self._starts.append(token.at)
        self._seen, self._before = token.end, token.mark
        if is_list:
            self._head = self._window.take(token.end)
            self._closed_head = self._head + (b"]}" if depth else b"]")
            self._depth_of_values, self._is_first_value = depth + 1, True
            self._seen = 0
            self._inside.clear()
        return None

    def _closed(self, token: Token) -> InputPiece | None:
        if self._open[-1] != _OPENED_BY[token.mark]:
            raise _FailedError(NOT_JSON, token.at)
        self._open.pop()
        self._ends_inside(self._starts.pop(), token.end)
        self._seen, self._before = token.end, token.mark
        depth = len(self._open)
        if self._depth_of_values and depth < self._depth_of_values:
            self._window.take(token.end)
            self._window.put_back(self._head + b"]")
            self._seen, self._depth_of_values = len(self._head) + 1, 0
            self._inside.clear()
        if depth == 0:
            return self._document(self._seen)
        return self._list_item(self._starts_at(), token.end) if depth == self._depth_of_values else None

    def _starts_at(self) -> int:
        """Return where the value of the list begins that has just been closed."""
        separated = _SEPARATORS.match(self._window.data)
        return 0 if separated is None else separated.end()

    def _list_item(self, at: int, end: int) -> ListItem | Broken:
        self._window.take(at)
        line = self._window.line
        text = self._window.take(end - at)
        self._seen, self._is_first_value = 0, False
        self._inside.clear()
        if len(text) > self._largest_bytes:
            return Broken(line, self._too_large(), text.count(b"\n") + 1)
        return ListItem(line, text, self._closed_head)

    def _document(self, end: int) -> Document | Broken:
        text = self._window.take(end)
        if len(text) > self._largest_bytes:
            return Broken(self._line, self._too_large(), text.count(b"\n") + 1)
        return Document(self._line, text)

    def _check_place(self, token: Token) -> None:
        """Check that it follows a colon in an object, and a comma or the bracket in an array."""
        sign = last_sign(self._window.data, self._seen, token.at) or self._before
        is_right = sign == _COLON if self._open[-1] == _OBJECT else sign in {_COMMA, _ARRAY}
        if not is_right:
            raise self._no_value_here(token.at)

    def _no_value_here(self, at: int) -> _FailedError:
        data = self._window.data
        is_new = data[at] == _OBJECT and at > 0 and data[at - 1] == _NEWLINE
        return _FailedError(IN_THE_MIDDLE if is_new else NOT_JSON, at, is_new=is_new)

    def _is_named(self, at: int) -> bool:
        return _LIST_NAME.search(self._window.data, max(0, at - _LOOK_BACK), at) is not None

    def _wait_for_text(self, at: int) -> None:
        """Read on for the end of a text, which is on the same line."""
        if self._window.data.find(b"\n", at) >= 0:
            raise _FailedError(NOT_JSON, at)
        self._read_on()

    def _read_on(self) -> None:
        """Read until there is something that could complete what is open."""
        window = self._window
        size = len(window.data)
        while True:
            if len(window.data) > self._largest_bytes:
                raise _FailedError(self._too_large(), len(window.data))
            if not window.more():
                raise _FailedError(IN_THE_MIDDLE, len(window.data), is_new=True)
            if has_sign(window.data, size):
                return
            size = len(window.data)

    def _too_large(self) -> str:
        return f"larger than {self._largest_bytes} bytes"

    def _begins_inside(self, token: Token) -> None:
        if len(self._inside) < MOST_INSIDE:
            self._inside.append([token.at, token.end if token.is_whole else 0])

    def _ends_inside(self, at: int, end: int) -> None:
        """Note the end of what may be a document. What may be one within it is none."""
        for place in range(len(self._inside) - 1, -1, -1):
            begins, _ = self._inside[place]
            if begins == at:
                self._inside[place][1] = end
                del self._inside[place + 1 :]
            if begins <= at:
                return

    def _broken(self, failed: _FailedError) -> Broken:
        """Take what is broken, up to where another document begins."""
        window = self._window
        at = min(self._starts_at(), failed.at)
        window.take(at)
        inside = [(begins - at, ends - at) for begins, ends in self._inside if at <= begins < ends <= failed.at]
        line, text = window.line, window.take(failed.at - at)
        lines = text.count(b"\n") + (not text.endswith(b"\n"))
        if not failed.is_new:
            window.drop_line()
            while window.has_more() and window.data[0] not in _BRACKETS:
                lines += window.drop_line()
        documents = tuple((line + text.count(b"\n", 0, begins), text[begins:ends]) for begins, ends in inside)
        lines -= sum(document.count(b"\n") + 1 for _, document in documents)
        return Broken(line, failed.problem, max(1, lines), documents)
