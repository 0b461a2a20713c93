"""Reads and quotes texts as Go does, so that messages match those of Kubernetes, for which people search.

Kubernetes' messages quote the content of a field with `%q` or `encoding/json`. Go's strings are UTF-8: it reads half a
surrogate pair, which JSON and Python can spell, as U+FFFD.
"""

import json
import re
from typing import Final

_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")

_SHORT: Final = {
    '"': r"\"",
    "\\": r"\\",
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
}
_LAST_OF_ONE_BYTE: Final = 0x7F
_LAST_OF_TWO_BYTES: Final = 0xFFFF

_ESCAPED_FOR_HTML: Final = frozenset("<>&")


def valid_text(text: str) -> str:
    """Read a text as Go's JSON decoder does: each half of a surrogate pair alone becomes U+FFFD."""
    return _HALF_PAIR.sub("\ufffd", text)


def quoted(text: str) -> str:
    """Write a text as Go's `%q` and `strconv.Quote` do."""
    return f'"{"".join(map(_in_quotes, valid_text(text)))}"'


def as_json(value: object) -> str:
    """Write a value as Go's `json.Marshal` does, in one line and with `<`, `>` and `&` escaped.

    One difference: from U+007F on, characters that do not print are escaped too, because a terminal would obey them.
    Go leaves them as they are.

    Raises:
        TypeError, ValueError, RecursionError: JSON cannot hold it, which YAML can: keys of any type, loops, endless
            numbers.
    """
    text = json.dumps(value, ensure_ascii=False, default=str, separators=(",", ":"))
    return "".join(map(_in_json, valid_text(text)))


def _in_quotes(letter: str) -> str:
    if letter in _SHORT:
        return _SHORT[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code <= _LAST_OF_ONE_BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _LAST_OF_TWO_BYTES else f"\\U{code:08x}"


def _in_json(letter: str) -> str:
    if letter in _ESCAPED_FOR_HTML:
        return f"\\u{ord(letter):04x}"
    return letter if letter.isprintable() else json.dumps(letter)[1:-1]
