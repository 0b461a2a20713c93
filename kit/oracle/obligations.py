"""How far a search has come, and what is owed at such a moment, and since when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evictstream.kit.oracle.attempts import HOLD, AttemptWait, held_us, nobody_acts
from evictstream.kit.oracle.commands import SeenCommand
from evictstream.kit.oracle.decision import MayStay, MustLeave, expected_decision
from evictstream.kit.oracle.guards import NO_GUARDS, UNGUARDED_POD, GuardLog, Issue, PodGuards
from evictstream.kit.oracle.histories import HeardNode, HeardPod
from evictstream.kit.oracle.limits import OracleLimits, Promptness
from evictstream.kit.oracle.reading import Statement
from evictstream.kit.oracle.standing_brakes import READ_WITHIN_US, UNBRAKED_POD, BrakeSpell, PodBrakes


class OpenEviction(NamedTuple):
    """An eviction that is open.

    Attributes:
        eviction_id: from the commands; empty before the first one.
        due: what it is open for.
        waiting: for what, once it was issued; None before.
        is_done: it was issued and the pod left: nothing more happens.
        owed_us: before it was issued, and if promptness is asked for: since when it has been owed without a break.
    """

    eviction_id: str
    due: MustLeave
    attempt: int = 0
    waiting: AttemptWait | None = None
    is_done: bool = False
    owed_us: int = 0


class PodMoment(NamedTuple):
    """How far everything was taken in, and what is open then."""

    node: int
    pod: int
    results: int
    commands_taken: int
    open: OpenEviction | None


@dataclass(frozen=True, slots=True)
class PodLog:
    """What is known about one pod after a run."""

    nodes: Sequence[HeardNode]
    pods: Sequence[HeardPod]
    results: Sequence[Statement]
    commands: Sequence[SeenCommand]
    brakes: PodBrakes = UNBRAKED_POD
    guards: PodGuards = UNGUARDED_POD


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What holds for all pods of a node.

    Attributes:
        ended_at_us: when the run ended.
        early_us: how much before its deadline an eviction may be issued.
        silent_at_end: the cluster's feed was silent when the run ended, so evictions had to wait.
        promptness: how soon everything had to happen; None asks only that it happened by the end.
        cluster: its name.
        brakes: the spells of each brake.
        guards: the policies that guard.
    """

    limits: OracleLimits
    ended_at_us: int
    early_us: int
    silent_at_end: bool
    promptness: Promptness | None
    cluster: str = ""
    brakes: Sequence[Sequence[BrakeSpell]] = ()
    guards: GuardLog = NO_GUARDS


