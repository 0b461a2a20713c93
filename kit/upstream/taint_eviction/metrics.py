"""The two metrics of upstream's controller, wrong unit included (semantics.md 6.11, #142617).

Kubernetes `pkg/controller/tainteviction/metrics/metrics.go` and `deletePodHandler` in `taint_eviction.go`.
"""

from bisect import bisect_left
from typing import Final

from evictstream.kit.upstream.taint_eviction.staying import NANOSECONDS_PER_SECOND, wrapped_int64

COUNTER_NAME: Final = "taint_eviction_controller_pod_deletions_total"
HISTOGRAM_NAME: Final = "taint_eviction_controller_pod_deletion_duration_seconds"

BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)
"""Upper bounds of the histogram; one more bucket holds all larger values."""


class DeletionMetrics:
    """The counter of deletions and the histogram of their latency.

    Attributes:
        deletions_total: successful deletions.
        buckets: the number of observations in each bucket, not cumulative; the last bucket has no upper bound.
        observed_sum: sum of all observations, in whatever unit they are.
    """

    __slots__ = ("buckets", "deletions_total", "observed_sum")

    def __init__(self) -> None:
        self.deletions_total = 0
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.observed_sum = 0.0

    def observe(self, fire_at_us: int, deleted_at_us: int) -> float:
        """Count a successful deletion; returns the value that the histogram observed."""
        value = upstream_latency(deleted_at_us - fire_at_us)
        self.deletions_total += 1
        self.buckets[bisect_left(BUCKETS, value)] += 1
        self.observed_sum += value
        return value


def upstream_latency(elapsed_us: int) -> float:
    """Compute the value that upstream observes for a deletion, from the time since its fire time.

    Upstream multiplies a duration in nanoseconds by another one of 1 s, in 64 bit: it observes 5 ms as
    5,000,000,000,000,000. From 9.3 s on the product overflows, also to negative numbers.
    """
    return float(wrapped_int64(elapsed_us * 1_000 * NANOSECONDS_PER_SECOND))
