"""What becomes of pods on nodes, decided once for all that look alike to the rules.

A cluster has thousands of pods and hundreds of nodes, but few lists of tolerations and few lists of taints.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from evictstream.kit.cli.rules.checked_objects import NodeSubject, PodSubject
from evictstream.kit.cli.rules.pod_on_node import PodOnNode
from evictstream.kit.rules.scheduling import filter_node, is_static_pod, kubelet_admission, score_nodes
from evictstream.models.kubernetes import Taint, Tolerations, eviction_verdict

MOST_TOLERATIONS_KEPT: Final = 64
"""Lists of tolerations whose outcomes are kept, the latest ones. A cluster seldom has more; each costs 2 KB for each
distinct list of taints, so 64 MB where 500 nodes have each their own."""


class _NodeProfile(NamedTuple):
    """The parts of a node that the rules read."""

    taints: tuple[Taint, ...]
    unschedulable: bool


class Evaluator:
    """Decides about pods on nodes. Scores are relative to all of the nodes."""

    def __init__(self, nodes: Sequence[NodeSubject], *, comparison_operators: bool) -> None:
        """Group the nodes by the parts that the rules read.

        Args:
            nodes: in the order of the outcomes.
            comparison_operators: whether `Gt` and `Lt` compare.
        """
        profiles: dict[_NodeProfile, int] = {}
        self._profile_of = [profiles.setdefault(_profile(node), len(profiles)) for node in nodes]
        self._profiles = list(profiles)
        self._comparison_operators = comparison_operators
        self._outcomes = lru_cache(MOST_TOLERATIONS_KEPT)(self._decide)

    def outcome(self, pod: PodSubject, index: int) -> PodOnNode:
        """Return the outcome of a pod on the node at `index` of `nodes`."""
        return self._outcomes(pod.tolerations, is_static_pod(pod.annotations))[self._profile_of[index]]

    def _decide(self, tolerations: Tolerations, is_static: bool) -> list[PodOnNode]:
        gate = self._comparison_operators
        filtered = [
            filter_node(tolerations, profile.taints, unschedulable=profile.unschedulable, comparison_operators=gate)
            for profile in self._profiles
        ]
        # Nodes that look alike have one raw score, so leaving the others out moves no scale.
        candidates = {
            str(index): profile.taints for index, profile in enumerate(self._profiles) if filtered[index].fits
        }
        scores = {score.node: score for score in score_nodes(tolerations, candidates, comparison_operators=gate)}
        return [
            PodOnNode(
                eviction_verdict(tolerations, profile.taints, comparison_operators=gate),
                filtered[index],
                scores.get(str(index)),
                kubelet_admission(tolerations, profile.taints, is_static=is_static, comparison_operators=gate),
            )
            for index, profile in enumerate(self._profiles)
        ]


def _profile(node: NodeSubject) -> _NodeProfile:
    taints = tuple(msgspec.structs.replace(taint, time_added_us=None) for taint in node.taints)  # no rule looks at it
    return _NodeProfile(taints, node.unschedulable)
