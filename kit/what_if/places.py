"""Where pods could go: on which nodes taints, cordons and what the pods themselves ask for would let them land.

Resources, spreading, volumes, affinity between pods and ports are not looked at: a node that admits a pod here may
still be full. Pods with equal tolerations and equal wishes are looked at once, and so are nodes that look alike.
"""

import enum
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from evictstream.kit.rules.scheduling.filtering import HARD_EFFECTS, filter_node
from evictstream.kit.rules.scheduling.node_affinity import (
    ANYWHERE,
    NODE_NAME_FIELD,
    NodePlacement,
    NodeTerm,
)
from evictstream.kit.what_if.facts import NodeFacts
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.tolerations import Tolerations
from evictstream.models.kubernetes.verdict import EvictionTiming, eviction_verdict

_REFUSED, _FOR_A_WHILE, _FOR_GOOD = range(3)


class PlaceToGo(enum.StrEnum):
    """Whether a pod that leaves its node could land on one."""

    SOMEWHERE = "Somewhere"
    FOR_A_WHILE = "ForAWhile"
    """Only on nodes with a `NoExecute` taint that it tolerates for some seconds: it would have to leave again."""
    NOWHERE = "Nowhere"
    NOT_KNOWN = "NotKnown"
    """Taints would let it land, but what it asks for, or the labels of these nodes, are not known."""


class _Profile(msgspec.Struct, frozen=True):
    """The parts of a node that tolerations meet."""

    taints: tuple[Taint, ...]
    unschedulable: bool


class _Reach(msgspec.Struct, frozen=True):
    """Profiles of nodes that give a pod what it asks for, and of nodes that perhaps do."""

    sure: frozenset[int]
    perhaps: frozenset[int]


class Places:
    """All nodes of a cluster, as they are after a change."""

    def __init__(self, nodes: Iterable[tuple[str, NodeFacts]], *, comparison_operators: bool) -> None:
        """Take names and facts of all nodes.

        Args:
            nodes: all nodes; some pods tolerate even the tainted ones.
            comparison_operators: whether `Gt` and `Lt` of tolerations compare.
        """
        self._comparison_operators = comparison_operators
        profiles: dict[_Profile, int] = {}
        self._nodes: list[tuple[str, NodeFacts, int]] = []
        self._named: dict[str, list[int]] = {}
        self._labelled: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._unlabelled: list[int] = []
        for place, (name, facts) in enumerate(nodes):
            self._nodes.append((name, facts, profiles.setdefault(_profile(facts), len(profiles))))
            self._named[name] = [place]
            if facts.has_all_labels:
                for label in facts.labels.items():
                    self._labelled[label].append(place)
            else:
                self._unlabelled.append(place)
        self._profiles = list(profiles)
        everything = frozenset(range(len(profiles)))
        self._reaches: dict[NodePlacement | None, _Reach] = {
            None: _Reach(frozenset(), everything),
            ANYWHERE: _Reach(everything, frozenset()),
        }
        self._welcomes: dict[Tolerations, list[int]] = {}
        self._places: dict[tuple[int, _Reach], PlaceToGo] = {}
        self._kept: list[Tolerations] = []

    def place_for(self, tolerations: Tolerations, placement: NodePlacement | None) -> PlaceToGo:
        """Say where a pod could go; `placement` is None if it is not known."""
        reach = self._reaches.get(placement)
        if reach is None:
            assert placement is not None  # noqa: S101 - None has been there from the beginning
            reach = self._reaches[placement] = self._reach(placement)
        asked = (id(tolerations), reach)
        if asked not in self._places:
            self._kept.append(tolerations)  # so that no other list gets its identity
            self._places[asked] = self._place(self._welcome(tolerations), reach)
        return self._places[asked]

    def _place(self, welcome: list[int], reach: _Reach) -> PlaceToGo:
        sure = max((welcome[profile] for profile in reach.sure), default=_REFUSED)
        perhaps = max((welcome[profile] for profile in reach.perhaps), default=_REFUSED)
        if sure == _FOR_GOOD:
            return PlaceToGo.SOMEWHERE
        if perhaps > sure:
            return PlaceToGo.NOT_KNOWN
        return PlaceToGo.FOR_A_WHILE if sure == _FOR_A_WHILE else PlaceToGo.NOWHERE

    def _welcome(self, tolerations: Tolerations) -> list[int]:
        welcome = self._welcomes.get(tolerations)
        if welcome is None:
            welcome = self._welcomes[tolerations] = [
                self._welcome_at(tolerations, profile) for profile in self._profiles
            ]
        return welcome

    def _welcome_at(self, tolerations: Tolerations, profile: _Profile) -> int:
        gate = self._comparison_operators
        if not filter_node(
            tolerations, profile.taints, unschedulable=profile.unschedulable, comparison_operators=gate
        ).fits:
            return _REFUSED
        verdict = eviction_verdict(tolerations, profile.taints, comparison_operators=gate)
        return _FOR_GOOD if verdict.eviction is EvictionTiming.NEVER else _FOR_A_WHILE

    def _reach(self, placement: NodePlacement) -> _Reach:
        sure, perhaps = set[int](), set[int]()
        for place in self._near(placement):
            name, facts, profile = self._nodes[place]
            if profile in sure:
                continue
            is_admitted = placement.admits(name, facts.labels if facts.has_all_labels else None)
            if is_admitted is not False:
                (perhaps if is_admitted is None else sure).add(profile)
        return _Reach(frozenset(sure), frozenset(perhaps - sure))

    def _near(self, placement: NodePlacement) -> Iterable[int]:
        """Give the nodes that may meet it, a few of all where an index helps."""
        if placement.selector:
            lists = [self._labelled.get(label, ()) for label in placement.selector]
            return (*min(lists, key=len), *self._unlabelled)
        near: dict[int, None] = {}
        for term in placement.terms or ():
            near |= dict.fromkeys(self._near_term(term))
        return near

    def _near_term(self, term: NodeTerm) -> Iterable[int]:
        for field in term.match_fields or ():
            if field.key == NODE_NAME_FIELD and field.operator == "In":
                return [place for name in field.values for place in self._named.get(name, ())]
        for label in term.match_expressions or ():
            if label.operator == "In":
                listed = [place for value in label.values for place in self._labelled.get((label.key, value), ())]
                return (*listed, *self._unlabelled)
        return range(len(self._nodes))


def _profile(facts: NodeFacts) -> _Profile:
    # Without `timeAdded`, which no rule looks at.
    taints = tuple(
        Taint(taint.key, taint.value, taint.effect) for taint in facts.taints if taint.effect in HARD_EFFECTS
    )
    return _Profile(taints, facts.unschedulable)
