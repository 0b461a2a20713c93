"""What policies would have made of a recording: one replay without them, one with them, and how they differ."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.comparison import DifferenceKind, RunDifference, compare_runs
from evictstream.kit.replay.evictions import EvictionsOfRun
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.upstream_reasons import Reason
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.messages.decision import decode_decision
from evictstream.models.messages.vocabulary import DecisionKind
from evictstream.models.steering.holds import policy_holder
from evictstream.models.steering.policies import NO_POLICIES, Policies
from evictstream.streams.settings import Settings


class ClauseEffect(NamedTuple):
    """What one clause of a policy has done to evictions that were issued in the end.

    Attributes:
        policy: its name.
        clause: which; of several that held an eviction the last one counts.
        delayed: evictions that it let wait.
        median_seconds: half of them were issued sooner after their deadline.
        longest_seconds: the longest time from a deadline to the `Evict`.
    """

    policy: str
    clause: str
    delayed: int
    median_seconds: float
    longest_seconds: float


class PolicyTrial(NamedTuple):
    """What came of it.

    Attributes:
        records: that were read.
        first_us: time of the first one, microseconds since 1970; None without any.
        last_us: time of the latest one.
        end_us: up to when the clock ran.
        without: evictions without the policies.
        governed: evictions with them.
        clauses: what each did.
        held_at_end: evictions that each policy still holds, by its name.
        same: evictions that were issued at the same time, within a second.
        differences: the others, by time; `here` is with the policies, `there` without them.
    """

    records: int
    first_us: int | None
    last_us: int
    end_us: int
    without: EvictionsOfRun
    governed: EvictionsOfRun
    clauses: tuple[ClauseEffect, ...]
    held_at_end: dict[str, int]
    same: int
    differences: tuple[RunDifference, ...]

    @property
    def spared(self) -> int:
        """Evictions that were not issued, as their reason went while a policy held them."""
        gone = (one for one in self.governed if one.issued_at_us is None and one.cancelled_at_us is not None)
        issued = {one.eviction_id for one in self.without if one.issued_at_us is not None}
        return sum(one.eviction_id in issued for one in gone)


class _Effects:
    """Collects from decisions which clause let which eviction wait, and how long."""

    def __init__(self) -> None:
        self._seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)

    def take(self, text: bytes) -> None:
        """Take in a decision of the service itself."""
        decision = decode_decision(text)
        if decision.decision is DecisionKind.ISSUED and decision.policy is not None:
            waited_us = instant_us(decision.cause.at) - instant_us(decision.deadline)
            self._seconds[decision.policy.name, decision.policy.clause].append(waited_us / SECOND_US)

    def clauses(self) -> Iterable[ClauseEffect]:
        """Give them by policy and clause."""
        for (policy, clause), seconds in sorted(self._seconds.items()):
            median_seconds, longest_seconds = statistics.median(seconds), max(seconds)
            yield ClauseEffect(
                policy=policy,
                clause=clause,
                delayed=len(seconds),
                median_seconds=median_seconds,
                longest_seconds=longest_seconds,
            )


def try_policies(
    settings: Settings,
    policies: Policies,
    source: Callable[[], Iterable[RecordedRecord]],
    *,
    partitions: int,
    plays_executor: bool,
    run_on_seconds: float = 0.0,
) -> PolicyTrial:
    """Replay a recording twice.

    Args:
        settings: whose rules and limits count.
        policies: stand from the first record on; buckets of limits begin empty there.
        source: gives the recording from its beginning, each time it is called.
        partitions: of the recording.
        plays_executor: each eviction succeeds and its pod goes.
        run_on_seconds: how long the clock runs after the last record.
    """
    effects = _Effects()

    def run(standing: Policies) -> tuple[Replay, EvictionsOfRun]:
        replay = Replay(settings, partitions=partitions, plays_executor=plays_executor, policies=standing)
        evictions = EvictionsOfRun()
        for messages in (replay.run(source()), replay.run_on(run_on_seconds)):
            for message in messages:
                if message.topic == "commands":
                    evictions.take(message.value)
                elif message.topic == "decisions":
                    effects.take(message.value)
        return replay, evictions

    _, without = run(NO_POLICIES)
    replay, governed = run(policies)
    pairs = list(compare_runs(governed.departures(), without.departures()))
    differing = (one for one in pairs if one.kind is not DifferenceKind.SAME)
    differences = [one._replace(reason=_reason(one, governed, without)) for one in differing]
    held = replay.held_back()
    return PolicyTrial(
        records=replay.records,
        first_us=replay.first_us,
        last_us=replay.last_us,
        end_us=replay.last_us + int(run_on_seconds * SECOND_US),
        without=without,
        governed=governed,
        clauses=tuple(effects.clauses()),
        held_at_end={name: count for name in policies.standing if (count := held[policy_holder(name)])},
        same=len(pairs) - len(differences),
        differences=tuple(sorted(differences, key=lambda one: one.first)),
    )


def _reason(difference: RunDifference, governed: EvictionsOfRun, without: EvictionsOfRun) -> Reason:
    """Say what became of an eviction that was issued at another time, or in one of the runs only."""
    ours, theirs = governed.of_pod(difference.first), without.of_pod(difference.first)
    if difference.there is None:
        return Reason(None, "without them the pod had left before")
    if difference.here is None:
        ends = [one.cancelled_for for one in ours if one.issued_at_us is None and one.cancelled_for is not None]
        return Reason(None, f"its reason went while it waited: {ends[-1]}" if ends else "it waits at the end")
    if ours[-1].window_start_us != theirs[-1].window_start_us:
        return Reason(None, "its reason went while it waited, and came again")
    return Reason(None, "it waited")
