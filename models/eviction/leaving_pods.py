"""How many pods leave a node for each of its taints: what guards that count pods ask (`models/steering/guards.py`).

It is a function of rows, so every owner of a partition finds the same. Pods that have left for a taint count as long as
the taint stays and their deletion is remembered. Otherwise a slow storm would never exceed a guard: what has left would
make room for what leaves next.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from evictstream.models.eviction.pod_owners import controller_of
from evictstream.models.eviction.state import DeletionMemory, NodeAggregate, PodState
from evictstream.models.kubernetes.traits import Owner
from evictstream.models.messages.vocabulary import EvictionState

_DONE = EvictionState.DONE  # see `evictstream.models.eviction` for this constant


def leaving_pods(aggregate: NodeAggregate) -> Counter[str]:
    """Count the pods of a node that have to leave for a taint that it has, or have left for it, by key.

    What is remembered of deleted pods is looked at only once for the same taints: then steps change the count.
    """
    since_us = _since_us(aggregate)
    if not since_us:
        aggregate.left = None
        return Counter()
    if aggregate.left is None or aggregate.left[0] != since_us:
        aggregate.left = since_us, Counter()
        for memory in aggregate.deleted_pods.values():
            count_left(aggregate, memory, 1)
    found = Counter(key for key, _ in _known_leaving(aggregate, since_us))
    found.update(aggregate.left[1])
    return +found


def count_left(aggregate: NodeAggregate, memory: DeletionMemory | None, by: int) -> None:
    """Count a deleted pod that is remembered from now on (1), or no longer (-1), if its node's are counted."""
    if aggregate.left is not None and memory is not None and _has_left(memory, aggregate.left[0]):
        aggregate.left[1][memory.evicted_for] += by


def leaving_owners(aggregate: NodeAggregate) -> dict[Owner, tuple[str, ...]]:
    """Return the owners of these pods, each with the keys of the taints in order."""
    found: dict[Owner, tuple[str, ...]] = {}
    alone: dict[str, tuple[str, ...]] = {}  # one object for nearly all owners of a node
    for key, pod in _leaving(aggregate):
        owner = pod.owner if isinstance(pod, DeletionMemory) else controller_of(pod)
        if owner is not None:
            keys = found.get(owner)
            if keys is None:
                found[owner] = alone.setdefault(key, (key,))
            elif key not in keys:
                found[owner] = tuple(sorted((*keys, key)))
    return found


def _leaving(aggregate: NodeAggregate) -> Iterator[tuple[str, PodState | DeletionMemory]]:
    """Yield the key for which each of them leaves, and the pod, or what is remembered of it.

    Of a pod that terminates or has left, only an eviction counts that was issued since the newest taint of its key is
    there: the taint may have been away in between.
    """
    since_us = _since_us(aggregate)
    yield from _known_leaving(aggregate, since_us)
    for memory in aggregate.deleted_pods.values() if since_us else ():
        if _has_left(memory, since_us):
            yield memory.evicted_for, memory


def _known_leaving(aggregate: NodeAggregate, since_us: Mapping[str, int]) -> Iterator[tuple[str, PodState]]:
    """Yield those that are still there."""
    for pod in aggregate.pods.values():
        eviction = pod.eviction
        if eviction is None or (key := eviction.due.taint.key) not in since_us:
            continue
        if eviction.state is not _DONE or (eviction.issued_at_us or 0) >= since_us[key]:
            yield key, pod


def _has_left(memory: DeletionMemory, since_us: Mapping[str, int]) -> bool:
    """Whether a deleted pod has left for a taint that its node has."""
    return memory.evicted_for in since_us and memory.evicted_us >= since_us[memory.evicted_for]


def _since_us(aggregate: NodeAggregate) -> dict[str, int]:
    """Return since when the newest taint of each key is there."""
    found: dict[str, int] = {}
    for state in () if aggregate.node is None else aggregate.node.taints:
        found[state.taint.key] = max(state.since_us, found.get(state.taint.key, 0))
    return found
