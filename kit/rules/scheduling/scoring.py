"""How the scheduler ranks the nodes on which a pod may land, as far as soft taints decide (semantics.md 5).

Sources: `pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go` (`Score`) and
`pkg/scheduler/framework/plugins/helper/normalize_score.go`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from evictstream.models.kubernetes.matching import first_match
from evictstream.models.kubernetes.taints import PREFER_NO_SCHEDULE, Taint
from evictstream.models.kubernetes.tolerations import Toleration

MAX_NODE_SCORE: Final = 100


class NodeScore(msgspec.Struct, frozen=True, gc=False):
    """The rank of one candidate.

    Attributes:
        node: its name.
        score: 0 to 100; higher is better.
        intolerable: the soft taints that no toleration covers, in node order. Their number is the raw score.
    """

    node: str
    score: int
    intolerable: tuple[Taint, ...] = ()


def score_nodes(
    tolerations: Iterable[Toleration],
    candidates: Mapping[str, Iterable[Taint]],
    *,
    comparison_operators: bool = False,
) -> tuple[NodeScore, ...]:
    """Score all candidates against one another, in the order in which they are given.

    Args:
        tolerations: of the pod, in pod order.
        candidates: taints by name of the node; only nodes that passed the filter, since the worst one sets the scale.
        comparison_operators: whether `Gt` and `Lt` compare.
    """
    soft = tuple(tolerations)
    counts = {
        node: intolerable_taints(soft, taints, comparison_operators=comparison_operators)
        for node, taints in candidates.items()
    }
    scores = normalized_scores([len(taints) for taints in counts.values()])
    return tuple(NodeScore(node, score, counts[node]) for node, score in zip(counts, scores, strict=True))


def intolerable_taints(
    tolerations: Iterable[Toleration], taints: Iterable[Taint], *, comparison_operators: bool = False
) -> tuple[Taint, ...]:
    """List the `PreferNoSchedule` taints that no toleration covers; their number is the raw score.

    Only tolerations with effect `PreferNoSchedule` or without effect count.
    """
    soft = [toleration for toleration in tolerations if toleration.effect in ("", PREFER_NO_SCHEDULE)]
    return tuple(
        taint
        for taint in taints
        if taint.effect == PREFER_NO_SCHEDULE
        and first_match(soft, taint, comparison_operators=comparison_operators) is None
    )


def normalized_scores(raw_scores: Sequence[int]) -> list[int]:
    """Turn numbers of intolerable taints into scores: 0 for the most, 100 for none, rounded down.

    Args:
        raw_scores: 0 or more, of all candidates.
    """
    highest = max(raw_scores, default=0)
    if highest == 0:
        return [MAX_NODE_SCORE] * len(raw_scores)
    return [MAX_NODE_SCORE - MAX_NODE_SCORE * raw // highest for raw in raw_scores]
