"""A row of the comparison: one measure on several programs, and its goal, a ratio or a limit for ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.bench.figures import Compared, Figure, Goal
from tests.bench.peers.programs import OURS, Program

Rounds = Mapping[Program, Sequence[float]]
"""Value of each round, in order."""


def ratio(
    name: str, sentence: str, unit: str, rounds: Rounds, against: Program, goal: Goal, *, of: Program = OURS
) -> Figure:
    """Divide the value of evictstream, one worker or two, by another program's, round by round.

    The figure is the median ratio.
    """
    ratios = tuple(ours / other for ours, other in zip(rounds[of], rounds[against], strict=True))
    return Figure(name, sentence, f"x {against.name}", ratios, goal, compared=_compared(unit, rounds))


def limit(name: str, sentence: str, unit: str, rounds: Rounds, goal: Goal | None, *, of: Program = OURS) -> Figure:
    """Make a figure of the values of evictstream, one worker or two; the other programs' values are only shown."""
    return Figure(name, sentence, unit, tuple(rounds[of]), goal, compared=_compared(unit, rounds))


def in_turn(programs: Sequence[Program], number: int) -> Sequence[Program]:
    """Rotate the order of programs by round, so that none always follows the same one."""
    first = number % len(programs)
    return (*programs[first:], *programs[:first])


def _compared(unit: str, rounds: Rounds) -> Compared:
    return Compared(unit, {program.name: tuple(values) for program, values in rounds.items()})
