"""How many pods leave a node for each of its taints: guards that count pods ask this (`models/steering/guards.py`).

The number is a function of rows, so every owner of a partition finds the same. A pod that has left for a taint counts
as long as the taint stays and the pod's deletion is remembered. Otherwise a slow storm would never exceed a guard: pods
that have left would make room for the next ones.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.decision import NothingDue, decide
from evictstream.models.eviction.pod_owners import controller_of
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import DeletionMemory, PodState
from evictstream.models.eviction.transitions import OUTSTANDING
from evictstream.models.kubernetes.traits import Owner
from evictstream.models.messages.vocabulary import EvictionState

_DONE = EvictionState.DONE  # see `evictstream.models.eviction` for this constant


def leaving_pods(aggregate: NodeAggregate, rules: RuleParameters | None = None) -> Counter[str]:
    """Count by key the pods that have to leave for a taint of their node, or have left for it.

    A pod whose eviction is out counts for the taint for which `rules` would have it repeated now; without them, for the
    one for which it was issued. For the same taints all remembered deletions are counted once; from then on
    `count_left` changes the number.
    """
    since_us = newest_taints_us(aggregate)
    if not since_us:
        aggregate.left = None
        return Counter()
    if aggregate.left is None or aggregate.left[0] != since_us:
        aggregate.left = since_us, Counter()
        aggregate.left[1].update(key for key, _ in deleted_leaving(aggregate, since_us))
    found = Counter(key for key, _ in _known_leaving(aggregate, since_us, rules))
    found.update(aggregate.left[1])
    return +found


def count_left(aggregate: NodeAggregate, memory: DeletionMemory | None, by: int) -> None:
    """Count a deleted pod that is remembered from now on (1), or no longer (-1), wherever its node's are counted."""
    if memory is None or not memory.evicted_for:
        return
    if aggregate.left is not None and has_left(memory, aggregate.left[0]):
        aggregate.left[1][memory.evicted_for] += by
    if aggregate.workloads is not None:
        aggregate.workloads.left(aggregate.name, memory, by)


def deleted_leaving(aggregate: NodeAggregate, since_us: Mapping[str, int]) -> Iterator[tuple[str, DeletionMemory]]:
    """Yield each deleted pod that is remembered and has left for a taint of its node, with its key."""
    for memory in aggregate.deleted_pods.values():
        if has_left(memory, since_us):
            yield memory.evicted_for, memory


def leaving_owners(
    aggregate: NodeAggregate, since_us: Mapping[str, int], rules: RuleParameters | None = None
) -> dict[Owner, tuple[str, ...]]:
    """Return the owners of pods that are still there and leave, each with the keys of the taints in order."""
    found: dict[Owner, tuple[str, ...]] = {}
    alone: dict[str, tuple[str, ...]] = {}  # one object for nearly all owners of a node
    for key, pod in _known_leaving(aggregate, since_us, rules):
        owner = controller_of(pod)
        if owner is not None:
            keys = found.get(owner)
            if keys is None:
                found[owner] = alone.setdefault(key, (key,))
            elif key not in keys:
                found[owner] = tuple(sorted((*keys, key)))
    return found


def _known_leaving(
    aggregate: NodeAggregate, since_us: Mapping[str, int], rules: RuleParameters | None
) -> Iterator[tuple[str, PodState]]:
    """Yield each leaving pod that still exists, with the key of its taint.

    Of a pod that terminates or has left, only an eviction counts that was issued since the newest taint of its key is
    there: the taint may have been away in between.
    """
    for pod in aggregate.pods.values():
        eviction = pod.eviction
        if eviction is None:
            continue
        key = eviction.due.taint.key
        if rules is not None and eviction.state in OUTSTANDING and (len(since_us) > 1 or key not in since_us):
            due = decide(aggregate.node, pod, rules)
            key = key if isinstance(due, NothingDue) else due.taint.key
        if key not in since_us:
            continue
        if eviction.state is not _DONE or (eviction.issued_at_us or 0) >= since_us[key]:
            yield key, pod


def has_left(memory: DeletionMemory, since_us: Mapping[str, int]) -> bool:
    """Whether a deleted pod has left for a taint that its node has."""
    return memory.evicted_for in since_us and memory.evicted_us >= since_us[memory.evicted_for]


def newest_taints_us(aggregate: NodeAggregate) -> dict[str, int]:
    """Return by key when the node's newest taint came."""
    found: dict[str, int] = {}
    for state in () if aggregate.node is None else aggregate.node.taints:
        found[state.taint.key] = max(state.since_us, found.get(state.taint.key, 0))
    return found
