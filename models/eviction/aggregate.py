"""The step functions, in one place: all ways in which a node's aggregate changes.

All are synchronous and deterministic: the same aggregate and the same arguments give the same changes. `fire` alone
issues evictions; every other one only decides. Those about all pods of a node also come in slices (`slices.py`).
"""

from evictstream.models.eviction.node_step import apply_node, crowd_slices, is_crowded, node_slices
from evictstream.models.eviction.pod_step import apply_pod
from evictstream.models.eviction.result_step import apply_result
from evictstream.models.eviction.timer_step import expire, fire
from evictstream.models.eviction.whole_step import decide_all, decide_all_slices, forget, forget_slices

__all__ = [
    "apply_node",
    "apply_pod",
    "apply_result",
    "crowd_slices",
    "decide_all",
    "decide_all_slices",
    "expire",
    "fire",
    "forget",
    "forget_slices",
    "is_crowded",
    "node_slices",
]
