"""Writes the figures of a whole run into docs/performance.md, between two markers; the text around is hand-written.

The page compares programs. Goals are for those who change the code, so only the terminal shows them.
"""

from __future__ import annotations

import os
import platform
import statistics
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench.figures import Compared, Figure
from tests.bench.peers.programs import BUSY
from tests.bench.report import number

PATH: Final = Path(__file__).parents[2] / "docs" / "performance.md"
BEGIN: Final = "<!-- Written by `make bench ARGS=--write`; do not edit up to the next mark. -->"
END: Final = "<!-- End of what is written by the bench. -->"
WIDTH: Final = 120


def write(
    figures: Sequence[Figure], problems: Mapping[str, str], *, others_share: float | None, path: Path = PATH
) -> None:
    """Replace the text between the markers.

    Raises:
        ValueError: the markers are not there, each once and in order.
    """
    text = path.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has lost its markers: {BEGIN} and {END}")
    body = "\n".join(_lines(figures, problems, others_share))
    path.write_text(f"{before}{BEGIN}\n\n{body}\n\n{END}{after}", encoding="utf-8")


def _lines(figures: Sequence[Figure], problems: Mapping[str, str], others_share: float | None) -> Iterator[str]:
    others = "" if others_share is None else f"; others used {others_share:.0%} of the machine"
    date = time.strftime("%Y-%m-%d", time.gmtime())
    yield f"{date}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}{others}."
    compared = _measures(figures)
    yield from ("", "### The same job in other programs", "", "Medians of all rounds.", "")
    yield from _table(
        ["", *(program.title for program in BUSY)],
        [[what, *(_median(measure.rounds.get(program.name, ())) for program in BUSY)] for what, measure in compared],
    )
    yield from ("", f"Lowest and highest round, in the same order ({', '.join(program.name for program in BUSY)}):", "")
    for what, measure in compared:
        ranges = [f"{name} {_range(values)}" for name, values in measure.rounds.items() if values]
        yield _item(f"{what}: {', '.join(ranges)}")
    yield from ("", "### One worker alone", "")
    yield from (_item(_alone(figure)) for figure in figures if figure.compared is None)
    for name, problem in problems.items():
        yield from ("", f"No figures of {name}: {problem.splitlines()[0]}")


def _measures(figures: Sequence[Figure]) -> list[tuple[str, Compared]]:
    """Keep one row for each measure: some have several goals, and so several figures."""
    rows: list[tuple[str, Compared]] = []
    for figure in figures:
        if figure.compared is not None and all(figure.compared != measure for _, measure in rows):
            rows.append((f"{figure.sentence}, {figure.compared.unit}", figure.compared))
    return rows


def _alone(figure: Figure) -> str:
    value = f"{number(figure.value)} {figure.unit}"
    more = [] if len(figure.rounds) == 1 else [_range(figure.rounds)]
    more += [f"{name} {number(amount)}" for name, amount in figure.beside.items()]
    return f"{figure.sentence}: {value}" + (f" ({', '.join(more)})" if more else "")


def _median(values: Sequence[float]) -> str:
    return number(statistics.median(values)) if values else ""


def _range(values: Sequence[float]) -> str:
    low, high = number(min(values)), number(max(values))
    return low if low == high else f"{low} to {high}"


def _item(text: str) -> str:
    return textwrap.fill(f"- {text}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(cells)} |"
