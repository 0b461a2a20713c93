"""What brakes and policies have done in a replay: which clause let which eviction wait, how long, and what was spared.

Collected from decisions, since an eviction that is due at once has no command before its `Evict`.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from evictstream.kit.replay.comparison import DifferenceKind, RunDifference
from evictstream.kit.replay.upstream_reasons import Reason
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.messages.decision import decode_decision
from evictstream.models.messages.vocabulary import DecisionKind, Verdict


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


class HeldEffects:
    """Takes the decisions of a run in their order.

    Attributes:
        ended_for: why the latest eviction of a pod ended that was not issued, by cluster and UID of the pod.
        waited_for: what held the latest eviction of a pod until it was issued, in the same way.
    """

    def __init__(self) -> None:
        self.ended_for: dict[tuple[str, str], Verdict] = {}
        self.waited_for: dict[tuple[str, str], str] = {}
        self._owed_at_end: set[tuple[str, str]] = set()
        self._seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)

    def take(self, text: bytes) -> None:
        """Take in a decision of the service itself."""
        decision = decode_decision(text)
        pod = decision.cluster, decision.pod_uid
        self.ended_for.pop(pod, None)
        self._owed_at_end.discard(pod)
        if decision.decision is DecisionKind.CANCELLED and not decision.attempt:
            self.ended_for[pod] = decision.verdict
            if instant_us(decision.deadline) <= instant_us(decision.cause.at):
                self._owed_at_end.add(pod)
        if decision.decision is not DecisionKind.ISSUED:
            return
        policy = decision.policy
        if policy is not None:
            waited_us = instant_us(decision.cause.at) - instant_us(decision.deadline)
            self._seconds[policy.name, policy.clause].append(waited_us / SECOND_US)
            self.waited_for[pod] = f"policy {policy.name} ({policy.clause})"
        elif decision.held_by is not None:
            self.waited_for[pod] = f"brake {decision.held_by}"

    def clauses(self) -> Iterable[ClauseEffect]:
        """Give the effects by policy and clause."""
        for (policy, clause), seconds in sorted(self._seconds.items()):
            median_seconds, longest_seconds = statistics.median(seconds), max(seconds)
            yield ClauseEffect(
                policy=policy,
                clause=clause,
                delayed=len(seconds),
                median_seconds=median_seconds,
                longest_seconds=longest_seconds,
            )

    def reason(self, difference: RunDifference, held: Collection[tuple[str, str]]) -> Reason | None:
        """Say how a brake or policy of this run explains what it did later than another one, or not at all.

        `held` are the pods whose evictions are held at its end, by cluster and UID.
        """
        pod = difference.first.cluster, difference.first.pod_uid
        if difference.here is None and pod in held:
            return Reason(None, "it waits at the end")
        if difference.here is None and pod in self._owed_at_end:
            return Reason(None, f"its reason went while it waited: {self.ended_for[pod]}")
        if difference.kind is DifferenceKind.LATER and pod in self.waited_for:
            return Reason(None, f"it waited for {self.waited_for[pod]}")
        return None
