"""Aligned columns for output that is printed row by row, before later rows are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evictstream.streams.printing import one_line

GAP = "  "


class Columns:
    """Aligns rows under titles; a column is as wide as its widest cell so far.

    A wider cell moves the columns behind it. The titles are printed again then, so that each row is under its own.
    """

    def __init__(self, titles: Sequence[str], widths: Sequence[int] = ()) -> None:
        """Begin with room for the titles, and `widths` if they are given; wider cells widen them."""
        self._titles = titles
        self._widths = list(widths) or [0] * len(titles)
        self._make_room(titles)
        self._places: list[int] | None = None

    def _make_room(self, cells: Sequence[str]) -> None:
        self._widths = [max(width, len(cell)) for width, cell in zip(self._widths, cells, strict=True)]

    def titles(self) -> str:
        """Return the line of titles for what is known now."""
        self._places = self._widths[:-1]
        return self._line(self._titles)

    def lines(self, rows: Sequence[Sequence[str]]) -> Iterator[str]:
        """Yield a line for each row, before them the titles where none are, or where columns have moved.

        Characters that steer a terminal are left out: names come from outside.

        Args:
            rows: printed together, so all of them make room first.
        """
        safe = [[one_line(cell) for cell in row] for row in rows]
        for row in safe:
            self._make_room(row)
        if safe and self._places != self._widths[:-1]:
            yield self.titles()
        for row in safe:
            yield self._line(row)

    def _line(self, cells: Sequence[str]) -> str:
        return GAP.join(map(str.ljust, cells, self._widths)).rstrip()
