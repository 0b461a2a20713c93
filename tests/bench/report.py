"""Figures for people and for programs."""

from __future__ import annotations

import dataclasses
import os
import statistics
from collections.abc import Mapping, Sequence

from evictstream.streams.cli.output import print_json, print_table
from tests.bench.figures import Figure

COLUMNS = ("measure", "value", "goal", "", "rounds", "beside", "what")


def print_text(figures: Sequence[Figure], problems: Mapping[str, str]) -> None:
    """Print one row for each figure, and one for each measure whose result was wrong."""
    rows = [_row(figure) for figure in figures]
    rows += [(name, "", "", "WRONG", "", "", problem.splitlines()[0]) for name, problem in problems.items()]
    print_table(COLUMNS, rows)


def print_object(
    figures: Sequence[Figure], problems: Mapping[str, str], *, is_quick: bool, others_share: float | None
) -> None:
    """Print everything as one object."""
    print_json(
        {
            "cores": os.cpu_count(),
            "othersShare": others_share,
            "quick": is_quick,
            "figures": [
                {
                    "name": figure.name,
                    "sentence": figure.sentence,
                    "unit": figure.unit,
                    "value": figure.value,
                    "goal": None if figure.goal is None else dataclasses.asdict(figure.goal),
                    "met": figure.is_met,
                    "rounds": list(figure.rounds),
                    "beside": figure.beside,
                    "compared": None if figure.compared is None else dataclasses.asdict(figure.compared),
                }
                for figure in figures
            ],
            "problems": dict(problems),
        }
    )


def beside(figure: Figure) -> dict[str, float]:
    """Give what stands beside a figure, and the median of each program that was compared."""
    compared = figure.compared
    if compared is None:
        return figure.beside
    medians = {f"{name} [{compared.unit}]": statistics.median(found) for name, found in compared.rounds.items()}
    return medians | figure.beside


def goal_text(figure: Figure) -> str:
    """Say what is to be reached."""
    goal = figure.goal
    return "" if goal is None else f"{goal.bound} {number(goal.limit)}"


def result_text(figure: Figure) -> str:
    """Say whether it is."""
    return "" if figure.goal is None else "met" if figure.is_met else "MISSED"


def _row(figure: Figure) -> tuple[str, ...]:
    return (
        figure.name,
        f"{number(figure.value)} {figure.unit}",
        goal_text(figure),
        result_text(figure),
        " ".join(map(number, figure.rounds)),
        ", ".join(f"{name} {number(value)}" for name, value in beside(figure).items()),
        figure.sentence,
    )


def number(value: float) -> str:
    """Three digits, more only where they stand before the point."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.3g}"
