"""What a guard of owners counts: those of one cluster that lose all of their pods.

An owner counts once, on the node that it leaves last by the instants of taints: those pods keep it, as long as they are
held. So an incident that covers these nodes is enough for all of these owners.
"""

import bisect
from collections.abc import Collection, Iterator, Mapping, Sequence

from evictstream.models.kubernetes.traits import Owner
from evictstream.models.messages.policy import PolicySpec
from evictstream.models.messages.policy_clauses import GuardMeasure, PolicySelection
from evictstream.models.steering.guarded_nodes import ALL_NODES, Covered, GuardedPart, uncovered
from evictstream.models.steering.guards import GuardCount
from evictstream.models.steering.patterns import Patterns, owner_patterns


class OwnerCount(GuardCount):
    """The owners of one cluster as one guard counts them; nodes and taints of its selection alone can keep their pods.

    `namespaces` and `owners` select owners. What an `except` says of them counts if it says nothing else.
    """

    __slots__ = ("_excluded_owners", "_last", "_losing", "_of_node", "_selected_owners")

    def __init__(self, spec: PolicySpec, cluster: str) -> None:
        """Count nothing yet; as in `GuardCount`."""
        super().__init__(spec, cluster)
        self._selected_owners = _OwnerPatterns(spec.selected)
        self._excluded_owners = None if spec.excluded is None else _excluded(spec.excluded, cluster)
        self._last: dict[Owner, tuple[int, str, str]] = {}  # since when its last node has its taint, and which
        self._losing: dict[str, list[tuple[int, str, Owner]]] = {}  # by key, since when, on which node, and who
        self._of_node: dict[str, set[Owner]] = {}

    def see_owner(self, owner: Owner, places: Mapping[str, Collection[str]]) -> None:
        """Take in an owner: the nodes that its last pods leave, or have left, with the keys; none if a pod stays.

        After a change of a node all owners have to be seen again of which pods leave it.
        """
        before = self._last.get(owner)
        last = max(self._arrivals_of(places), default=None) if places and self._selects(owner) else None
        if last == before:
            return
        if before is not None:
            self._drop(owner, before)
        if last is not None:
            since_us, node, key = self._last[owner] = last
            bisect.insort(self._losing.setdefault(key, []), (since_us, node, owner))
            self._of_node.setdefault(node, set()).add(owner)
            self._look_from(key, ALL_NODES, since_us, since_us)

    def _arrivals_of(self, places: Mapping[str, Collection[str]]) -> Iterator[tuple[int, str, str]]:
        for node, keys in places.items():
            taints = self._taints.get(node, {})
            for key in keys:
                if key in taints:
                    yield taints[key][0], node, key

    def _selects(self, owner: Owner) -> bool:
        excluded = self._excluded_owners
        return self._selected_owners.match(owner) and (excluded is None or not excluded.match(owner))

    def _drop(self, owner: Owner, last: tuple[int, str, str]) -> None:
        since_us, node, key = last
        del self._last[owner]
        losing, owners = self._losing[key], self._of_node[node]
        del losing[bisect.bisect_left(losing, (since_us, node, owner))]
        owners.discard(owner)
        if not losing:
            del self._losing[key]
        if not owners:
            del self._of_node[node]

    def _forget(self, name: str) -> None:
        for owner in list(self._of_node.get(name, ())):
            self._drop(owner, self._last[owner])
        super()._forget(name)

    def losing(self, key: str, covered: Covered) -> list[Owner]:
        """Return the owners that an incident covers, those that have lost all of their pods among them."""
        losing, (from_us, to_us) = self._losing.get(key, []), covered.span
        end = len(losing) if to_us is None else bisect.bisect_left(losing, (to_us + 1,))
        of_span = losing[bisect.bisect_left(losing, (from_us,)) : end]
        return [owner for _, node, owner in of_span if covered.part.has(node, self._zones[node])]

    def _uncovered(
        self,
        key: str,
        part: GuardedPart,
        from_us: int,
        covered: Sequence[Covered],
    ) -> Iterator[tuple[int, int, bool]]:
        """Yield since when owners lose all, each as one, on a node that is there."""
        for at_us, _, _ in uncovered(self._losing.get(key, []), from_us, part, covered, self._zones):
            yield at_us, 1, True


class _OwnerPatterns:
    """What a selection says of owners."""

    __slots__ = ("_namespaces", "_owners")

    def __init__(self, selection: PolicySelection) -> None:
        self._namespaces = Patterns(selection.namespaces)
        self._owners = owner_patterns(selection)

    def match(self, owner: Owner) -> bool:
        """Whether it selects an owner."""
        namespace, kind, name = owner
        return self._namespaces.match(namespace) and self._owners.match(f"{kind}/{name}")


def _excluded(selection: PolicySelection, cluster: str) -> _OwnerPatterns | None:
    """Return the owners that an `except` leaves out with all of their pods; None if it leaves out only some pods."""
    of_owners = PolicySelection(clusters=selection.clusters, namespaces=selection.namespaces, owners=selection.owners)
    is_of_all = selection == of_owners and bool(selection.namespaces or selection.owners)
    return _OwnerPatterns(selection) if is_of_all and Patterns(selection.clusters).match(cluster) else None


def guard_count(spec: PolicySpec, cluster: str) -> GuardCount:
    """Return what counts for the guard of a policy, of a cluster."""
    of_owners = spec.guard is not None and spec.guard.of is GuardMeasure.OWNERS_LOSING_ALL
    return OwnerCount(spec, cluster) if of_owners else GuardCount(spec, cluster)
