"""The numbers that the rules need: the service's settings, and how soon a run has to show what is owed."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import TypeAlias

SECOND_US = 1_000_000

Stretch: TypeAlias = tuple[int, int]
"""From when to when, microseconds since 1970 by the broker's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleLimits:
    """Settings of the service that is judged; times in microseconds.

    Attributes:
        built_in: patterns of clusters where Kubernetes' own controller is on.
        slack_us: not a setting: inputs and obligations this shortly before the end of a run may have no effect yet.
    """

    outage_gap_us: int
    retry_base_us: int
    retry_ceiling_us: int
    result_silence_us: int
    success_grace_us: int
    accepted_silence_us: int
    accepted_limit_us: int
    report_silence_us: int
    max_event_delay_us: int
    feed_silence_us: int
    lag_us: int
    clock_skew_us: int
    max_object_bytes: int
    slack_us: int
    built_in: tuple[str, ...] = ()

    def is_built_in_on(self, cluster: str) -> bool:
        """Whether Kubernetes' own controller is on in a cluster."""
        return any(fnmatch.fnmatch(cluster, pattern) for pattern in self.built_in)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promptness:
    """How soon everything has to happen. Without it, only what never happens is missed.

    Attributes:
        late_us: within that time a record is taken in and leads to its command, and an eviction that is owed to its
            `Evict`.
        view_us: no `Evict` comes so long after its reason went. No stretch excuses that.
        excused: stretches that do not count as lateness, such as from a worker's kill to the takeover. They do not
            overlap.
    """

    late_us: int
    view_us: int
    excused: tuple[Stretch, ...] = ()

    def is_late(self, since_us: int, at_us: int) -> bool:
        """Whether more time than is granted lies between two instants."""
        lost_us = sum(max(0, min(at_us, stop) - max(since_us, start)) for start, stop in self.excused)
        return at_us - since_us - lost_us > self.late_us
