"""What has been read of a stream and is not taken yet, and on which line it begins."""

from __future__ import annotations

import re
from typing import Final, Protocol

_READ_BYTES: Final = 262_144
"""Read at a time at least, so that decompressing is not done line by line."""


class ByteStream(Protocol):
    """What is read of a file."""

    def read1(self, size: int, /) -> bytes:
        """Up to `size` bytes, at least one, as soon as they are there; nothing at the end."""


class ReadWindow:
    """Grows behind by `more`, and shrinks in front by `take`.

    Attributes:
        data: what is there.
        line: line number of the first byte.
        is_at_line_start: the first byte begins its line.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._is_at_end = False
        self.data = bytearray()
        self.line = 1
        self.is_at_line_start = True

    def more(self) -> bool:
        """Read on, by a quarter of what is there, so that it is looked at a few times only; False at the end."""
        if not self._is_at_end:
            chunk = self._stream.read1(max(_READ_BYTES, len(self.data) // 4))
            self.data += chunk
            self._is_at_end = not chunk
        return not self._is_at_end

    def has_more(self) -> bool:
        """Tell whether anything is there; reads if need be."""
        return bool(self.data) or self.more()

    def line_end(self, longest: int) -> int | None:
        """Return where the first line ends, behind its newline; None if it is longer than that."""
        searched = 0
        while (end := self.data.find(b"\n", searched)) < 0:
            searched = len(self.data)
            if searched > longest:
                return None
            if not self.more():
                return searched
        return end + 1 if end <= longest else None

    def drop_line(self) -> bool:
        """Take away the rest of the first line, however long it is; tell whether anything is in it."""
        is_blank = True
        while (end := self.data.find(b"\n")) < 0:
            is_blank = not self.take(len(self.data)).strip() and is_blank
            if not self.more():
                return not is_blank
        return bool(self.take(end + 1).strip()) or not is_blank

    def put_back(self, text: bytes) -> None:
        """Put before the first byte what was taken."""
        self.data[:0] = text
        self.line -= text.count(b"\n")

    def skip(self, pattern: re.Pattern[bytes]) -> bool:
        """Take what the pattern matches in front; tell whether anything is there then."""
        while self.has_more():
            match = pattern.match(self.data)
            if match is None or match.end() == 0:
                return True
            self.take(match.end())
        return False

    def take(self, size: int) -> bytes:
        """Take bytes away in front, and return them."""
        text = bytes(self.data[:size])
        del self.data[:size]  # costs nothing in front, and elsewhere a copy
        if text:
            self.line += text.count(b"\n")
            self.is_at_line_start = text.endswith(b"\n")
        return text