class Obligations:
    """Answers for one pod; a moment says how far everything was taken in."""

    def __init__(self, log: PodLog, facts: RunFacts) -> None:
        self._nodes, self._pods, self._results, self._brakes = log.nodes, log.pods, log.results, log.brakes
        self._guards = log.guards
        self._facts, self._promptness = facts, facts.promptness
        self._is_built_in_on = facts.limits.is_built_in_on(facts.cluster)
        self._decisions: dict[tuple[int, int], MustLeave | MayStay] = {}

    def decide(self, moment: PodMoment) -> MustLeave | MayStay:
        """Decide about the pod, once for each pair of states: many moments share one."""
        where = (moment.node, moment.pod)
        if where not in self._decisions:
            self._decisions[where] = expected_decision(
                self._nodes[moment.node],
                self._pods[moment.pod],
                is_built_in_on=self._is_built_in_on,
            )
        return self._decisions[where]

    def is_long_ago(self, at_us: int) -> bool:
        """Whether what began then has to have had its effect by the end of the run."""
        if self._promptness is not None:
            return self._promptness.is_late(at_us, self._facts.ended_at_us)
        return at_us < self._facts.ended_at_us - self._facts.limits.slack_us

    def is_owed_for_long(self, moment: PodMoment, due: MustLeave, since_us: int) -> bool:
        """Whether what is owed since then has to have been issued by the end of the run, held or not."""
        return self.is_long_ago(self.free_since_us(moment, due, since_us, self._facts.ended_at_us))

    def free_since_us(self, moment: PodMoment, due: MustLeave, since_us: int, until_us: int) -> int:
        """Give since when it would be owed, had nothing held it between two instants."""
        guarded = self._guards.stretches(due.taint, self._taint_since_us(moment, due))
        return since_us + self._brakes.lost_us(due.taint, since_us, until_us, guarded)

    def _taint_since_us(self, moment: PodMoment, due: MustLeave) -> int:
        """Since when the taint is on the node that is the reason."""
        return max((taint.since_us for taint in self._nodes[moment.node].taints if taint.key == due.taint), default=0)

    def is_held(self, moment: PodMoment, due: MustLeave, opened: OpenEviction, command: SeenCommand) -> bool:
        """Whether a brake or a guard holds it, whatever the worker that issued the command may have read."""
        if opened.waiting is None:
            due_us = self.owed_us(moment, due)
        else:
            due_us = opened.waiting.issued_at_us if opened.waiting.outcome == HOLD else opened.waiting.latest_us
        early_us = self._facts.early_us
        issue = Issue(
            taint=due.taint,
            since_us=self._taint_since_us(moment, due),
            due_us=due_us,
            issued_us=command.issued_at_us,
            at_us=command.at_us,
            offset=self._nodes[moment.node].offset,
        )
        return self._guards.hold(issue) or self._brakes.hold(
            due.taint,
            due_us + early_us,
            from_us=command.issued_at_us - READ_WITHIN_US - early_us,
            to_us=command.issued_at_us + early_us,
        )

    def unheard_us(self, moment: PodMoment) -> list[int]:
        """Give when the next record of each history was appended."""
        instants = [
            states[place + 1].append_at_us
            for states, place in ((self._nodes, moment.node), (self._pods, moment.pod))
            if place + 1 < len(states)
        ]
        if moment.results < len(self._results):
            instants.append(self._results[moment.results].record.append_at_us)
        return instants

    def _known_us(self, moment: PodMoment) -> int:
        """When the last of the records had been appended that made node and pod what they are."""
        return max(self._nodes[moment.node].append_at_us, self._pods[moment.pod].append_at_us)

    def owed_us(self, moment: PodMoment, due: MustLeave) -> int:
        """From when on it was owed: from the deadline, but not before all of its reasons had been appended."""
        known_us = self._known_us(moment)
        return known_us if due.is_untolerated else max(due.deadline_us, known_us)

    def still_owed_us(self, moment: PodMoment, due: MustLeave, before: OpenEviction | None) -> int:
        """From when on it was owed without a break: a change that leaves it owed grants no time."""
        if self._promptness is None:
            return 0
        owed_us, known_us = self.owed_us(moment, due), self._known_us(moment)
        if before is not None and before.waiting is None and before.owed_us <= known_us == owed_us:
            return before.owed_us
        return owed_us

    def next_owed_us(self, moment: PodMoment, due: MustLeave, opened: OpenEviction) -> int:
        """From when on the next attempt was owed; the end of the run if it was not."""
        if opened.waiting is None:
            return opened.owed_us
        if self.is_only_observed(moment, opened.waiting):
            return self._facts.ended_at_us
        heard_us = self._results[moment.results - 1].record.append_at_us if moment.results else 0
        latest_us = max(opened.waiting.latest_us, max(self.held_us(moment, opened.waiting), default=0))
        return max(self.owed_us(moment, due), latest_us, heard_us)

    def held_us(self, moment: PodMoment, wait: AttemptWait) -> list[int]:
        """Say until when each report so far puts the next attempt off; the newest counts, any may have set a timer."""
        return [held_us(wait, said, self._facts.limits) for said in self._reports(moment)]

    def is_only_observed(self, moment: PodMoment, wait: AttemptWait) -> bool:
        """Say whether the attempt was observed, and is repeated only once an executor that acts has reported."""
        return nobody_acts(wait, self._reports(moment))

    def _reports(self, moment: PodMoment) -> Iterator[Statement]:
        return (said for said in self._results[: moment.results] if said.kind == "Report")
