"""Whether a pod may land on a node, and how nodes rank (semantics.md 5)."""

from evictstream.kit.rules.scheduling.filtering import (
    HARD_EFFECTS,
    NODE_UNSCHEDULABLE,
    TAINT_TOLERATION,
    UNSCHEDULABLE_REASON,
    UNSCHEDULABLE_TAINT,
    UNTOLERATED_REASON,
    FilterCode,
    FilterVerdict,
    filter_cordon,
    filter_node,
    filter_taints,
)
from evictstream.kit.rules.scheduling.kubelet import (
    UNTOLERATED_MESSAGE,
    AdmissionVerdict,
    is_static_pod,
    kubelet_admission,
)
from evictstream.kit.rules.scheduling.scoring import (
    MAX_NODE_SCORE,
    NodeScore,
    intolerable_taints,
    normalized_scores,
    score_nodes,
)

__all__ = [
    "HARD_EFFECTS",
    "MAX_NODE_SCORE",
    "NODE_UNSCHEDULABLE",
    "TAINT_TOLERATION",
    "UNSCHEDULABLE_REASON",
    "UNSCHEDULABLE_TAINT",
    "UNTOLERATED_MESSAGE",
    "UNTOLERATED_REASON",
    "AdmissionVerdict",
    "FilterCode",
    "FilterVerdict",
    "NodeScore",
    "filter_cordon",
    "filter_node",
    "filter_taints",
    "intolerable_taints",
    "is_static_pod",
    "kubelet_admission",
    "normalized_scores",
    "score_nodes",
]
