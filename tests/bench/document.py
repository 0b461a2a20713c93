"""Writes the figures of a whole run into docs/performance.md, between two markers; the text around is hand-written."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.bench.figures import Figure
from tests.bench.peers.programs import BUSY
from tests.bench.report import goal_text, number, result_text

PATH: Final = Path(__file__).parents[2] / "docs" / "performance.md"
BEGIN: Final = "<!-- Written by `make bench ARGS=--write`; do not edit up to the next mark. -->"
END: Final = "<!-- End of what is written by the bench. -->"


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
    machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    yield f"{date}, {machine}{others}."
    yield "Medians, with the lowest and highest round."
    titles = [program.title for program in BUSY]
    yield from ("", "### Beside the same job in other programs", "")
    yield from _table(
        ["what", *titles, "goal for evictstream", "reached", ""],
        [_compared_row(figure) for figure in figures if figure.compared is not None],
    )
    alone = [figure for figure in figures if figure.compared is None]
    yield from ("", "### One worker alone", "")
    yield from _table(["what", "figure", "goal", "", "beside"], [_row(figure) for figure in alone])
    for name, problem in problems.items():
        yield from ("", f"No figures of {name}: {problem.splitlines()[0]}")


def _compared_row(figure: Figure) -> list[str]:
    compared = figure.compared
    assert compared is not None
    names = [program.name for program in BUSY]
    cells = [_spread(compared.rounds.get(name, ()), compared.unit) for name in names]
    more = [f"{name} {_spread(found, compared.unit)}" for name, found in compared.rounds.items() if name not in names]
    what = ". ".join([figure.sentence, *more])
    reached = "" if figure.goal is None else f"{number(figure.value)} {figure.unit}"
    return [what, *cells, goal_text(figure), reached, result_text(figure)]


def _row(figure: Figure) -> list[str]:
    beside = ", ".join(f"{name} {number(value)}" for name, value in figure.beside.items())
    return [figure.sentence, _spread(figure.rounds, figure.unit), goal_text(figure), result_text(figure), beside]


def _spread(found: Sequence[float], unit: str) -> str:
    if not found:
        return ""
    value = f"{number(statistics.median(found))} {unit}"
    return value if len(found) == 1 else f"{value} ({number(min(found))} to {number(max(found))})"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in (columns, ["---"] * len(columns), *rows):
        yield f"| {' | '.join(cells)} |"
