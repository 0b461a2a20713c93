"""Counts of what a worker has done since it started; `streams.worker.metrics` shows them.

All partitions of a worker share them, so no count shrinks when a partition moves to another worker. Counts are of
steps: a step whose transaction was lost is repeated and counted again.
"""

from __future__ import annotations

import collections
import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evictstream.models.messages.vocabulary import DecisionKind, Verdict
from evictstream.streams.engine.core.histogram import Histogram

if TYPE_CHECKING:
    from evictstream.models.messages.command import EvictionCommand
    from evictstream.models.messages.decision import DecisionRecord

# Usual lateness is below 25 ms. A timer that fires more than a minute late has waited behind a gate or for a worker.
LATENESS_BOUNDS_SECONDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0,
)  # fmt: skip
# The bounds of Kubernetes' own histogram (semantics.md 6.11), so that one dashboard can show both.
DELETION_BOUNDS_SECONDS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 120.0, 180.0, 240.0)

OPENING = frozenset({DecisionKind.SCHEDULED._value_, DecisionKind.DUE._value_})
CLOSING = frozenset({DecisionKind.CANCELLED._value_, DecisionKind.COMPLETED._value_})
# Verdicts that show a deletion: the pod terminates, is gone, or its name has another pod. A finished pod has none.
DELETED = frozenset({Verdict.POD_TERMINATING, Verdict.POD_GONE, Verdict.POD_REPLACED})


class WorkerCounters:
    """Counts of one worker.

    Attributes:
        events: what became of records, by input topic and outcome.
        dead_letters: records that could not be read or decided, by reason.
        unlisted: known objects that a complete listing did not hold, by outcome: `removed`, or `newer` than the
            listing.
        unreadable_annotations: events of pods with an annotation of tolerations that counts as absent.
        commands: commands by action.
        decisions: decisions by kind and verdict.
        results: results of executors that belonged to an open attempt, by outcome.
        lateness: seconds from when a pod has to leave (its deadline, or the later edit that made it known) to the
            decision to issue its eviction, for first attempts.
        deletion: seconds from the same to the deletion seen on the input (semantics.md 13 row 18).
    """

    def __init__(self) -> None:
        self.events: dict[str, collections.Counter[str]] = {}
        self.dead_letters: collections.Counter[str] = collections.Counter()
        self.unlisted: collections.Counter[str] = collections.Counter()
        self.unreadable_annotations = 0
        self.commands: collections.Counter[str] = collections.Counter()
        self.decisions: collections.Counter[tuple[str, str]] = collections.Counter()
        self.results: collections.Counter[str] = collections.Counter()
        self.lateness = Histogram(LATENESS_BOUNDS_SECONDS)
        self.deletion = Histogram(DELETION_BOUNDS_SECONDS)

    def of_input(self, topic: str) -> collections.Counter[str]:
        """Return the counter of one input topic. The fast path is too fast to call it for each record."""
        counts = self.events.get(topic)
        if counts is None:
            counts = self.events[topic] = collections.Counter()
        return counts

    def count_decisions(
        self,
        commands: Sequence[EvictionCommand],
        decisions: Sequence[DecisionRecord],
        pending: collections.Counter[str],
    ) -> None:
        """Count commands and decisions of a step, and update `pending`, its partition's open evictions by cluster."""
        for command in commands:
            self.commands[command.action._value_] += 1
        for decision in decisions:
            # Members of an enum hash slowly, their values do not.
            kind = decision.decision._value_
            self.decisions[kind, decision.verdict._value_] += 1
            if kind in OPENING:
                pending[decision.cluster] += 1
            elif kind in CLOSING:
                pending[decision.cluster] = max(0, pending[decision.cluster] - 1)
                if decision.decision is DecisionKind.COMPLETED and decision.verdict in DELETED:
                    self.deletion.observe(seconds_late(decision.known_at or decision.deadline, decision.cause.at))
            elif decision.decision is DecisionKind.REPORTED and (result := decision.result) is not None:
                self.results[result._value_] += 1


def seconds_late(owed: str, at: str) -> float:
    """Seconds from when a pod had to leave to an instant, both RFC 3339; 0 if a feed's clock puts the instant first."""
    return max(0.0, (dt.datetime.fromisoformat(at) - dt.datetime.fromisoformat(owed)).total_seconds())
