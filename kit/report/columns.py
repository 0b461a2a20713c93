"""A timeline as columns of numbers and texts, the form in which plotting libraries take it."""

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
"""Of a node's row, whose middle is 0: taints above, pods below."""

PODS_TOP, PODS_BOTTOM = 0.22, -0.46
WIDEST_LANE: Final = 0.12
NO_INSTANT: Final = float("nan")


class DrawnOutcome:
    """What became of an eviction, in the words of the page's legend."""

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
    """Evictions; `why` is the verdict, or what it was cancelled for, and `y` the middle of the bar."""

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
        nodes: names of rows, from below: zone, cluster and node.
        taints: in the order of the timeline's.
        evictions: in the order of the timeline's.
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
    """Return the finest width with which so much time has few bins enough."""
    wanted = span_us / SECOND_US / MOST_BINS
    return next((seconds for seconds in BINS_SECONDS if seconds >= wanted), BINS_SECONDS[-1])


def counted(instants_us: Iterable[int], seconds: int) -> list[tuple[float, int]]:
    """Count instants in bins; empty ones beside others are there, so that a line falls to zero between."""
    width_us = seconds * SECOND_US
    counts = Counter(at_us // width_us for at_us in instants_us)
    wanted = {number + step for number in counts for step in (-1, 0, 1)}
    return [(number * width_us / 1_000, counts[number]) for number in sorted(wanted)]


def outcome_of(one: ReplayedEviction) -> str:
    """Say what became of an eviction."""
    if one.issued_at_us is not None:
        return DrawnOutcome.EVICTED
    return DrawnOutcome.OPEN if one.cancelled_at_us is None else DrawnOutcome.CANCELLED


def _ms(at_us: int | None) -> float:
    return NO_INSTANT if at_us is None else at_us / 1_000


def _taints(timeline: Timeline, rows: dict[tuple[str, str], float]) -> TaintColumns:
    bars = timeline.taints
    tops, bottoms = [], []
    for one, (lane, count) in zip(bars, _lanes((one.cluster, one.node) for one in bars), strict=True):
        height = (TAINTS_TOP - TAINTS_BOTTOM) / min(count, 4)
        top = rows[one.cluster, one.node] + TAINTS_TOP - height * (lane % 4)
        tops.append(top)
        bottoms.append(top - height * 0.9)
    return {
        "node": [one.node for one in bars],
        "taint": [one.taint for one in bars],
        "start": [_ms(one.start_us) for one in bars],
        "end": [_ms(timeline.last_us if one.end_us is None else one.end_us) for one in bars],
        "top": tops,
        "bottom": bottoms,
    }


def _evictions(timeline: Timeline, rows: dict[tuple[str, str], float]) -> EvictionColumns:
    shown = timeline.evictions
    tops, heights = [], []
    for one, (lane, count) in zip(shown, _lanes((one.cluster, one.node) for one in shown), strict=True):
        height = min(WIDEST_LANE, (PODS_TOP - PODS_BOTTOM) / count)
        tops.append(rows[one.cluster, one.node] + PODS_TOP - height * lane)
        heights.append(height)
    ends_us = [_end_us(one, timeline.last_us) for one in shown]
    return {
        "pod": [one.pod for one in shown],
        "namespace": [one.namespace for one in shown],
        "node": [one.node for one in shown],
        "zone": [timeline.zones.get((one.cluster, one.node), "") for one in shown],
        "cluster": [one.cluster for one in shown],
        "taint": [one.taint for one in shown],
        "why": [_why(one) for one in shown],
        "outcome": [outcome_of(one) for one in shown],
        "start": [_ms(min(one.window_start_us, end_us)) for one, end_us in zip(shown, ends_us, strict=True)],
        "end": [_ms(end_us) for end_us in ends_us],
        "deadline": [_ms(one.deadline_us) for one in shown],
        "evicted": [_ms(one.issued_at_us) for one in shown],
        "cancelled": [_ms(one.cancelled_at_us if one.issued_at_us is None else None) for one in shown],
        "attempts": [one.attempts for one in shown],
        "moves": [one.moves for one in shown],
        "top": tops,
        "bottom": [top - height * 0.8 for top, height in zip(tops, heights, strict=True)],
        "y": [top - height * 0.4 for top, height in zip(tops, heights, strict=True)],
    }


def _end_us(one: ReplayedEviction, last_us: int) -> int:
    """Return when the eviction was issued or cancelled; of an open one its deadline, or the end of the recording."""
    if one.issued_at_us is not None:
        return one.issued_at_us
    return min(one.deadline_us, last_us) if one.cancelled_at_us is None else one.cancelled_at_us


def _why(one: ReplayedEviction) -> str:
    ended_for = one.cancelled_for if one.issued_at_us is None else None
    return str(one.verdict if ended_for is None else ended_for)


def _lanes(places: Iterable[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """Give each place its number among those of its row, and how many the row has."""
    listed = list(places)
    counts = Counter(listed)
    seen: defaultdict[tuple[str, str], int] = defaultdict(int)
    for place in listed:
        yield seen[place], counts[place]
        seen[place] += 1


def _bins(evictions: Iterable[ReplayedEviction], seconds: int) -> dict[str, list[float]]:
    series: dict[str, list[int]] = {"scheduled": [], "evicted": [], "cancelled": []}
    for one in evictions:
        if one.scheduled_at_us is not None:
            series["scheduled"].append(one.scheduled_at_us)
        if one.issued_at_us is not None:
            series["evicted"].append(one.issued_at_us)
        elif one.cancelled_at_us is not None:
            series["cancelled"].append(one.cancelled_at_us)
    counts = {name: dict(counted(instants, seconds)) for name, instants in series.items()}
    at = sorted(set().union(*counts.values()))
    return {"at": at} | {name: [float(count.get(one, 0)) for one in at] for name, count in counts.items()}
