"""Text for people: nothing in it steers their terminal, whatever the names in it are.

Names, messages and errors come from recordings, topics and API servers. An escape sequence in one of them would move
the cursor, set the title or fill the clipboard; a mark of direction would show another name than is there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, TextIO

REPLACEMENT: Final = "?"

_NO_PLAIN_LETTER: Final = re.compile(r"[^\x20-\x7e]")
_NO_PLAIN_TEXT: Final = re.compile(r"[^\n\t\x20-\x7e]")
_NO_PLAIN_JSON: Final = re.compile(r"[^\n\x20-\x7e]")


def one_line(text: str) -> str:
    """Return a text as one line, with a question mark for each character that cannot be printed."""
    return text if text.isprintable() else _NO_PLAIN_LETTER.sub(_printable, text)


def printable(text: str) -> str:
    """Return a text as `one_line` does, and keep its lines and tabulators."""
    return text if text.isprintable() else _NO_PLAIN_TEXT.sub(_printable, text)


def printable_json(text: str) -> str:
    """Return JSON with the same meaning, in which characters that cannot be printed are escaped."""
    return text if text.isprintable() else _NO_PLAIN_JSON.sub(_escaped, text)


def _printable(match: re.Match[str]) -> str:
    return match[0] if match[0].isprintable() else REPLACEMENT


def _escaped(match: re.Match[str]) -> str:
    each = match[0]
    if each.isprintable():
        return each
    units = each.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))


class PrintableStream:
    """A text stream that prints what can be printed, for all that goes to stdout and stderr.

    Attributes:
        rich_proxied_file: the stream behind it. Rich writes there, since its own sequences have to reach the terminal;
            `streams.cli.consoles` makes its texts printable.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write what can be printed; returns the length of the whole text."""
        self.rich_proxied_file.write(printable(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write pieces."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Pass everything else to the stream."""
        return getattr(self.rich_proxied_file, name)
