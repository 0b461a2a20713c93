"""The timeline as a still picture for documents, drawn by Matplotlib: SVG where it may be scaled, PNG elsewhere."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.collections import PolyCollection
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from evictstream.kit.report.columns import BarColumns, Drawn, DrawnOutcome, drawn
from evictstream.kit.report.palette import OUTCOME_COLOURS, SCHEDULED, TAINT
from evictstream.streams.printing import one_line

if TYPE_CHECKING:
    from pathlib import Path

    from evictstream.kit.report.timeline import Timeline

MOST_NODES: Final = 120
"""Rows that can be read on a page; of more nodes, those with most evictions are drawn."""

WIDTH_INCHES: Final = 11.0
ROW_INCHES: Final = 0.28
DOTS_PER_INCH: Final = 150


def write_picture(timeline: Timeline, path: Path, *, title: str) -> None:
    """Draw the timeline, and below it evictions over time, into a file whose name says the format.

    Raises:
        OSError: it cannot be written.
    """
    shown = drawn(timeline)
    rows = _chosen(shown)
    height = max(3.0, len(rows) * ROW_INCHES + 2.6)
    # Texts stay texts and ids stay the same, so a picture changes in a repository only where the incident does. A name
    # with dollars is no formula.
    shape = {"svg.fonttype": "none", "svg.hashsalt": "evictstream", "font.size": 9, "text.parse_math": False}
    with mpl.rc_context(shape):
        made = Figure(figsize=(WIDTH_INCHES, height), layout="constrained")
        nodes, counts = made.subplots(2, 1, sharex=True, height_ratios=[max(1.5, len(rows) * ROW_INCHES), 1.2])
        _draw_nodes(nodes, shown, rows)
        _draw_counts(counts, shown)
        left_out = len(shown.nodes) - len(rows)
        title = one_line(title)
        nodes.set_title(title if not left_out else f"{title} ({left_out} nodes with fewer evictions left out)")
        counts.set_xlim(
            _day(timeline.first_us / 1_000), _day(max(timeline.last_us, timeline.first_us + 1_000_000) / 1_000)
        )
        locator = AutoDateLocator()
        counts.xaxis.set_major_locator(locator)
        counts.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        made.savefig(path, dpi=DOTS_PER_INCH, metadata={"Date": None} if path.suffix == ".svg" else None)


def _chosen(shown: Drawn) -> dict[int, int]:
    """Choose rows, and number them anew from below."""
    counts = [0] * len(shown.nodes)
    for y in shown.evictions["y"]:
        counts[round(y)] += 1
    most = sorted(range(len(counts)), key=lambda number: (-counts[number], number))[:MOST_NODES]
    return {number: place for place, number in enumerate(sorted(most))}


def _draw_nodes(axes: Any, shown: Drawn, rows: dict[int, int]) -> None:
    _draw_bars(axes, shown.taints, rows, [TAINT] * len(shown.taints["start"]), alpha=1.0)
    colours = [OUTCOME_COLOURS[each] for each in shown.evictions["outcome"]]
    _draw_bars(axes, shown.evictions, rows, colours, alpha=0.6)
    left = shown.evictions["evicted"], shown.evictions["cancelled"]
    for instants, marker, outcome in zip(left, "^x", (DrawnOutcome.EVICTED, DrawnOutcome.CANCELLED), strict=True):
        points = [
            (_day(at), y - round(y) + rows[round(y)])
            for at, y in zip(instants, shown.evictions["y"], strict=True)
            if not math.isnan(at) and round(y) in rows
        ]
        if points:
            axes.scatter(*zip(*points, strict=True), marker=marker, s=14, color=OUTCOME_COLOURS[outcome], zorder=3)
    axes.set_ylim(-0.6, max(rows.values(), default=0) + 0.6)
    names = [f"{zone} · {node}" if zone else node for zone, _, node in (shown.nodes[number] for number in rows)]
    axes.set_yticks(list(rows.values()), map(one_line, names))
    axes.grid(axis="x", linewidth=0.4)
    patches = [Patch(color=TAINT, label="taint")]
    patches += [Patch(color=OUTCOME_COLOURS[each], label=each, alpha=0.6) for each in DrawnOutcome.ALL]
    axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def _draw_bars(axes: Any, columns: BarColumns, rows: dict[int, int], colours: list[str], *, alpha: float) -> None:
    corners, used = [], []
    spans = zip(columns["start"], columns["end"], columns["top"], columns["bottom"], colours, strict=True)
    for start, end, top, bottom, colour in spans:
        row = round(bottom + 0.1)
        if row in rows:
            low, high = (each - row + rows[row] for each in (bottom, top))
            left, right = _day(start), _day(end)
            corners.append([(left, low), (left, high), (right, high), (right, low)])
            used.append(colour)
    axes.add_collection(PolyCollection(corners, facecolors=used, edgecolors="none", alpha=alpha))


def _draw_counts(axes: Any, shown: Drawn) -> None:
    at = [_day(each) for each in shown.bins["at"]]
    series = {
        "scheduled": (SCHEDULED, ":"),
        "evicted": (OUTCOME_COLOURS[DrawnOutcome.EVICTED], "-"),
        "cancelled": (OUTCOME_COLOURS[DrawnOutcome.CANCELLED], "--"),
    }
    for name, (colour, dash) in series.items():
        axes.step(at, shown.bins[name], where="post", color=colour, linestyle=dash, label=name)
    axes.set_ylabel(f"pods in {shown.bin_seconds} s")
    axes.set_ylim(bottom=0)
    axes.grid(linewidth=0.4)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def _day(at_ms: float) -> float:
    return at_ms if math.isnan(at_ms) else float(date2num(dt.datetime.fromtimestamp(at_ms / 1_000, tz=dt.UTC)))
