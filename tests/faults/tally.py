"""Counts what runs come to, and says it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

from evictstream.kit.oracle import Violation

SHOWN = 5  # violations of one run that are printed


def repeat_command(arguments: str, seed: int) -> str:
    """Give the command that repeats a run, to be typed in the project's folder."""
    return f"make faults ARGS='{arguments} --seed {seed}'"


class Outcome(Protocol):
    """What a run came to, as far as it is counted."""

    @property
    def seed(self) -> int:
        """Its seed."""

    @property
    def violations(self) -> Sequence[Violation]:
        """What was wrong."""

    @property
    def seen(self) -> Counter[str]:
        """How often each fault struck, and other things to be counted."""


class Tally:
    """Totals of many runs.

    Attributes:
        name: of what is run.
        seeds: to be run.
        failed: seeds with a violation.
        rules: violations by rule.
        seen: faults and other things by how often.
    """

    def __init__(self, name: str, seeds: range, repeat: str) -> None:
        """Begin; `repeat` are the arguments that repeat a run, less the seed."""
        self.name = name
        self.seeds = seeds
        self.runs = 0
        self.failed: list[int] = []
        self.rules: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.seconds = 0.0
        self._repeat = repeat
        self._began_at = time.monotonic()

    def take(self, outcome: Outcome) -> Iterator[str]:
        """Take a run in; gives lines to print if it has failed."""
        self.runs += 1
        self.seen.update(outcome.seen)
        if not outcome.violations:
            return
        self.failed.append(outcome.seed)
        self.rules.update(violation.rule for violation in outcome.violations)
        yield f"seed {outcome.seed} failed; repeat it with: {repeat_command(self._repeat, outcome.seed)}"
        for violation in outcome.violations[:SHOWN]:
            yield f"  {violation}"

    def finish(self) -> None:
        """Stop the watch."""
        self.seconds = time.monotonic() - self._began_at

    def summary(self) -> dict[str, object]:
        """Give everything for a machine."""
        return {
            "firstSeed": self.seeds[0],
            "lastSeed": self.seeds[-1],
            "runs": self.runs,
            "seconds": round(self.seconds, 1),
            "failedSeeds": self.failed,
            "violations": dict(sorted(self.rules.items())),
            "seen": dict(sorted(self.seen.items())),
        }

    def text(self) -> str:
        """Give everything for people."""
        seen = "\n".join(f"  {count:>9,} {name}" for name, count in sorted(self.seen.items()))
        rules = ", ".join(f"{count} x {rule}" for rule, count in self.rules.most_common()) or "none"
        return (
            f"{self.name}: {self.runs:,} schedules (seeds {self.seeds[0]} to {self.seeds[-1]})"
            f" in {self.seconds:.0f} s; violations: {rules}\n{seen}"
        )
