"""How many log lines there are about single evictions: all of them, until there are too many.

Thousands of evictions may be decided in a second, and a line takes as long as deciding several. So in each interval the
first lines of each event are written, up to a limit, and the others are counted. One line gives the counts when the
interval is over: no eviction goes by without a trace. What was decided about each is on the decisions topic anyway.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable
from typing import Final, Literal

import structlog

log = structlog.get_logger(__name__)

INTERVAL_SECONDS: Final = 10.0

MOST_CLUSTERS: Final = 20
"""Clusters that one line counts by name, those with the most lines first; the others are counted together."""

OTHERS: Final = "_other"

Level = Literal["info", "warning"]


class DeedLog:
    """Decides which lines are written, and counts the others. Used by one thread."""

    def __init__(self, limit: int, now: Callable[[], float] = time.monotonic) -> None:
        """`limit` is how many lines of each event are written in an interval; 0 writes only counts."""
        self._limit = limit
        self._now = now
        self._began_at = now()
        self._seen: collections.Counter[str] = collections.Counter()
        self._left_out: dict[tuple[str, Level, str], collections.Counter[str]] = {}

    def takes(self, event: str, cluster: str, level: Level = "info", outcome: str = "") -> bool:
        """Whether a line is written; else it is counted, by outcome and cluster. A storm asks for each eviction."""
        self._seen[event] += 1
        if self._seen[event] <= self._limit:
            return True
        counts = self._left_out.get((event, level, outcome))
        if counts is None:
            counts = self._left_out[event, level, outcome] = collections.Counter()
        counts[cluster] += 1
        return False

    def tell(self) -> None:
        """Write the counts if the interval is over. Call it every second or so, and at the end with `end`."""
        if self._now() - self._began_at >= INTERVAL_SECONDS:
            self.end()

    def end(self) -> None:
        """Write the counts, and begin an interval."""
        seconds = round(self._now() - self._began_at, 1)
        for (event, level, outcome), counts in self._left_out.items():
            by_cluster = dict(counts.most_common(MOST_CLUSTERS))
            if rest := counts.total() - sum(by_cluster.values()):
                by_cluster[OTHERS] = rest
            write = log.info if level == "info" else log.warning
            said = {"of": event, **({"outcome": outcome} if outcome else {}), "count": counts.total()}
            write("lines left out", **said, clusters=by_cluster, seconds=seconds)
        self._seen.clear()
        self._left_out.clear()
        self._began_at = self._now()
