"""The verdict on a rule: held, BROKEN or not shown, and the evidence."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

_E = TypeVar("_E")


class Standing(enum.StrEnum):
    """How a rule stands after a run."""

    HELD = "held"
    BROKEN = "BROKEN"
    NOT_SHOWN = "not shown"


class Finding(NamedTuple):
    """The result of a rule's function."""

    standing: Standing
    seen: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceRule(Generic[_E]):
    """One rule, and the function that judges it by the recorded evidence.

    Attributes:
        name: short, for programs; it never changes.
        text: for people.
        judge: pure.
        is_recommended: it may be broken without a failure.
    """

    name: str
    text: str
    judge: Callable[[_E], Finding]
    is_recommended: bool = False


class JudgedRule(NamedTuple):
    """A rule with its finding."""

    name: str
    text: str
    is_recommended: bool
    standing: Standing
    seen: str

    @property
    def is_failure(self) -> bool:
        """Whether the program fails by this rule."""
        return self.standing is Standing.BROKEN and not self.is_recommended


def conformance_rules(
    required: Iterable[tuple[str, str, Callable[[_E], Finding]]],
    recommended: Iterable[tuple[str, str, Callable[[_E], Finding]]],
) -> tuple[ConformanceRule[_E], ...]:
    """Make rules of names, texts and functions."""
    return tuple(
        ConformanceRule(name=name, text=text, judge=function, is_recommended=table is recommended)
        for table in (required, recommended)
        for name, text, function in table
    )


def judge_rules(rules: Iterable[ConformanceRule[_E]], evidence: _E) -> list[JudgedRule]:
    """Ask each rule."""
    return [JudgedRule(rule.name, rule.text, rule.is_recommended, *rule.judge(evidence)) for rule in rules]


def held(seen: str) -> Finding:
    """Say that it held."""
    return Finding(Standing.HELD, seen)


def broken(seen: str) -> Finding:
    """Say that it was broken."""
    return Finding(Standing.BROKEN, seen)


def not_shown(why: str) -> Finding:
    """Say that nothing was seen that could show it."""
    return Finding(Standing.NOT_SHOWN, why)


def unless(wrong: Sequence[str], seen: str) -> Finding:
    """Say that it held if nothing is wrong, else what is: the first of them, and how many more there are."""
    if not wrong:
        return held(seen)
    return broken(wrong[0] + (f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""))
