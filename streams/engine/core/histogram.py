"""Counts of a quantity by bucket, as plain integers that are rendered only when metrics are scraped.

The Prometheus client's own histogram takes a lock and makes floats for each value; this one costs a search in a short
tuple. One thread writes it; readers on others may see a value in the counts before it is in the sum.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts of observed values by upper bound.

    Attributes:
        bounds: upper bounds in ascending order, each inclusive; the last bucket has none.
        counts: values by bucket, one more than there are bounds.
        total: sum of all values, in their unit.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
