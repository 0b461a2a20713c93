"""Outages at several paces, in one order of nodes: the second opinion on `silence_range`, and the models' own test."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from evictstream.kit.upstream.lifecycle import INSTANT, ClusterChange, RequestPace, TaintsChanged, plausible_paces
from evictstream.kit.upstream.taint_eviction import (
    NodeSeen,
    PodDeleted,
    PodSeen,
    TaintEvictionController,
    run_controller,
)
from evictstream.models.kubernetes.objects import Node, Pod
from evictstream.models.kubernetes.taints import NO_EXECUTE, Taint


@dataclasses.dataclass(frozen=True, slots=True)
class TaintOutcome:
    """What happens at one pace.

    Attributes:
        pace: of the controller.
        tainted: names of the nodes that got a health NoExecute taint at any time.
        evicted: addresses of the pods that Kubernetes' taint eviction controller deleted for it.
    """

    pace: RequestPace
    tainted: frozenset[str]
    evicted: frozenset[str]


@dataclasses.dataclass(frozen=True, slots=True)
class TaintRange:
    """What happens at every pace that was tried.

    Neither end is a proof: the order in which a round goes through the nodes is chance upstream, and here it is theirs.
    Between the ends every number is possible.

    Attributes:
        outcomes: in the order of the paces, the one in an instant first.
    """

    outcomes: tuple[TaintOutcome, ...]

    @property
    def taints(self) -> tuple[int, int]:
        """The fewest and the most nodes that get a health taint."""
        counts = [len(outcome.tainted) for outcome in self.outcomes]
        return min(counts), max(counts)

    @property
    def evictions(self) -> tuple[int, int]:
        """The fewest and the most pods that are evicted."""
        counts = [len(outcome.evicted) for outcome in self.outcomes]
        return min(counts), max(counts)

    @property
    def surely_evicted(self) -> frozenset[str]:
        """The pods that are evicted at every pace."""
        return frozenset.intersection(*(outcome.evicted for outcome in self.outcomes))

    @property
    def possibly_evicted(self) -> frozenset[str]:
        """The pods that are evicted at some pace."""
        return frozenset.union(*(outcome.evicted for outcome in self.outcomes))


def taint_range(
    play: Callable[[RequestPace], Iterable[ClusterChange]],
    pods: Sequence[Pod],
    until_us: int,
    paces: Iterable[RequestPace] | None = None,
) -> TaintRange:
    """Play an outage at several paces, and see how far the results lie apart.

    Args:
        play: plays the outage at a pace, on a new `NodeLifecycle` with a new `LifecycleClock`; its result is all
            changes, in the order of their times.
        pods: those that may be evicted, with their tolerations, as they are all the time.
        until_us: later changes do not count, and neither do evictions.
        paces: those to try beside the one in an instant; `plausible_paces()` if absent.
    """
    tried = dict.fromkeys((INSTANT, *(plausible_paces() if paces is None else paces)))
    outcomes = []
    for pace in tried:
        changes = [change for change in play(pace) if isinstance(change, TaintsChanged) and change.at_us <= until_us]
        tainted = frozenset(change.node for change in changes if any(map(_evicts, change.added)))
        outcomes.append(TaintOutcome(pace, tainted, _evicted(changes, pods, until_us)))
    return TaintRange(tuple(outcomes))


def _evicts(taint: Taint) -> bool:
    return taint.effect == NO_EXECUTE


def _evicted(changes: Sequence[TaintsChanged], pods: Sequence[Pod], until_us: int) -> frozenset[str]:
    """Name the pods that the taint eviction controller deletes, when only these taints come and go."""
    if not changes:
        return frozenset()
    first_us = changes[0].at_us
    carried: dict[str, tuple[Taint, ...]] = {}
    seen: list[NodeSeen | PodSeen] = [
        *(NodeSeen(first_us, Node(name, "", "")) for name in dict.fromkeys(pod.node_name for pod in pods)),
        *(PodSeen(first_us, pod) for pod in pods),
    ]
    for change in changes:
        gone = {(taint.key, taint.effect) for taint in (*change.added, *change.removed)}
        kept = tuple(taint for taint in carried.get(change.node, ()) if (taint.key, taint.effect) not in gone)
        carried[change.node] = (*kept, *filter(_evicts, change.added))
        seen.append(NodeSeen(change.at_us, Node(change.node, "", "", carried[change.node])))
    outcomes = run_controller(TaintEvictionController(), seen, until_us)
    return frozenset(outcome.address for outcome in outcomes if isinstance(outcome, PodDeleted))
