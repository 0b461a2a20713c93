"""A timeline as columns of numbers and texts, as plotting libraries need it."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypedDict

from evictstream.models.instants import SECOND_US

if TYPE_CHECKING:
    from evictstream.kit.replay.evictions import ReplayedEviction
    from evictstream.kit.report.timeline import Timeline

MOST_BINS: Final = 240
BINS_SECONDS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 21_600, 86_400)

TAINTS_TOP, TAINTS_BOTTOM = 0.46, 0.26
"""Positions in a node's row, whose middle is 0: taints above, pods below."""

PODS_TOP, PODS_BOTTOM = 0.22, -0.46
WIDEST_LANE: Final = 0.12
NO_INSTANT: Final = float("nan")


class DrawnOutcome:
    """The outcome of an eviction, in the words of the page's legend."""

    EVICTED = "evicted"
    CANCELLED = "cancelled"
    OPEN = "not due yet"
    ALL = (EVICTED, CANCELLED, OPEN)


class BarColumns(TypedDict):
    """Corners of bars: from when to when, and where in the rows."""

    start: list[float]
    end: list[float]
    top: list[float]
    bottom: list[float]


class TaintColumns(BarColumns):
    """Taints on nodes."""

    node: list[str]
    taint: list[str]


class EvictionColumns(BarColumns):
    """Evictions; `why` is the verdict, or the reason of its cancellation, and `y` the middle of the bar."""

    pod: list[str]
    namespace: list[str]
    node: list[str]
    zone: list[str]
    cluster: list[str]
    taint: list[str]
    why: list[str]
    outcome: list[str]
    deadline: list[float]
    evicted: list[float]
    cancelled: list[float]
    attempts: list[int]
    moves: list[int]
    y: list[float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Columns by name; instants are milliseconds since 1970, rows of nodes count upwards from 0.

    Attributes:
        nodes: names of the rows from the bottom: zone, cluster and node.
        taints: in the order of the timeline.
        evictions: in the order of the timeline.
        bins: `at`, `scheduled`, `evicted`, `cancelled`.
        bin_seconds: width of a bin.
    """

    nodes: list[tuple[str, str, str]]
    taints: TaintColumns
    evictions: EvictionColumns
    bins: dict[str, list[float]]
    bin_seconds: int


def drawn(timeline: Timeline) -> Drawn:
    """Lay a timeline out: the first node on top, each pod in a lane of its node's row."""
    nodes = timeline.nodes()[::-1]
    rows = {(cluster, node): float(row) for row, (_, cluster, node) in enumerate(nodes)}
    seconds = bin_seconds(timeline.last_us - timeline.first_us)
    return Drawn(
        nodes=nodes,
        taints=_taints(timeline, rows),
        evictions=_evictions(timeline, rows),
        bins=_bins(timeline.evictions, seconds),
        bin_seconds=seconds,
    )


def bin_seconds(span_us: int) -> int:
    """Return the narrowest bin width that gives at most `MOST_BINS` bins."""
    least = span_us / SECOND_US / MOST_BINS
    return next((seconds for seconds in BINS_SECONDS if seconds >= least), BINS_SECONDS[-1])


def counted(instants_us: Iterable[int], seconds: int) -> list[tuple[float, int]]:
    """Count instants in bins, with an empty bin before and after each run, so that a line falls to zero."""
    width_us = seconds * SECOND_US
    counts = Counter(at_us // width_us for at_us in instants_us)
    numbers = {number + step for number in counts for step in (-1, 0, 1)}
    return [(number * width_us / 1_000, counts[number]) for number in sorted(numbers)]


def outcome_of(eviction: ReplayedEviction) -> str:
    """Give the outcome of an eviction."""
    if eviction.issued_at_us is not None:
        return DrawnOutcome.EVICTED
    return DrawnOutcome.OPEN if eviction.cancelled_at_us is None else DrawnOutcome.CANCELLED


def _ms(at_us: int | None) -> float:
    return NO_INSTANT if at_us is None else at_us / 1_000


def _taints(timeline: Timeline, rows: dict[tuple[str, str], float]) -> TaintColumns:
    bars = timeline.taints
    tops, bottoms = [], []
    for bar, (lane, count) in zip(bars, _lanes((bar.cluster, bar.node) for bar in bars), strict=True):
        height = (TAINTS_TOP - TAINTS_BOTTOM) / min(count, 4)
        top = rows[bar.cluster, bar.node] + TAINTS_TOP - height * (lane % 4)
        tops.append(top)
        bottoms.append(top - height * 0.9)
    return {
        "node": [bar.node for bar in bars],
        "taint": [bar.taint for bar in bars],
        "start": [_ms(bar.start_us) for bar in bars],
        "end": [_ms(timeline.last_us if bar.end_us is None else bar.end_us) for bar in bars],
        "top": tops,
        "bottom": bottoms,
    }


def _evictions(timeline: Timeline, rows: dict[tuple[str, str], float]) -> EvictionColumns:
    evictions = timeline.evictions
    tops, heights = [], []
    for eviction, (lane, count) in zip(
        evictions, _lanes((eviction.cluster, eviction.node) for eviction in evictions), strict=True
    ):
        height = min(WIDEST_LANE, (PODS_TOP - PODS_BOTTOM) / count)
        tops.append(rows[eviction.cluster, eviction.node] + PODS_TOP - height * lane)
        heights.append(height)
    ends_us = [_end_us(eviction, timeline.last_us) for eviction in evictions]
    return {
        "pod": [eviction.pod for eviction in evictions],
        "namespace": [eviction.namespace for eviction in evictions],
        "node": [eviction.node for eviction in evictions],
        "zone": [timeline.zones.get((eviction.cluster, eviction.node), "") for eviction in evictions],
        "cluster": [eviction.cluster for eviction in evictions],
        "taint": [eviction.taint for eviction in evictions],
        "why": [_why(eviction) for eviction in evictions],
        "outcome": [outcome_of(eviction) for eviction in evictions],
        "start": [
            _ms(min(eviction.window_start_us, end_us)) for eviction, end_us in zip(evictions, ends_us, strict=True)
        ],
        "end": [_ms(end_us) for end_us in ends_us],
        "deadline": [_ms(eviction.deadline_us) for eviction in evictions],
        "evicted": [_ms(eviction.issued_at_us) for eviction in evictions],
        "cancelled": [
            _ms(eviction.cancelled_at_us if eviction.issued_at_us is None else None) for eviction in evictions
        ],
        "attempts": [eviction.attempts for eviction in evictions],
        "moves": [eviction.moves for eviction in evictions],
        "top": tops,
        "bottom": [top - height * 0.8 for top, height in zip(tops, heights, strict=True)],
        "y": [top - height * 0.4 for top, height in zip(tops, heights, strict=True)],
    }


def _end_us(eviction: ReplayedEviction, last_us: int) -> int:
    """Return when the eviction was issued or cancelled; if it is open, its deadline or the end of the recording."""
    if eviction.issued_at_us is not None:
        return eviction.issued_at_us
    return min(eviction.deadline_us, last_us) if eviction.cancelled_at_us is None else eviction.cancelled_at_us


def _why(eviction: ReplayedEviction) -> str:
    reason = eviction.cancelled_for if eviction.issued_at_us is None else None
    return str(eviction.verdict if reason is None else reason)


def _lanes(places: Iterable[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """Give each bar its number among those of its row, and the count of the row."""
    listed = list(places)
    counts = Counter(listed)
    seen: defaultdict[tuple[str, str], int] = defaultdict(int)
    for place in listed:
        yield seen[place], counts[place]
        seen[place] += 1


def _bins(evictions: Iterable[ReplayedEviction], seconds: int) -> dict[str, list[float]]:
    series: dict[str, list[int]] = {"scheduled": [], "evicted": [], "cancelled": []}
    for eviction in evictions:
        if eviction.scheduled_at_us is not None:
            series["scheduled"].append(eviction.scheduled_at_us)
        if eviction.issued_at_us is not None:
            series["evicted"].append(eviction.issued_at_us)
        elif eviction.cancelled_at_us is not None:
            series["cancelled"].append(eviction.cancelled_at_us)
    counts = {name: dict(counted(instants, seconds)) for name, instants in series.items()}
    at = sorted(set().union(*counts.values()))
    return {"at": at} | {name: [float(count.get(at_ms, 0)) for at_ms in at] for name, count in counts.items()}
