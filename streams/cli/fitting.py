"""Widths of a table's columns: a terminal gets lines that fit, a pipe every cell as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from evictstream.streams.cli.columns import GAP

ELLIPSIS: Final = "…"
_LEAST_TO_CUT: Final = 4
"""Of fewer characters, nothing says that some are missing."""


class Width(NamedTuple):
    """How wide a column would be, and how it yields.

    Attributes:
        natural: its longest cell, or its title.
        least: fewest characters that still tell something; None where no cell may be cut.
        rank: the highest rank is left out first where even the least does not fit.
    """

    natural: int
    least: int | None = None
    rank: int = 0

    @property
    def floor(self) -> int:
        """Characters that it has at least."""
        return self.natural if self.least is None else min(self.natural, self.least)


def fit(widths: Sequence[Width], room: int | None) -> dict[int, int]:
    """Choose the columns that are shown, and their widths; `room` is None where there is no limit.

    Columns are left out until the least of the others fits; then the widest ones yield, one character after the other.
    One column always stays, as wide as the room.
    """
    shown = {number: width.natural for number, width in enumerate(widths)}
    if room is None:
        return shown
    while len(shown) > 1 and _total(widths[number].floor for number in shown) > room:
        del shown[max(shown, key=lambda number: (widths[number].rank, number))]
    while _total(shown.values()) > room:
        yielding = [number for number, width in shown.items() if width > widths[number].floor]
        if not yielding:  # one is left, and is wider than all the room
            return dict.fromkeys(shown, max(1, room))
        shown[max(yielding, key=lambda number: (shown[number], number))] -= 1
    return shown


def _total(widths: Iterable[int]) -> int:
    each = list(widths)
    return sum(each) + len(GAP) * (len(each) - 1)


Cut = Callable[[str, int], str]
"""Shortens a cell to at most so many characters."""


def cut_middle(text: str, width: int) -> str:
    """Leave out the middle: names of pods and nodes tell most at both ends."""
    if len(text) <= width:
        return text
    if width < _LEAST_TO_CUT:
        return text[:width]
    tail = width // 2
    return f"{text[: width - tail - len(ELLIPSIS)]}{ELLIPSIS}{text[-tail:]}"


def cut_domain(text: str, width: int) -> str:
    """Leave out the domain of a key first: `unreachable` tells more of `node.kubernetes.io/unreachable`."""
    return text if len(text) <= width else cut_middle(text.rpartition("/")[2], width)


def cut_end(text: str, width: int) -> str:
    """Leave out the end of a sentence."""
    if len(text) <= width:
        return text
    return text[:width] if width < _LEAST_TO_CUT else f"{text[: width - len(ELLIPSIS)]}{ELLIPSIS}"
