"""How many pods leave a node for each of its taints: what guards that count pods ask (`models/steering/guards.py`).

It is a function of rows, so every owner of a partition finds the same. Pods that have left for a taint count as long as
the taint stays and their deletion is remembered. Otherwise a slow storm would never exceed a guard: what has left would
make room for what leaves next.
"""

from collections import Counter

from evictstream.models.eviction.state import NodeAggregate
from evictstream.models.messages.vocabulary import EvictionState

_DONE = EvictionState.DONE  # see `evictstream.models.eviction` for this constant


def leaving_pods(aggregate: NodeAggregate) -> Counter[str]:
    """Count the pods of a node that have to leave for a taint that it has, or have left for it, by key.

    Of a pod that terminates or has left, only an eviction counts that was issued since the newest taint of its key is
    there: the taint may have been away in between.
    """
    found: Counter[str] = Counter()
    node = aggregate.node
    if node is None or not node.taints:
        return found
    since_us: dict[str, int] = {}
    for state in node.taints:
        since_us[state.taint.key] = max(state.since_us, since_us.get(state.taint.key, 0))
    for pod in aggregate.pods.values():
        eviction = pod.eviction
        if eviction is not None and (key := eviction.due.taint.key) in since_us:
            found[key] += eviction.state is not _DONE or (eviction.issued_at_us or 0) >= since_us[key]
    for memory in aggregate.deleted_pods.values():
        if memory.evicted_for in since_us:
            found[memory.evicted_for] += memory.evicted_us >= since_us[memory.evicted_for]
    return +found
