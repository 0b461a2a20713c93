"""Pods that have to leave a node for a taint, or have left for it, as guards of pods count them.

A worker takes in the records of pods and those of nodes each in their order, and both may be late. So of a view of the
nodes there is a least number, of pods that leave whatever the worker knows of them, and a largest one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evictstream.kit.oracle.cluster_views import ViewedNode
from evictstream.kit.oracle.commands import SeenCommand
from evictstream.kit.oracle.decision import MayStay, MustLeave, expected_decision
from evictstream.kit.oracle.histories import HeardNode, HeardPod
from evictstream.kit.oracle.limits import Stretch


class NodePods(NamedTuple):
    """All that was said of a node and its pods.

    Attributes:
        states: of the node.
        pods: the states of each pod, by UID.
        commands: about the pods, in their order.
        is_unsure: whether the states of the pods may be others, as some records were overtaken.
    """

    states: Sequence[HeardNode]
    pods: Mapping[str, Sequence[HeardPod]]
    commands: Sequence[SeenCommand]
    is_unsure: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class GuardedPods:
    """Counts the pods of one cluster.

    Attributes:
        nodes: by name.
        is_built_in_on: whether Kubernetes' own controller is on there.
    """

    nodes: Mapping[str, NodePods]
    is_built_in_on: bool = False
    _decided: dict[tuple[str, int, str, int], MustLeave | MayStay] = field(default_factory=dict, init=False)

    def least(self, name: str, node: ViewedNode, key: str, span: Stretch) -> int:
        """Count those of a node that leave for a key, or have left, in each state that may be known.

        What was appended before the span is known, and nothing that was appended after it.
        """
        of_node = self.nodes[name]
        if of_node.is_unsure:
            return 0
        return sum(
            self._is_due(name, node, uid, key, span) or self._is_issued(name, node, uid, key, span)
            for uid in of_node.pods
        )

    def is_any_due(self, name: str, node: ViewedNode, key: str, span: Stretch) -> bool:
        """Tell whether one is still there that leaves for a key, in each state that may be known."""
        of_node = self.nodes[name]
        return not of_node.is_unsure and any(self._is_due(name, node, uid, key, span) for uid in of_node.pods)

    def most(self, name: str, node: ViewedNode, key: str, by_us: int) -> int:
        """Count those that leave for it, or have left, in some state that may be known at an instant."""
        of_node = self.nodes[name]
        if of_node.is_unsure:
            return len(of_node.pods)
        return sum(self._may_leave(name, node, uid, key, by_us) for uid in of_node.pods)

    def _is_due(self, name: str, node: ViewedNode, uid: str, key: str, span: Stretch) -> bool:
        if not self._is_of(name, uid, key, span[1]):
            return False
        decided = self._decisions(name, node, uid, span)
        return all(isinstance(one, MustLeave) and one.taint == key for one in decided)

    def _is_issued(self, name: str, node: ViewedNode, uid: str, key: str, span: Stretch) -> bool:
        """Tell whether it was issued since the taint came, and not cancelled: it counts even if it has left.

        If it is still there, it counts for the taint for which it would be issued again.
        """
        said = [one for one in self._commands(name, uid) if one.at_us < span[1]]
        if not said or said[-1].action != "Evict" or said[-1].issued_at_us < node.taints[key]:
            return False
        decided = self._decisions(name, node, uid, span)
        return self._is_of(name, uid, key, span[1]) and all(
            one.taint == key if isinstance(one, MustLeave) else one.is_leaving for one in decided
        )

    def _is_of(self, name: str, uid: str, key: str, by_us: int) -> bool:
        """Tell whether it was issued for no other taint: once it has left, it counts for that of its last attempt."""
        return all(
            one.taint == key for one in self._commands(name, uid) if one.action == "Evict" and one.at_us <= by_us
        )

    def _may_leave(self, name: str, node: ViewedNode, uid: str, key: str, by_us: int) -> bool:
        said = (one for one in self._commands(name, uid) if one.at_us <= by_us)
        return any(one.action != "Cancel" and one.taint == key for one in said) or any(
            isinstance(one, MustLeave) and one.taint == key for one in self._decisions(name, node, uid, (0, by_us))
        )

    def _commands(self, name: str, uid: str) -> Iterator[SeenCommand]:
        return (one for one in self.nodes[name].commands if one.pod_uid == uid)

    def _decisions(self, name: str, node: ViewedNode, uid: str, span: Stretch) -> Iterator[MustLeave | MayStay]:
        """Give what is decided in each state of a pod that may be the newest that is known."""
        return (self._decide(name, node, uid, place) for place, _ in self.states_in(name, uid, span))

    def states_in(self, name: str, uid: str, span: Stretch) -> Iterator[tuple[int, HeardPod]]:
        """Give these states, each with its place."""
        states, (from_us, to_us) = self.nodes[name].pods[uid], span
        for place, state in enumerate(states):
            if state.append_at_us > to_us:
                return
            if place + 1 == len(states) or states[place + 1].append_at_us > from_us:
                yield place, state

    def leaves_for(self, name: str, node: ViewedNode, uid: str, place: int) -> str | None:
        """Give the key of the taint for which a pod has to leave in one of its states; None if it may stay."""
        decided = self._decide(name, node, uid, place)
        return decided.taint if isinstance(decided, MustLeave) else None

    def _decide(self, name: str, node: ViewedNode, uid: str, place: int) -> MustLeave | MayStay:
        where = (name, node.state, uid, place)
        if where not in self._decided:
            of_node = self.nodes[name]
            self._decided[where] = expected_decision(
                of_node.states[node.state], of_node.pods[uid][place], is_built_in_on=self.is_built_in_on
            )
        return self._decided[where]
