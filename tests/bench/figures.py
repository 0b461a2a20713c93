"""What comes out of a measure: figures with their goals and what lies around them."""

from __future__ import annotations

import dataclasses
import enum
import statistics
from collections.abc import Sequence


class WrongResultError(Exception):
    """What was measured did not do its work, so no time of it counts."""


class Bound(enum.StrEnum):
    """On which side of a limit a figure has to be."""

    AT_LEAST = "at least"
    BELOW = "below"
    AT_MOST = "at most"
    """For what is known by buckets, whose upper bounds belong to them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Goal:
    """What a figure has to reach."""

    bound: Bound
    limit: float

    def is_met_by(self, value: float) -> bool:
        if self.bound is Bound.AT_LEAST:
            return value >= self.limit
        return value < self.limit or (self.bound is Bound.AT_MOST and value == self.limit)


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
    """The same measure on several programs.

    Attributes:
        unit: of all values.
        rounds: the values of each round, in order, by name of the program.
    """

    unit: str
    rounds: dict[str, tuple[float, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a run.

    Attributes:
        name: what it is called, in lower case with hyphens.
        sentence: what was measured, for people.
        unit: of value, goal and rounds.
        rounds: the value of each round, in order; the figure is their median.
        goal: what is to be reached; `None` for what is only told.
        beside: absolute figures behind the value, by name with the unit in it.
        compared: what the programs reached, if several were measured.
    """

    name: str
    sentence: str
    unit: str
    rounds: tuple[float, ...]
    goal: Goal | None = None
    beside: dict[str, float] = dataclasses.field(default_factory=dict)
    compared: Compared | None = None

    @property
    def value(self) -> float:
        return statistics.median(self.rounds)

    @property
    def is_met(self) -> bool:
        return self.goal is None or self.goal.is_met_by(self.value)


def percentile(values: Sequence[float], share: float) -> float:
    """Give the smallest value that at least this share of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    rank = -int(-share * len(ordered) // 1)
    return ordered[max(rank, 1) - 1]


def require(condition: object, problem: str) -> None:
    """Refuse a measurement whose result is wrong."""
    if not condition:
        raise WrongResultError(problem)
