"""Owners of pods, as far as pods of theirs leave: what a control plane needs that places pods elsewhere in time.

Steps keep the counts: two microseconds for each pod that comes, goes or terminates, and half a microsecond for each
change of an eviction. What an owner's record says is computed from its leaving pods when the record is written.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.pod_owners import has_to_leave, owner_of
from evictstream.models.eviction.state import DeletionMemory, Eviction, PodState
from evictstream.models.kubernetes.traits import Owner
from evictstream.models.messages.workload import MOST_STEPS_OF_WORKLOAD


class Descent(NamedTuple):
    """Deadlines at which an owner loses pods; of several, the first and the last. Microseconds since 1970.

    Attributes:
        at_us: the first of them.
        until_us: the last of them.
        left: how many of its bound pods are left then.
    """

    at_us: int
    until_us: int
    left: int


class LeavingPods(NamedTuple):
    """What becomes of the pods of an owner. Instants are microseconds since 1970.

    Attributes:
        bound: its pods on nodes that neither terminate nor have finished.
        leaving: those of them with an open eviction.
        held: those of them that are due and held.
        first_us: the first deadline.
        last_us: the last deadline.
        zones: of their nodes, where they are known.
        taints: keys of the taints for which they leave.
        descent: how the bound pods grow fewer; those that are held stay.
    """

    bound: int
    leaving: int
    held: int
    first_us: int
    last_us: int
    zones: Collection[str]
    taints: Collection[str]
    descent: tuple[Descent, ...]


class Workloads:
    """The owners of one cluster.

    Attributes:
        changed: those whose pods have changed since somebody took note, if any of theirs leaves or has left.
    """

    __slots__ = ("_bound", "_leaving", "changed")

    def __init__(self) -> None:
        self._bound: Counter[Owner] = Counter()
        self._leaving: dict[Owner, dict[str, NodeAggregate]] = {}
        self.changed: set[Owner] = set()

    def put(self, aggregate: NodeAggregate, pod: PodState) -> None:
        """Count a pod as it is now; it is not counted."""
        owner = owner_of(pod)
        if owner is None:
            return
        self._bound[owner] += 1
        if has_to_leave(pod.eviction):
            self._leaving.setdefault(owner, {})[pod.uid] = aggregate
        if owner in self._leaving:
            self.changed.add(owner)

    def drop(self, pod: PodState) -> None:
        """Count a pod no longer; it is as when it was counted."""
        owner = owner_of(pod)
        if owner is None:
            return
        self._bound[owner] -= 1
        if not self._bound[owner]:
            del self._bound[owner]
        self._stays(owner, pod.uid)

    def moved(self, aggregate: NodeAggregate, pod: PodState, before: Eviction | None) -> None:
        """Take note that the eviction of a pod is another one now than before."""
        owner = owner_of(pod)
        if owner is None or aggregate.pods.get(pod.uid) is not pod:
            return
        if has_to_leave(pod.eviction):
            self._leaving.setdefault(owner, {})[pod.uid] = aggregate
            self.changed.add(owner)
        elif has_to_leave(before):
            self._stays(owner, pod.uid)

    def look_at(self, aggregate: NodeAggregate, uids: Collection[str]) -> None:
        """Take note that something else of leaving pods has changed: their zone, or what holds them."""
        for uid in uids:
            pod = aggregate.pods.get(uid)
            owner = None if pod is None else owner_of(pod)
            if owner is not None and uid in self._leaving.get(owner, ()):
                self.changed.add(owner)

    def left(self, node: str, memory: DeletionMemory, by: int) -> None:
        """Pass over what is remembered of deleted pods: it says nothing of pods that are bound."""

    def _stays(self, owner: Owner, uid: str) -> None:
        leaving = self._leaving.get(owner)
        if leaving is None:
            return
        self.changed.add(owner)
        leaving.pop(uid, None)
        if not leaving:
            del self._leaving[owner]

    def bound(self, owner: Owner) -> int:
        """Count the pods of an owner on nodes that neither terminate nor have finished."""
        return self._bound[owner]

    def losses(self) -> Iterator[tuple[int, Owner]]:
        """Give the owners that have changed, each with how many of its pods leave, negative: the least goes first."""
        return ((-len(self._leaving.get(owner, ())), owner) for owner in self.changed)

    def owners(self) -> Collection[Owner]:
        """Return all owners of which pods leave."""
        return self._leaving.keys()

    def leaving(self, owner: Owner, held: Collection[tuple[bytes, str]] = ()) -> LeavingPods | None:
        """Return what becomes of an owner's pods; None if none leaves. `held` has node and UID of what is held."""
        leaving = self._leaving.get(owner)
        if not leaving:
            return None
        dues = {uid: eviction.due for uid, node in leaving.items() if (eviction := node.pods[uid].eviction) is not None}
        held_uids = {uid for uid, node in leaving.items() if (node.timer_key, uid) in held} if held else set()
        nodes = {id(node): node for node in leaving.values()}.values()
        return LeavingPods(
            bound=self._bound[owner],
            leaving=len(leaving),
            held=len(held_uids),
            first_us=min(due.deadline_us for due in dues.values()),
            last_us=max(due.deadline_us for due in dues.values()),
            zones=sorted({node.node.zone for node in nodes if node.node is not None and node.node.zone}),
            taints=sorted({due.taint.key for due in dues.values()}),
            descent=descent(
                self._bound[owner], Counter(due.deadline_us for uid, due in dues.items() if uid not in held_uids)
            ),
        )


def descent(bound: int, losses: Mapping[int, int]) -> tuple[Descent, ...]:
    """Return how so many pods grow fewer.

    The first steps are of one deadline each, since they come next. The last possible one stands for all later deadlines
    and names the first and the last of them: who takes its `at_us` for all of them is never late.

    Args:
        bound: pods before the first deadline.
        losses: how many of them leave, by deadline.
    """
    left, steps = bound, list[Descent]()
    for at_us, leaving in sorted(losses.items()):
        left -= leaving
        if len(steps) < MOST_STEPS_OF_WORKLOAD:
            steps.append(Descent(at_us, at_us, left))
        else:
            steps[-1] = Descent(steps[-1].at_us, at_us, left)
    return tuple(steps)
