"""The owners of one cluster of which all pods leave: what guards ask that count them (`models/steering/guards.py`).

Steps tell of each pod that comes, goes or has to leave, 1 µs each; the pods of a node are looked at once in each look
after one of them has to leave. All of it follows from rows.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from evictstream.models.eviction.leaving_pods import leaving_owners
from evictstream.models.eviction.pod_owners import has_to_leave, owner_of
from evictstream.models.eviction.state import Eviction, NodeAggregate, PodCounts, PodState
from evictstream.models.kubernetes.traits import Owner


class LosingOwners:
    """Owners with pods that leave, or have left, and of those that stay how many. It takes the place of other counts.

    An owner loses all of its pods if none stays and some leave or have left for a taint that their node still has.
    """

    __slots__ = ("_beside", "_changed", "_has_changed", "_nodes", "_of_node", "_places", "_staying", "_uncounted")

    def __init__(
        self,
        nodes: Iterable[NodeAggregate],
        beside: PodCounts | None = None,
        has_changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`nodes` are to be counted; `beside` counts their pods already, and `has_changed` is told to look."""
        self._uncounted = list(nodes)
        self._beside = beside
        self._has_changed = has_changed
        self._staying: Counter[Owner] = Counter()  # pods that are bound and do not have to leave
        self._of_node: dict[str, dict[Owner, tuple[str, ...]]] = {}  # for which keys pods of a node leave or have left
        self._places: dict[Owner, dict[str, tuple[str, ...]]] = {}  # the same, by owner and node
        self._changed: set[Owner] = set()
        self._nodes: set[str] = set()  # to be looked at

    def count(self, pods: int) -> bool:
        """Count the pods of some more nodes, as many as these or a few more; returns whether all are counted."""
        while self._uncounted and pods > 0:
            node = self._uncounted.pop()
            node.workloads = self
            self._nodes.add(node.name)
            for pod in node.pods.values():
                self._count(pod, 1)
            pods -= 1 + len(node.pods)
        return not self._uncounted

    def put(self, aggregate: NodeAggregate, pod: PodState) -> None:
        """Count a pod as it is now; it is not counted."""
        if self._beside is not None:
            self._beside.put(aggregate, pod)
        self._count(pod, 1)
        if pod.eviction is not None:  # it may have another owner than before
            self.look_at_node(aggregate.name)
            self._has_changed()

    def drop(self, pod: PodState) -> None:
        """Count a pod no longer; it is as when it was counted."""
        if self._beside is not None:
            self._beside.drop(pod)
        self._count(pod, -1)

    def moved(self, aggregate: NodeAggregate, pod: PodState, before: Eviction | None) -> None:
        """Take note that the eviction of a pod is another one now than before."""
        if self._beside is not None:
            self._beside.moved(aggregate, pod, before)
        owner, leaves = owner_of(pod), has_to_leave(pod.eviction)
        if owner is not None and leaves != has_to_leave(before):
            self._stay(owner, -1 if leaves else 1)

    def look_at(self, aggregate: NodeAggregate, uids: Collection[str]) -> None:
        """Tell what else counts them that something else of leaving pods has changed."""
        if self._beside is not None:
            self._beside.look_at(aggregate, uids)

    def _count(self, pod: PodState, by: int) -> None:
        owner = owner_of(pod)
        if owner is not None and not has_to_leave(pod.eviction):
            self._stay(owner, by)

    def _stay(self, owner: Owner, by: int) -> None:
        """Count one more (1) or one less (-1) that stays."""
        staying = self._staying[owner] = self._staying[owner] + by
        if not staying:
            del self._staying[owner]
        if staying == max(0, by) and owner in self._places:  # the first that stays, or none any more
            self._changed.add(owner)
            self._has_changed()

    def look_at_node(self, name: str) -> None:
        """Take note that other pods of a node leave, or have left, than before."""
        self._nodes.add(name)

    def look_again(self, name: str) -> None:
        """Take note that a node has changed: all owners of which pods leave it are told again."""
        self._see(name, {})
        self._nodes.add(name)

    def look(self, nodes: Mapping[str, NodeAggregate]) -> Iterator[tuple[Owner, Mapping[str, Collection[str]]]]:
        """Give the owners of which something has changed, with the nodes that their pods leave, or have left, and why.

        Nothing of those of which a pod stays.
        """
        for name in self._nodes:
            aggregate = nodes.get(name)
            self._see(name, {} if aggregate is None else leaving_owners(aggregate))
        self._nodes.clear()
        changed, self._changed = self._changed, set()
        for owner in changed:
            yield owner, {} if owner in self._staying else self._places.get(owner, {})

    def _see(self, name: str, after: dict[Owner, tuple[str, ...]]) -> None:
        before = self._of_node.pop(name, {})
        if after:
            self._of_node[name] = after
        for owner in before.keys() | after.keys():
            keys = after.get(owner)
            if keys == before.get(owner):
                continue
            self._changed.add(owner)
            places = self._places.setdefault(owner, {})
            if keys:
                places[name] = keys
                continue
            del places[name]
            if not places:
                del self._places[owner]
