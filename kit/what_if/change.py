"""A change that is thought of, and what the service would know after it: the same steps, applied to copies."""

import copy
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from evictstream.kit.rules.kubectl import TaintChanges, reorganize
from evictstream.kit.rules.selectors import Requirement, selects
from evictstream.kit.what_if.facts import NodeFacts
from evictstream.models.eviction import NodeAggregate, NodeEvent, Origin, PodState, RuleParameters, node_slices
from evictstream.models.eviction.taint_history import NO_NODE_IS_READY, ReadySince
from evictstream.models.kubernetes.objects import Node
from evictstream.models.kubernetes.tolerations import Toleration, Tolerations
from evictstream.models.messages.vocabulary import EventType

_NOT_WRITTEN: Final = Origin("", 0, 0)
_NEWER: Final = "what-if"
"""A resource version that is no number, and so newer than every other one."""


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True):
    """What would be done to the chosen nodes, and to the tolerations of their pods.

    Attributes:
        taints: as `kubectl taint --overwrite` would change them.
        cordon: as `kubectl cordon` does.
        toleration_seconds: by key of a toleration, for tolerations that have a time at all.
    """

    taints: TaintChanges = TaintChanges()
    cordon: bool = False
    toleration_seconds: Mapping[str, int] = {}

    @property
    def changes_nodes(self) -> bool:
        """Whether nodes have to be chosen for it."""
        return self.cordon or bool(self.taints.add or self.taints.remove)


class NodeChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes: a node must match everything that is given, so without any condition all nodes match.

    Attributes:
        names: one of these, if there are some.
        selector: conditions on labels.
        zone: the zone, None for any.
    """

    names: frozenset[str] = frozenset()
    selector: tuple[Requirement, ...] = ()
    zone: str | None = None

    def chooses(self, name: str, facts: NodeFacts) -> bool:
        """Tell whether a node is chosen. One whose labels are not all known never is by a selector."""
        if self.names and name not in self.names:
            return False
        if self.zone is not None and facts.zone != self.zone:
            return False
        return not self.selector or (facts.has_all_labels and selects(self.selector, facts.labels))


def changed_facts(facts: NodeFacts, change: PlannedChange) -> NodeFacts:
    """Return a node with other taints, or cordoned."""
    taints = reorganize(facts.taints, change.taints, overwrite=True).taints
    return msgspec.structs.replace(facts, taints=taints, unschedulable=facts.unschedulable or change.cordon)


def is_changed(before: NodeFacts, after: NodeFacts) -> bool:
    """Tell whether a node has other taints, in any order, or another cordon."""
    taints = [{(taint.key, taint.value, taint.effect) for taint in facts.taints} for facts in (before, after)]
    return taints[0] != taints[1] or before.unschedulable != after.unschedulable


def changed_aggregate(
    current: NodeAggregate,
    facts: NodeFacts,
    change: PlannedChange,
    *,
    at_us: int,
    rules: RuleParameters,
    has_ready_since: ReadySince = NO_NODE_IS_READY,
) -> NodeAggregate:
    """Return a node with its pods as they would be known once the change was seen.

    Args:
        current: stays as it is.
        facts: of the node, after the change.
        change: the change of its pods' tolerations; the change of the node is in `facts`.
        at_us: when it is seen, microseconds since 1970.
        rules: parameters of the rules.
        has_ready_since: of its cluster.
    """
    changed = NodeAggregate(current.cluster, current.name, current.first_ordinal)
    changed.node = current.node
    edited: dict[int, Tolerations] = {}
    for pod in current.pods.values():
        changed.put_pod(_changed_pod(pod, change.toleration_seconds, edited, at_us))
    if current.node is not None and change.changes_nodes:
        ready = None if current.node.ready_since_us is None else "True"  # this and labels: for policies
        ready = "Unknown" if current.node.is_unready else ready
        labels = dict(current.node.labels or ())
        node = Node(current.name, current.node.uid, _NEWER, facts.taints, ready=ready, labels=labels)
        event = NodeEvent(type=EventType.MODIFIED, node=node, at_us=at_us, origin=_NOT_WRITTEN)
        for _ in node_slices(changed, event, rules, has_ready_since):
            pass
    return changed


def _changed_pod(pod: PodState, seconds: Mapping[str, int], edited: dict[int, Tolerations], at_us: int) -> PodState:
    changed = copy.copy(pod)
    if not seconds:
        return changed
    tolerations = edited.get(id(pod.tolerations))
    if tolerations is None:
        tolerations = edited[id(pod.tolerations)] = edited_tolerations(pod.tolerations, seconds)
    if tolerations != pod.tolerations:
        changed.tolerations, changed.tolerations_since_us = tolerations, at_us
    return changed


def edited_tolerations(tolerations: Tolerations, seconds: Mapping[str, int]) -> Tolerations:
    """Give every toleration of a key, if it has a time at all, the time that is given for the key."""
    return tuple(
        _edited(toleration, seconds[toleration.key])
        if toleration.key in seconds and toleration.toleration_seconds is not None
        else toleration
        for toleration in tolerations
    )


def _edited(toleration: Toleration, seconds: int) -> Toleration:
    """Give a toleration other seconds; where they were moved, the policy moves the new ones too."""
    built_in, before = toleration.built_in_seconds, toleration.toleration_seconds
    if isinstance(built_in, int) and before is not None:
        built_in += seconds - max(before, 0)
    return msgspec.structs.replace(toleration, toleration_seconds=seconds, built_in_seconds=built_in)


def unknown_names(choice: NodeChoice, names: Iterable[str]) -> list[str]:
    """List the chosen names that no node has."""
    return sorted(choice.names.difference(names))
