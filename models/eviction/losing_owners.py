"""The owners of one cluster of which all pods leave: what guards ask that count them (`models/steering/guards.py`).

Steps tell of each pod that comes, goes or has to leave, 1 µs each; the pods of a node are looked at once in each look
after one of them has to leave. What is remembered of deleted pods is looked at once for the same taints of a node. All
of it follows from rows.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from evictstream.models.eviction.aggregate import NodeAggregate, PodCounts
from evictstream.models.eviction.leaving_pods import deleted_leaving, has_left, leaving_owners, newest_taints_us
from evictstream.models.eviction.pod_owners import has_to_leave, owner_of
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import DeletionMemory, Eviction, PodState
from evictstream.models.kubernetes.traits import Owner


class _NodeOwners:
    """The owners of which pods leave a node, or have left it.

    Attributes:
        since_us: since when the newest taint of each key is there.
        there: owners of pods that are still there and leave, with the keys in order.
        left: how many deleted pods of each owner have left, by key.
        changed: owners of which other pods have left than when the node was looked at.
    """

    __slots__ = ("changed", "left", "since_us", "there")

    def __init__(self, since_us: dict[str, int]) -> None:
        self.since_us = since_us
        self.there: dict[Owner, tuple[str, ...]] = {}
        self.left: dict[str, Counter[Owner]] = {}
        self.changed: set[Owner] = set()

    def count_left(self, key: str, owner: Owner, by: int) -> None:
        """Count a deleted pod of an owner that has left for a key."""
        counts = self.left.setdefault(key, Counter())
        counts[owner] += by
        if not counts[owner]:
            del counts[owner]
        self.changed.add(owner)

    def keys_of(self, owner: Owner) -> tuple[str, ...]:
        """Return the keys for which pods of an owner leave or have left."""
        there = self.there.get(owner, ())
        left = [key for key, counts in self.left.items() if owner in counts and key not in there]
        return tuple(sorted((*there, *left))) if left else there

    def owners(self) -> Iterator[Owner]:
        """Yield all of them, some more than once."""
        yield from self.there
        for counts in self.left.values():
            yield from counts


class LosingOwners:
    """Owners with pods that leave, or have left, and of those that stay how many. It takes the place of other counts.

    An owner loses all of its pods if none stays and some leave or have left for a taint that their node still has.
    """

    __slots__ = ("_changed", "_has_changed", "_nodes", "_of_node", "_others", "_places", "_staying", "_uncounted")

    def __init__(
        self,
        nodes: Iterable[NodeAggregate],
        others: PodCounts | None = None,
        has_changed: Callable[[], None] = lambda: None,
    ) -> None:
        """`nodes` are to be counted; `others` counts their pods already, and `has_changed` has them looked at."""
        self._uncounted = list(nodes)
        self._others = others
        self._has_changed = has_changed
        self._staying: Counter[Owner] = Counter()  # pods that are bound and do not have to leave
        self._of_node: dict[str, _NodeOwners] = {}
        self._places: dict[Owner, dict[str, tuple[str, ...]]] = {}  # for which keys pods leave or have left, by node
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
        if self._others is not None:
            self._others.put(aggregate, pod)
        self._count(pod, 1)
        if pod.eviction is not None:  # it may have another owner than before
            self.look_at_node(aggregate.name)
            self._has_changed()

    def drop(self, pod: PodState) -> None:
        """Count a pod no longer; it is as when it was counted."""
        if self._others is not None:
            self._others.drop(pod)
        self._count(pod, -1)

    def moved(self, aggregate: NodeAggregate, pod: PodState, before: Eviction | None) -> None:
        """Take note that the eviction of a pod is another one now than before."""
        if self._others is not None:
            self._others.moved(aggregate, pod, before)
        owner, leaves = owner_of(pod), has_to_leave(pod.eviction)
        if owner is not None and leaves != has_to_leave(before):
            self._stay(owner, -1 if leaves else 1)

    def look_at(self, aggregate: NodeAggregate, uids: Collection[str]) -> None:
        """Tell what else counts them that something else of leaving pods has changed."""
        if self._others is not None:
            self._others.look_at(aggregate, uids)

    def left(self, node: str, memory: DeletionMemory, by: int) -> None:
        """Count a deleted pod; the look after this one counts by itself what a node has had before."""
        of_node = self._of_node.get(node)
        if of_node is not None and memory.owner is not None and has_left(memory, of_node.since_us):
            of_node.count_left(memory.evicted_for, memory.owner, by)
            self._nodes.add(node)

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
        of_node = self._of_node.get(name)
        if of_node is not None:
            self._changed.update(of_node.owners())
        self._nodes.add(name)

    def look(
        self, nodes: Mapping[str, NodeAggregate], rules: RuleParameters | None = None
    ) -> Iterator[tuple[Owner, Mapping[str, Collection[str]]]]:
        """Give the owners of which something has changed, with the nodes that their pods leave, or have left, and why.

        Nothing of those of which a pod stays.
        """
        for name in self._nodes:
            self._see(name, nodes.get(name), rules)
        self._nodes.clear()
        changed, self._changed = self._changed, set()
        for owner in changed:
            yield owner, {} if owner in self._staying else self._places.get(owner, {})

    def _see(self, name: str, aggregate: NodeAggregate | None, rules: RuleParameters | None) -> None:
        since_us = {} if aggregate is None else newest_taints_us(aggregate)
        before = self._of_node.pop(name, None)
        of_node, changed = before, set[Owner]()
        if of_node is None or of_node.since_us != since_us:
            changed.update(() if before is None else before.owners())
            of_node = _NodeOwners(since_us)
            for key, memory in () if aggregate is None else deleted_leaving(aggregate, since_us):
                if memory.owner is not None:
                    of_node.count_left(key, memory.owner, 1)
        there = {} if aggregate is None else leaving_owners(aggregate, since_us, rules)
        changed.update(of_node.changed)
        changed.update(
            owner for owner in of_node.there.keys() | there.keys() if of_node.there.get(owner) != there.get(owner)
        )
        of_node.there, of_node.changed = there, set()
        if since_us:
            self._of_node[name] = of_node
        for owner in changed:
            self._place(owner, name, of_node.keys_of(owner))

    def _place(self, owner: Owner, name: str, keys: tuple[str, ...]) -> None:
        """Keep for which keys pods of an owner leave or have left a node; none if none does."""
        places = self._places.setdefault(owner, {})
        if keys != places.get(name, ()):
            self._changed.add(owner)
            if keys:
                places[name] = keys
            else:
                del places[name]
        if not places:
            del self._places[owner]
