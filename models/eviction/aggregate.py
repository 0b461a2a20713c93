"""The step functions, in one place: all ways in which a node's aggregate changes.

All are synchronous and deterministic: the same aggregate and the same arguments give the same changes. `fire` alone
issues evictions; every other one only decides.
"""

from models.eviction.node_step import apply_node
from models.eviction.pod_step import apply_pod
from models.eviction.result_step import apply_result
from models.eviction.timer_step import expire, fire
from models.eviction.whole_step import decide_all, forget

__all__ = ["apply_node", "apply_pod", "apply_result", "decide_all", "expire", "fire", "forget"]
