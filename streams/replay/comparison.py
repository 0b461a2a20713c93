"""Two runs beside one another: which pod left in both, earlier, later, or in one only, and why they differ.

A reason is a row of docs/semantics.md#13 where the other run is Kubernetes' own controller, recorded or modelled.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from evictstream.models.instants import MICROSECONDS_PER_SECOND
from evictstream.streams.replay.departures import FINISHED, Circumstances, Departure
from evictstream.streams.replay.evictions import EvictionsOfRun

TOLERANCE_US: Final = 1_000_000
"""Less apart is the same: what a busy API server takes for a delete."""


class DifferenceKind(enum.StrEnum):
    """How two runs differ about one departure of one pod, seen from the first run."""

    SAME = "Same"
    EARLIER = "Earlier"
    LATER = "Later"
    ONLY_HERE = "OnlyHere"
    ONLY_THERE = "OnlyThere"


class Reason(NamedTuple):
    """Why they differ; `row` is one of docs/semantics.md#13, None where no row says it."""

    row: int | None
    text: str


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
        return (self.here.at_us - self.there.at_us) / MICROSECONDS_PER_SECOND


ANOTHER_VALUE: Final = "a value of a taint begins a window, and moved no timer there"
NOT_DUE: Final = "the recording ended before its deadline"
UNEXPLAINED: Final = Reason(None, "no reason is known")

_POD_ROWS: Final[tuple[tuple[int, Callable[[Circumstances], bool], str], ...]] = (
    (13, lambda it: it.pod is not None and it.pod.is_mirror, "a mirror pod"),
    (12, lambda it: it.pod is not None and it.pod.phase in FINISHED, "the pod had finished"),
    (14, lambda it: it.pod is not None and it.pod.is_terminating, "the pod was terminating already"),
    (33, lambda it: it.overflows, "its toleration has more seconds than upstream can count"),
    (5, lambda it: it.is_edited, "its tolerations were edited"),
)
"""What is about the pod, in order of weight."""

_NODE_ROWS: Final[dict[DifferenceKind, tuple[tuple[int, Callable[[Circumstances], bool], str], ...]]] = {
    DifferenceKind.ONLY_THERE: (
        (37, lambda it: it.is_revalued, ANOTHER_VALUE),
        (9, lambda it: it.node_is_gone, "its node was deleted, the timer went on"),
        (8, lambda it: it.is_second and not it.taints, "the timer was that of an earlier pod of its name"),
        (4, lambda it: bool(it.lost and it.taints), "the taint that decided was gone, its timer was kept"),
        (32, lambda it: bool(it.lost), "the taint was gone, an eviction that had fired was not taken back"),
    ),
    DifferenceKind.LATER: (
        (37, lambda it: it.is_revalued, ANOTHER_VALUE),
        (4, lambda it: bool(it.lost), "the taint that decided there was gone, its timer was kept"),
        (8, lambda it: it.is_second, "the timer was that of an earlier pod of its name"),
    ),
    DifferenceKind.EARLIER: (
        (37, lambda it: it.is_revalued, ANOTHER_VALUE),
        (6, lambda it: bool(it.gained), "a later taint leaves it less time"),
        (3, lambda it: it.is_second, "the timer of an earlier pod of its name was in the way"),
        (31, lambda it: bool(it.lost), "the window began anew when the taint came back"),
    ),
    DifferenceKind.ONLY_HERE: (
        (37, lambda it: it.is_revalued, ANOTHER_VALUE),
        (3, lambda it: it.is_second, "the timer of an earlier pod of its name was in the way"),
        (6, lambda it: bool(it.gained), "a later taint leaves it less time"),
    ),
}
"""What is about its node."""


def upstream_reason(kind: DifferenceKind, it: Circumstances) -> Reason:
    """Say why Kubernetes' own controller did something else, from how things stood right before."""
    for row, holds, text in (*_POD_ROWS, *_NODE_ROWS[kind]):
        if holds(it):
            return Reason(row, text)
    return UNEXPLAINED


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
        return Reason(None, "pod and taint are together since another instant")
    if one.deadline_us != other.deadline_us:
        return Reason(None, f"another time to stay: {one.taint} here, {other.taint} there")
    return Reason(None, "the same deadline: a closed gate, a take-over or a backlog held it")


def compare(here: Iterable[Departure], there: Iterable[Departure]) -> Iterator[RunDifference]:
    """Pair departures pod by pod (cluster and UID), in order of their times; what is the same comes too."""
    pods: defaultdict[tuple[str, str], tuple[list[Departure], list[Departure]]] = defaultdict(lambda: ([], []))
    for side, departures in enumerate((here, there)):
        for departure in departures:
            pods[departure.cluster, departure.pod_uid][side].append(departure)
    for ours, theirs in pods.values():
        yield from _paired(sorted(ours), sorted(theirs))


def _paired(here: Sequence[Departure], there: Sequence[Departure]) -> Iterator[RunDifference]:
    both = min(len(here), len(there))
    for one, other in zip(here, there, strict=False):
        apart_us = one.at_us - other.at_us
        kind = DifferenceKind.SAME
        if abs(apart_us) > TOLERANCE_US:
            kind = DifferenceKind.EARLIER if apart_us < 0 else DifferenceKind.LATER
        yield RunDifference(kind, one, other)
    for one in here[both:]:
        yield RunDifference(DifferenceKind.ONLY_HERE, one, None)
    for other in there[both:]:
        yield RunDifference(DifferenceKind.ONLY_THERE, None, other)
