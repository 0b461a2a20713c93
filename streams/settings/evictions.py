"""Parameters of the eviction rules: they change decisions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evictstream.streams.settings.group import SettingsGroup, matching

_PATTERN = r"[A-Za-z0-9._*?\[\]!-]{1,253}"

ClusterPatterns = Annotated[
    str, matching(f"{_PATTERN}(?:,{_PATTERN})*", "write names or patterns of clusters, with commas between several")
]
"""Names of clusters, or patterns of them with `*`, with commas between."""

_Seconds = Annotated[float, Field(gt=0)]


class EvictionSettings(SettingsGroup):
    """Parameters of the eviction rules."""

    comparison_operators: bool = False
    """Whether the operators Gt and Lt match (the feature gate TaintTolerationComparisonOperators). Must be as in the
    clusters, where it is off by default."""

    built_in: ClusterPatterns | None = None
    """Clusters in which Kubernetes' own controller stays on, `eks-*,gke-1`: only what it would do later or never is
    evicted there. See docs/managed-clusters.md."""

    max_event_delay_seconds: Annotated[float, Field(ge=0)] = 60.0
    """How far before its append time an event's observedAt may count. A minute covers a slow feed; a wrong clock cannot
    make a deadline earlier than that."""

    outage_gap_seconds: Annotated[float, Field(ge=0)] = 5.0
    """A node's outage continues over a gap of this length without a health taint, while the node is not Ready. A
    restarted controller manager needs 0.1 s. A longer gap ends it if the cluster may have been in full disruption; with
    0 every gap does."""

    remember_deleted_seconds: _Seconds = 3600.0
    """How long a deleted pod or node is remembered, so that a late event cannot bring it back. At least the longest
    delay of a feed."""

    retry_base_seconds: _Seconds = 1.0
    """Wait before the first repeat of a failed eviction; it doubles with each."""

    retry_ceiling_seconds: _Seconds = 300.0
    """Longest wait between repeats. They continue while the eviction is owed; five minutes is soon enough after a long
    outage."""

    result_silence_seconds: _Seconds = 30.0
    """An `Evict` without any result is repeated after this time. Executors answer within seconds, or are down."""

    success_grace_seconds: _Seconds = 120.0
    """After `Succeeded` or `Gone`, repeats stop for this long, while the pod's deletion should arrive on the input."""

    accepted_silence_seconds: _Seconds = 60.0
    """After `Accepted`, an eviction is repeated if the executor has not reported on it for this long. An executor
    that sends it does so every 20 s for each command in its queue; evictstream's own sends reports instead."""

    accepted_limit_seconds: _Seconds = 900.0
    """Longest time after an `Evict` in which `Accepted`, or a report of an executor's queue, delays its repeat."""

    @property
    def clusters_with_built_in(self) -> tuple[str, ...]:
        """Patterns of the clusters in which Kubernetes' own controller stays on."""
        return () if self.built_in is None else tuple(self.built_in.split(","))
