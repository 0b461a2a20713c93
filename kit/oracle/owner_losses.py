"""Owners that lose all of their pods, as guards of owners count them (docs/policies.md#guard).

An owner loses all if no pod of it stays: each bound one has to leave, or has left by an eviction whose taint is still
there. It counts at its last loss, by the instants of taints. As with single pods, a worker may know less or more of
pods than of nodes. So there are owners that surely lose all at one instant, and those that may at some.
"""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from evictstream.kit.oracle.cluster_views import ClusterView
from evictstream.kit.oracle.histories import HeardPod, PodOwner
from evictstream.kit.oracle.leaving import GuardedPods, NodePods
from evictstream.kit.oracle.limits import Stretch
from evictstream.kit.oracle.reading import Json


class OwnerLoss(NamedTuple):
    """A taint of a node that a pod leaves, or has left for it; the later one is the larger."""

    since_us: int
    node: str
    taint: str


@dataclass(slots=True)
class _Fate:
    """What may become of a pod of an owner.

    Attributes:
        may_stay: in a state that may be known.
        may_go: in another one.
        may_be_no_loss: in one of these it neither stays nor counts as left.
        losses: that it may be.
    """

    may_stay: bool = False
    may_go: bool = False
    may_be_no_loss: bool = False
    losses: set[OwnerLoss] = field(default_factory=set)


def sure_losses(pods: GuardedPods, view: ClusterView, guard: Json, span: Stretch) -> Iterator[OwnerLoss]:
    """Give the last loss of each owner that loses all in each state that may be known; see `GuardedPods.least`."""
    for fates in _by_owner(pods, view, guard, span).values():
        if any(fate.may_stay for fate in fates):
            continue
        surely = (min(fate.losses) for fate in fates if fate.losses and not fate.may_be_no_loss)
        at_least, at_most = max(surely, default=None), max(one for fate in fates for one in (*fate.losses, _NONE))
        if at_least == at_most:
            yield at_most


def possible_losses(pods: GuardedPods, view: ClusterView, guard: Json, span: Stretch) -> Iterator[set[OwnerLoss]]:
    """Give, for each owner that may lose all, what its last loss may be."""
    for fates in _by_owner(pods, view, guard, span).values():
        if all(fate.may_go for fate in fates):
            yield {loss for fate in fates for loss in fate.losses}


_NONE = OwnerLoss(-1, "", "")


def _by_owner(pods: GuardedPods, view: ClusterView, guard: Json, span: Stretch) -> dict[PodOwner, list[_Fate]]:
    """Give the pods of each owner that counts, and what may become of them."""
    found: defaultdict[PodOwner, list[_Fate]] = defaultdict(list)
    namespaces = guard["for"].get("namespaces") or ("*",)
    for name, of_node in pods.nodes.items():
        for uid in of_node.pods:
            states = list(pods.states_in(name, uid, span))
            for owner in {state.owner for _, state in states if state.owner is not None}:
                if any(fnmatch.fnmatchcase(owner[0], pattern) for pattern in namespaces):
                    found[owner].append(_fate(pods, view, guard, (name, uid, owner), states, span))
    return found


def _fate(
    pods: GuardedPods,
    view: ClusterView,
    guard: Json,
    which: tuple[str, str, PodOwner],
    states: Iterable[tuple[int, HeardPod]],
    span: Stretch,
) -> _Fate:
    name, uid, owner = which
    node, of_node = view.nodes.get(name), pods.nodes[name]
    taints = {} if node is None else _that_count(node.taints.items(), guard)
    of_taint = {key: OwnerLoss(since_us, name, key) for key, since_us in taints.items()}
    if of_node.is_unsure:
        return _Fate(may_stay=True, may_go=True, may_be_no_loss=True, losses=set(of_taint.values()))
    told, issued = _issued(of_node, uid, span[1])
    fate = _Fate()
    for place, state in states:
        if state.owner != owner:
            fate.may_go = fate.may_be_no_loss = True
            continue
        if not state.absent and not state.exempt:
            key = None if node is None else pods.leaves_for(name, node, uid, place)
            if key is None:
                fate.may_stay = True
                continue
            keys, is_loss = {key, *told}, key in of_taint and told <= {key}
        else:
            keys, is_loss = told, issued is not None and issued[0] in of_taint and issued[1] >= taints[issued[0]]
        fate.may_go = True
        fate.losses |= {of_taint[key] for key in keys if key in of_taint}
        fate.may_be_no_loss |= not is_loss
    return fate


def _issued(of_node: NodePods, uid: str, by_us: int) -> tuple[set[str], tuple[str, int] | None]:
    """Give the keys for which evictions of a pod were told; and the one for which alone it was issued, and when."""
    said = [one for one in of_node.commands if one.pod_uid == uid and one.at_us < by_us]
    told = {one.taint for one in said if one.action == "Evict"}
    if len(told) == 1 and said[-1].action == "Evict":
        return told, (said[-1].taint, said[-1].issued_at_us)
    return told, None


def _that_count(taints: Iterable[tuple[str, int]], guard: Json) -> dict[str, int]:
    patterns = guard["for"].get("taints") or ("*",)
    return {key: since_us for key, since_us in taints if any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)}
