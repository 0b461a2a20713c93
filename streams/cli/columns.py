"""Aligned columns for output that is printed row by row, before later rows are known."""

from __future__ import annotations

from collections.abc import Sequence

from evictstream.streams.printing import one_line

GAP = "  "


class Columns:
    """Aligns one row after the other; a column is as wide as its widest cell so far."""

    def __init__(self, widths: Sequence[int]) -> None:
        """Begin with `widths`; wider cells widen them."""
        self._widths = list(widths)

    def make_room(self, cells: Sequence[str]) -> None:
        """Widen columns for a later row."""
        self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)]

    def line(self, cells: Sequence[str]) -> str:
        """Return a row as a line, without characters that steer a terminal: names come from outside."""
        safe = [one_line(cell) for cell in cells]
        self.make_room(safe)
        return GAP.join(map(str.ljust, safe, self._widths)).rstrip()
