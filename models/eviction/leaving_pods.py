"""How many pods leave a node for each of its taints: guards that count pods ask this (`models/steering/guards.py`).

The number is a function of rows, so every owner of a partition finds the same. A pod that has left for a taint counts
as long as the taint stays and the pod's deletion is remembered. Otherwise a slow storm would never exceed a guard: pods
that have left would make room for the next ones.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from evictstream.models.eviction.pod_owners import controller_of
from evictstream.models.eviction.state import DeletionMemory, NodeAggregate, PodState
from evictstream.models.kubernetes.traits import Owner
from evictstream.models.messages.vocabulary import EvictionState

_DONE = EvictionState.DONE  # see `evictstream.models.eviction` for this constant


def leaving_pods(aggregate: NodeAggregate) -> Counter[str]:
    """Count by key the pods that have to leave for a taint of their node, or have left for it.

    For the same taints all remembered deletions are counted once; from then on `count_left` changes the number.
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
    """Count a deletion that is remembered from now on (1), or no longer (-1), if those of its node are counted."""
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
    """Yield each leaving pod, or its remembered deletion, with the key of the taint for which it leaves.

    A pod that terminates or has left counts only if its eviction was issued after the newest taint of that key came.
    Before, the taint may have been away.
    """
    since_us = _since_us(aggregate)
    yield from _known_leaving(aggregate, since_us)
    for memory in aggregate.deleted_pods.values() if since_us else ():
        if _has_left(memory, since_us):
            yield memory.evicted_for, memory


def _known_leaving(aggregate: NodeAggregate, since_us: Mapping[str, int]) -> Iterator[tuple[str, PodState]]:
    """Yield the leaving pods that still exist."""
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
    """Return by key when the node's newest taint came."""
    found: dict[str, int] = {}
    for state in () if aggregate.node is None else aggregate.node.taints:
        found[state.taint.key] = max(state.since_us, found.get(state.taint.key, 0))
    return found
