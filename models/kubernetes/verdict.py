"""What the taints of a node mean for a pod that runs on it: stay, leave now, leave after some seconds, and why.

The verdict is upstream's, from the two lists alone (semantics.md 3.4 and 4). It uses no window and no clock, and
ignores the state of the pod. Source: `pkg/controller/tainteviction/taint_eviction.go` (`processPodOnNode`,
`getMinTolerationTime`) and `pkg/apis/core/v1/helper/helpers.go` (`GetMatchingTolerations`).
"""

import enum
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from evictstream.models.kubernetes.matching import bounded_seconds, first_match
from evictstream.models.kubernetes.taints import NO_EXECUTE, Taint
from evictstream.models.kubernetes.tolerations import Toleration


class EvictionTiming(enum.StrEnum):
    """When a pod has to leave its node."""

    NEVER = "evict-never"
    NOW = "evict-now"
    AFTER_SECONDS = "evict-after-seconds"


class TaintCoverage(msgspec.Struct, frozen=True, gc=False):
    """A taint and the first toleration in pod order that matches it, None if none does."""

    taint: Taint
    toleration: Toleration | None


class EvictionVerdict(msgspec.Struct, frozen=True, gc=False):
    """When a pod has to leave, and what decided it.

    Attributes:
        eviction: never, now or after some seconds.
        stay_seconds: how long it may stay: 0 for now, None forever; beyond 64 bit if the toleration is.
        taint: the taint that decided; None without taints. Of several that would decide (all untolerated, all with the
            same shortest time, or all tolerated forever) it is the first in node order.
        toleration: the one in use for that taint; None if it is untolerated or there is no taint.
        coverage: every `NoExecute` taint in node order with its toleration, to be shown. Once one taint is untolerated,
            Kubernetes uses none of these tolerations; see `in_use`.
    """

    eviction: EvictionTiming
    stay_seconds: int | None
    taint: Taint | None
    toleration: Toleration | None
    coverage: tuple[TaintCoverage, ...]

    @property
    def in_use(self) -> tuple[Toleration, ...]:
        """The tolerations in use, one for each taint; empty if there is no taint or one is untolerated."""
        tolerations = tuple(cover.toleration for cover in self.coverage if cover.toleration is not None)
        return tolerations if len(tolerations) == len(self.coverage) else ()


_NO_TAINT: Final = EvictionVerdict(
    eviction=EvictionTiming.NEVER, stay_seconds=None, taint=None, toleration=None, coverage=()
)


def eviction_verdict(
    tolerations: Sequence[Toleration], taints: Iterable[Taint], *, comparison_operators: bool = False
) -> EvictionVerdict:
    """Decide about a pod that is bound to a node.

    The order of the tolerations matters to eviction and time, the order of the taints does not (semantics.md 3.4).

    Args:
        tolerations: of the pod, in pod order.
        taints: of the node, in node order; only `NoExecute` counts.
        comparison_operators: whether `Gt` and `Lt` compare; off, such a toleration matches nothing.
    """
    coverage = tuple(
        [
            TaintCoverage(taint, first_match(tolerations, taint, comparison_operators=comparison_operators))
            for taint in taints
            if taint.effect == NO_EXECUTE
        ]
    )
    if not coverage:
        return _NO_TAINT
    shortest: int | None = None
    decided = coverage[0]
    for cover in coverage:
        toleration = cover.toleration
        if toleration is None:
            return EvictionVerdict(
                eviction=EvictionTiming.NOW, stay_seconds=0, taint=cover.taint, toleration=None, coverage=coverage
            )
        seconds = bounded_seconds(toleration)
        if seconds is not None and (shortest is None or seconds < shortest):
            shortest, decided = seconds, cover
    if shortest is None:
        eviction = EvictionTiming.NEVER
    else:
        eviction = EvictionTiming.AFTER_SECONDS if shortest else EvictionTiming.NOW
    return EvictionVerdict(
        eviction=eviction,
        stay_seconds=shortest,
        taint=decided.taint,
        toleration=decided.toleration,
        coverage=coverage,
    )
