"""What policies would have made of a recording: one replay without them, one with them, and how they differ.

Brakes and policies that the recording holds stand in both, but for those that the tried ones replace by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.comparison import DifferenceKind, RunDifference, compare_runs
from evictstream.kit.replay.evictions import EvictionsOfRun
from evictstream.kit.replay.held_effects import ClauseEffect, HeldEffects
from evictstream.kit.replay.recorded_steering import RecordedSteering
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.upstream_reasons import Reason
from evictstream.kit.replay.virtual_partition import FoundIncident
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.vocabulary import Verdict
from evictstream.models.steering.holds import policy_holder
from evictstream.models.steering.policies import Policies
from evictstream.streams.settings import Settings


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
        spared: evictions that were not issued, as their reason went while they waited.
        held_at_end: evictions that each policy still holds, by its name.
        incidents: what guards would have held, also what ended by itself.
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
    spared: int
    held_at_end: dict[str, int]
    same: int
    differences: tuple[RunDifference, ...]
    incidents: tuple[FoundIncident, ...] = ()


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

    def run(steering: RecordedSteering, effects: HeldEffects | None = None) -> tuple[Replay, EvictionsOfRun]:
        replay = Replay(settings, partitions=partitions, plays_executor=plays_executor, steering=steering)
        evictions = EvictionsOfRun()
        for messages in (replay.run(source()), replay.run_on(run_on_seconds)):
            for message in messages:
                if message.topic == "commands":
                    evictions.take(message.value)
                elif effects is not None and message.topic == "decisions":
                    effects.take(message.value)
        return replay, evictions

    _, without = run(RecordedSteering())
    effects = HeldEffects()
    replay, governed = run(RecordedSteering(policies), effects)
    pairs = list(compare_runs(governed.departures(), without.departures()))
    differing = (one for one in pairs if one.kind is not DifferenceKind.SAME)
    differences = [one._replace(reason=_reason(one, governed, without, effects.ended_for)) for one in differing]
    held = replay.held_back()
    return PolicyTrial(
        records=replay.records,
        first_us=replay.first_us,
        last_us=replay.last_us,
        end_us=replay.last_us + int(run_on_seconds * SECOND_US),
        without=without,
        governed=governed,
        clauses=tuple(effects.clauses()),
        spared=sum(one.here is None and _pod(one) in effects.ended_for for one in differences),
        held_at_end={name: count for name in policies.standing if (count := held[policy_holder(name)])},
        same=len(pairs) - len(differences),
        differences=tuple(sorted(differences, key=lambda one: one.first)),
        incidents=tuple(replay.incidents()),
    )


def _pod(difference: RunDifference) -> tuple[str, str]:
    return difference.first.cluster, difference.first.pod_uid


def _reason(
    difference: RunDifference,
    governed: EvictionsOfRun,
    without: EvictionsOfRun,
    ended_for: Mapping[tuple[str, str], Verdict],
) -> Reason:
    """Say what became of an eviction that was issued at another time, or in one of the runs only."""
    ours, theirs = governed.of_pod(difference.first), without.of_pod(difference.first)
    if difference.there is None:
        return Reason(None, "without them the pod had left before")
    if difference.here is None:
        verdict = ended_for.get(_pod(difference))
        return Reason(None, f"its reason went while it waited: {verdict}" if verdict else "it waits at the end")
    if ours[-1].window_start_us != theirs[-1].window_start_us:
        return Reason(None, "its reason went while it waited, and came again")
    return Reason(None, "it waited")
