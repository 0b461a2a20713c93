"""What came of many schedules, as a table for people."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field

from tests.faults.real.verdict import Outcome
from tests.faults.tally import repeat_command

KNOWN_ENDS = (
    "refuses the writes of partition",
    "could not be taken over in",
    "no Kafka answered",
    "Kafka refused to write",
    "without leaving",
    "asked to",
)


@dataclass(slots=True)
class Summary:
    """What came of many schedules; `asked` is how many there should be."""

    asked: int = 0
    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0
    left_out: list[str] = field(default_factory=list)
    begun_again: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[Outcome]:
        """Those with violations, by seed."""
        return sorted((one for one in self.outcomes if one.violations), key=lambda one: one.seed)

    @property
    def has_failed(self) -> bool:
        """Whether a schedule has violations, or one that was asked for has not been run to its end."""
        return bool(self.failed) or len(self.outcomes) < self.asked

    def lines(self) -> list[str]:
        """Give the table for people."""
        faults = collections.Counter(text.split()[1] for one in self.outcomes for text in one.faults)
        rules = collections.Counter(violation.rule for one in self.outcomes for violation in one.violations)
        ends = collections.Counter(_end_of(text) for one in self.outcomes for text in one.endings)
        walls = sorted(one.seconds for one in self.outcomes) or [0.0]
        steering = sum((one.steering for one in self.outcomes), collections.Counter())
        lines = [
            (
                f"{len(self.outcomes)} schedules on real Kafka in {self.seconds:.0f} s"
                f" (each {walls[0]:.0f} to {walls[-1]:.0f} s, median {walls[len(walls) // 2]:.0f} s):"
                f" {len(self.failed)} with violations"
            ),
            (
                f"{sum(one.inputs for one in self.outcomes)} input records,"
                f" {sum(one.messages for one in self.outcomes)} messages,"
                f" {sum(one.evicts for one in self.outcomes)} evictions issued,"
                f" {sum(one.worker_starts for one in self.outcomes)} workers started,"
                f" {sum(one.extended > 0 for one in self.outcomes)} schedules given more time"
            ),
            "steering: " + ", ".join(f"{what} {count}" for what, count in sorted(steering.items())),
            "faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(faults.items())),
            "workers ended: " + (", ".join(f"{end} {count}" for end, count in sorted(ends.items())) or "none"),
        ]
        lines += [f"left out: {text}" for text in self.left_out]
        lines += [f"begun again on a new broker: {text}" for text in self.begun_again]
        if len(self.outcomes) < self.asked:
            lines.append(f"not run: {self.asked - len(self.outcomes)} of {self.asked} schedules; this counts as failed")
        if rules:
            lines.append("violations: " + ", ".join(f"{rule} {count}" for rule, count in rules.most_common()))
        lines += [f"repeat with: {repeat_command('--real 1', one.seed)}   (kept: {one.folder})" for one in self.failed]
        return lines


def _end_of(text: str) -> str:
    """Classify an end by exit code and by what the worker said last; a line of its log is no reason."""
    _, _, rest = text.partition(" ")
    code, _, line = rest.partition(" ")
    said = next((words for words in KNOWN_ENDS if words in line), "a log line" if '"' in line else line[:60])
    return f"exit {code} ({said})" if said else f"exit {code}"
