"""Kubernetes' verdicts about a pod on a node, as cells of a table and as JSON."""

from __future__ import annotations

from functools import cached_property

from evictstream.kit.cli.rules.formatting import NO_VALUE, taint_json, taint_words, toleration_json, toleration_words
from evictstream.kit.rules.scheduling import AdmissionVerdict, FilterVerdict, NodeScore
from evictstream.models.kubernetes import EvictionTiming, EvictionVerdict

TITLES = ("evict", "because of", "tolerated by", "schedule", "because of", "score", "kubelet")
"""Titles of the columns of `PodOnNode.cells`."""


class PodOnNode:
    """The verdicts of controller, scheduler and kubelet; names neither pod nor node, since many share one.

    Attributes:
        eviction: when the pod has to leave.
        scheduling: whether it may be put there.
        score: its rank; None where it may not be put there.
        kubelet: whether it is taken in.
    """

    def __init__(
        self,
        eviction: EvictionVerdict,
        scheduling: FilterVerdict,
        score: NodeScore | None,
        kubelet: AdmissionVerdict,
    ) -> None:
        self.eviction = eviction
        self.scheduling = scheduling
        self.score = score
        self.kubelet = kubelet

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """A row of a table, under `TITLES`."""
        return (
            _eviction_words(self.eviction),
            *_eviction_reason(self.eviction),
            *_scheduling_words(self.scheduling),
            NO_VALUE if self.score is None else str(self.score.score),
            "admits" if self.kubelet.admitted else f"refuses: {taint_words(self.kubelet.taint)}",
        )

    @cached_property
    def fields(self) -> dict[str, object]:
        """Fields for JSON."""
        eviction, scheduling, kubelet = self.eviction, self.scheduling, self.kubelet
        return {
            "eviction": {
                "verdict": eviction.eviction,
                "staySeconds": eviction.stay_seconds,
                "taint": taint_json(eviction.taint),
                "toleration": toleration_json(eviction.toleration),
                "taints": [
                    {"taint": taint_json(cover.taint), "toleration": toleration_json(cover.toleration)}
                    for cover in eviction.coverage
                ],
            },
            "scheduling": {
                "fits": scheduling.fits,
                "code": scheduling.code,
                "plugin": scheduling.plugin,
                "reason": scheduling.reason,
                "taint": taint_json(scheduling.taint),
                "score": None if self.score is None else self.score.score,
                "softTaintsNotTolerated": [
                    taint_json(taint) for taint in (() if self.score is None else self.score.intolerable)
                ],
            },
            "kubelet": {
                "admitted": kubelet.admitted,
                "reason": kubelet.reason,
                "message": kubelet.message,
                "taint": taint_json(kubelet.taint),
            },
        }


def _eviction_words(verdict: EvictionVerdict) -> str:
    match verdict.eviction:
        case EvictionTiming.NEVER:
            return "never"
        case EvictionTiming.NOW:
            return "now"
        case _:
            return f"after {verdict.stay_seconds} s"


def _eviction_reason(verdict: EvictionVerdict) -> tuple[str, str]:
    if verdict.taint is None:
        return "no NoExecute taint", NO_VALUE
    tolerated = "nothing" if verdict.toleration is None else toleration_words(verdict.toleration)
    return taint_words(verdict.taint), tolerated


def _scheduling_words(verdict: FilterVerdict) -> tuple[str, str]:
    if verdict.fits:
        return "yes", NO_VALUE
    return "no", f"{verdict.reason}: {taint_words(verdict.taint)}"
