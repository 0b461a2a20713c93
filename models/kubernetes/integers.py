"""Canonical decimal integers, the only numbers that `Gt` and `Lt` compare (semantics.md 2.4 and 3.2)."""

import re
from typing import Final

_CANONICAL: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**63 - 1
_LONGEST: Final = 20  # characters of the lowest number; `int` would take long for texts without a limit


def is_canonical(text: str) -> bool:
    """Return whether a text is a canonical decimal integer of any length.

    Canonical: `0`, or an optional `-`, a digit 1 to 9, then ASCII digits. No `+`, leading zeros, `-0` or spaces.
    """
    return _CANONICAL.fullmatch(text) is not None


def canonical_int64(text: str) -> int | None:
    """Read a canonical decimal integer within signed 64 bit.

    Returns:
        The number, or None if the text is something else or out of range; Kubernetes then treats it as no match.
    """
    if len(text) > _LONGEST or not is_canonical(text):
        return None
    number = int(text)
    return number if _LOWEST <= number <= _HIGHEST else None
