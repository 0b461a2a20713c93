"""Compares two runs: which pod left in both, earlier, later, or in one only, and why they differ.

A reason is a row of docs/semantics.md#13 where the other run is Kubernetes' own controller, recorded or modelled.
"""

from __future__ import annotations

import collections
import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from evictstream.kit.replay.departures import Departure
from evictstream.kit.replay.evictions import EvictionsOfRun
from evictstream.kit.replay.upstream_reasons import Reason
from evictstream.kit.replay.upstream_run import UpstreamRun
from evictstream.models.instants import SECOND_US

TOLERANCE_US: Final = 1_000_000
"""Less apart is the same: what a busy API server takes for a delete."""


class DifferenceKind(enum.StrEnum):
    """How two runs differ about one departure of one pod, seen from the first run."""

    SAME = "Same"
    EARLIER = "Earlier"
    LATER = "Later"
    ONLY_HERE = "OnlyHere"
    ONLY_THERE = "OnlyThere"


class RunDifference(NamedTuple):
    """One departure in two runs; at least one of the two is there."""

    kind: DifferenceKind
    here: Departure | None
    there: Departure | None
    reason: Reason | None = None

    @property
    def first(self) -> Departure:
        """The departure that came first, or the only one: what led to the difference lies before it."""
        return min(one for one in (self.here, self.there) if one is not None)

    @property
    def seconds(self) -> float | None:
        """How much later it came here than there; None if it came in one only."""
        if self.here is None or self.there is None:
            return None
        return (self.here.at_us - self.there.at_us) / SECOND_US


NOT_DUE: Final = "the recording ended before its deadline"


def other_run_reason(difference: RunDifference, here: EvictionsOfRun, there: EvictionsOfRun) -> Reason:
    """Say why another run of the service did something else, from what both say about the pod."""
    ours, theirs = here.of_pod(difference.first), there.of_pod(difference.first)
    if not ours or not theirs:
        return Reason(None, f"{'here' if not ours else 'there'} the pod never had to leave")
    one, other = ours[-1], theirs[-1]
    for side, place in ((one, "here"), (other, "there")):
        if side.issued_at_us is None:
            return Reason(None, f"{place} it was cancelled: {side.cancelled_for}" if side.cancelled_for else NOT_DUE)
    if one.window_start_us != other.window_start_us:
        return Reason(None, "the toleration window starts at another time")
    if one.deadline_us != other.deadline_us:
        return Reason(None, f"another toleration time: {one.taint} here, {other.taint} there")
    return Reason(None, "the same deadline: one of the two was delayed, or decided later")


def upstream_reason(difference: RunDifference, upstream: UpstreamRun) -> Reason:
    """Say why Kubernetes' own controller, as modelled or as recorded, did something else than the service."""
    here, there = difference.here, difference.there
    if here is not None and (there is None or here.at_us < there.at_us):
        return upstream.service[here]
    assert there is not None  # noqa: S101 - one of the two is there
    return upstream.recorded[there] if there in upstream.recorded else upstream.departures[there]


def compare_runs(here: Iterable[Departure], there: Iterable[Departure]) -> Iterator[RunDifference]:
    """Pair departures pod by pod (cluster and UID), in order of their times; what is the same comes too."""
    pods: collections.defaultdict[tuple[str, str], tuple[list[Departure], list[Departure]]] = collections.defaultdict(
        lambda: ([], [])
    )
    for side, departures in enumerate((here, there)):
        for departure in departures:
            pods[departure.cluster, departure.pod_uid][side].append(departure)
    for ours, theirs in pods.values():
        yield from _paired(sorted(ours), sorted(theirs))


def _paired(here: Sequence[Departure], there: Sequence[Departure]) -> Iterator[RunDifference]:
    """Pair first what is the same, then the rest in order."""
    ours, theirs = list[Departure](), collections.deque[Departure]()
    others = collections.deque(there)
    for one in here:
        while others and others[0].at_us < one.at_us - TOLERANCE_US:
            theirs.append(others.popleft())
        if others and others[0].at_us <= one.at_us + TOLERANCE_US:
            yield RunDifference(DifferenceKind.SAME, one, others.popleft())
        else:
            ours.append(one)
    theirs += others
    for one in ours:
        if not theirs:
            yield RunDifference(DifferenceKind.ONLY_HERE, one, None)
            continue
        other = theirs.popleft()
        yield RunDifference(DifferenceKind.EARLIER if one.at_us < other.at_us else DifferenceKind.LATER, one, other)
    for other in theirs:
        yield RunDifference(DifferenceKind.ONLY_THERE, None, other)
