"""The end of a schedule: wait until it is quiet, read everything back, judge, stop the workers, look at their rows."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from evictstream.kit.oracle import Violation, judge
from evictstream.streams.settings import Settings
from tests.faults.node_rows import check_nodes
from tests.faults.plan import SECOND_US, FaultKind, Plan
from tests.faults.real.arena import ArenaKind
from tests.faults.real.crew import CLEAN, Crew
from tests.faults.real.kept import keep
from tests.faults.real.playing import Player
from tests.faults.real.reading import Log, UnreadableTopicError, read_log
from tests.faults.real.state import check_state, read_rows, unread

MORE_SECONDS = 6
"""A run that is not quiet in time, on a busy machine, gets so much more, and again; only what stays wrong is wrong."""

MORE_TIMES = 3

EARLY_US = 5_000
"""How early an eviction may be seen: event times are whole milliseconds."""

SETTLE_US = 2_200_000
"""Two of the intervals in which positions are written."""


@dataclass(slots=True)
class Outcome:
    """What came of one schedule.

    Attributes:
        faults: those that were done, one line each: when, kind, duration, amount.
        seconds: wall time.
        extended: how many times it needed more time than planned.
        steering: how often something was written, held or answered about brakes, policies and incidents.
        endings: ends of workers that a supervisor had to make good for, as text.
        folder: where its logs are, if they were kept.
    """

    seed: int
    arena: ArenaKind
    violations: list[Violation] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0
    extended: int = 0
    inputs: int = 0
    messages: int = 0
    evicts: int = 0
    steering: Counter[str] = field(default_factory=Counter)
    worker_starts: int = 0
    endings: list[str] = field(default_factory=list)
    folder: Path | None = None


class Trial:
    """Judges one schedule whose plan has been played."""

    def __init__(self, plan: Plan, settings: Settings, player: Player, crew: Crew, outcome: Outcome) -> None:
        self._plan, self._settings, self._player, self._crew = plan, settings, player, crew
        self._outcome = outcome
        self._early_us = _early_us(plan)
        self._log = Log()
        self._ended_at_us = plan.end_at_us
        self._may_forget = False

    def hold(self, folder: Path) -> None:
        """Judge, and keep the log in a folder."""
        outcome = self._outcome
        self._look()
        while outcome.violations and outcome.extended < MORE_TIMES:
            outcome.extended += 1
            for _ in range(MORE_SECONDS):
                self._player.beat()
                self._player.play(time.time_ns() // 1000 + SECOND_US)
            self._look()
        self._end_workers()
        log = self._log
        outcome.inputs, outcome.messages = len(log.inputs), len(log.messages)
        outcome.evicts = sum(m.topic == "commands" and b'"Evict"' in m.value for m in log.messages)
        outcome.steering["records of brakes and of policies that stand for them"] = len(log.brakes)
        outcome.steering["records of policies that guard"] = len(log.policies)
        outcome.steering["incidents"] = len({record.key for record in log.incidents})
        outcome.steering["answers to incidents"] = self._player.desk.people.answers
        outcome.steering["held by the executor"] = self._player.held
        outcome.worker_starts = self._crew.starts
        facts: dict[str, object] = {
            "seed": self._plan.seed,
            "arena": outcome.arena.value,
            "start_at_us": self._plan.start_at_us,
            "ended_at_us": self._ended_at_us,
            "partitions": self._settings.partitions,
            "numbers": self._plan.numbers,
            "early_us": self._early_us,
            "may_forget": self._may_forget,
            "faults": outcome.faults,
            "endings": outcome.endings,
            "violations": [str(violation) for violation in outcome.violations],
        }
        keep(folder, log, facts)

    def _look(self) -> None:
        """Judge what stands there now, once nothing has come for long enough that positions are written."""
        self._player.flush()
        self._player.play(time.time_ns() // 1000 + SETTLE_US)
        self._player.flush()
        self._ended_at_us = time.time_ns() // 1000
        self._judge()
        if not self._outcome.violations:  # who has not read everything yet may still have much to say
            self._outcome.violations = [*unread(self._settings, read_rows(self._settings))]

    def _judge(self) -> None:
        try:
            self._log = read_log(self._settings, self._plan.brakes, self._player.desk.known_us)
        except UnreadableTopicError as error:
            self._outcome.violations = [Violation("unreadable", str(error))]
            return
        self._may_forget = self._crew.has_taken_over_again(self._settings.partitions)
        self._outcome.violations = judge(
            self._log.inputs,
            self._log.messages,
            ended_at_us=self._ended_at_us,
            partitions=self._settings.partitions,
            limits=self._plan.numbers.limits(),
            early_us=self._early_us,
            may_forget=self._may_forget,
            brakes=self._log.brakes,
            policies=self._log.policies,
            incidents=self._log.incidents,
        )

    def _end_workers(self) -> None:
        """Stop all in order; what came until then is judged too, and the rows that they leave."""
        outcome, crew = self._outcome, self._crew
        endings = [*crew.endings]
        unclean = crew.stop_all()
        if not outcome.violations:
            self._judge()
            rows = read_rows(self._settings)
            outcome.violations += check_state(self._settings, rows, self._log.messages)
            outcome.violations += check_nodes(
                rows.table,
                self._log.inputs,
                positions=rows.positions,
                limits=self._plan.numbers.limits(),
                partitions=self._settings.partitions,
            )
        outcome.violations += [Violation("unclean stop", str(ending)) for ending in unclean]
        for ending in endings:
            outcome.endings.append(f"{ending.worker} {ending.code} {ending.last_line[-300:]}")
            if ending.code not in CLEAN:
                outcome.violations.append(Violation("worker broke", str(ending)))


def _early_us(plan: Plan) -> int:
    """How early an eviction may be: a clock that is ahead by less than its limit cannot be told from a true one.

    With brakes or policies a clock that is behind counts too: the oracle compares when a command was issued, as its
    worker says, with what the worker had read.
    """
    steps = [fault.amount for fault in plan.faults if fault.kind is FaultKind.CLOCK_STEP]
    if plan.brakes or plan.policies:
        steps = [abs(step) for step in steps]
    return EARLY_US + int(min(max([0.0, *steps]), plan.numbers.clock_skew_limit_seconds) * SECOND_US)
