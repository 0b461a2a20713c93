"""When Kubernetes' own controller evicts a pod of ours, by the timer that it has set (semantics.md 6.6, 12.12).

That controller sets one timer for each pod, when the pod first has to leave. It never sets it again: whatever an edit,
a move of seconds or another taint makes of the deadline, the timer stays, until the pod tolerates all taints forever or
the node has none. A restart of that controller begins all its windows again, so its timer is this one or a later one.
"""

from typing import NamedTuple

from evictstream.models.eviction.decision import Coverages, built_in_due, built_in_stay_us
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import NodeState, PodState
from evictstream.models.instants import LAST_INSTANT_US
from evictstream.models.kubernetes.handed_over import has_moved
from evictstream.models.kubernetes.tolerations import Tolerations


class Before(NamedTuple):
    """What a node and its pods were before a step, in a cluster where Kubernetes' own controller is on.

    Attributes:
        node: the node.
        coverages: cache for this node.
        tolerations: of the pod that the step is about; None if none of it are changed.
    """

    node: NodeState | None
    coverages: Coverages
    tolerations: Tolerations | None = None


def timer_us(
    node: NodeState | None,
    pod: PodState,
    rules: RuleParameters,
    coverages: Coverages | None,
    *,
    tolerations: Tolerations | None = None,
) -> int | None:
    """Return when the timer of a pod fires; one that is not kept is what `built_in_due` says, with these arguments."""
    if pod.eviction is not None and pod.eviction.built_in_us is not None:
        return pod.eviction.built_in_us
    due = None if node is None else built_in_due(node, pod, rules, coverages, tolerations=tolerations)
    return None if due is None else due.deadline_us


def next_timer_us(
    before: Before,
    node: NodeState | None,
    pod: PodState,
    *,
    at_us: int,
    rules: RuleParameters,
    coverages: Coverages,
) -> int | None:
    """Return the timer of a pod after a change of its tolerations, or of its node's taints; None if it has none.

    Args:
        before: the change.
        node: of the pod, now.
        pod: with the eviction of before the change.
        at_us: of the change, microseconds since 1970.
        rules: `comparison_operators` matters here.
        coverages: cache for this node.
    """
    if node is None or not has_moved(pod.tolerations):
        return None
    stay_us = built_in_stay_us(node, pod, rules, coverages)
    if stay_us is None:
        return None
    known_us = timer_us(before.node, pod, rules, before.coverages, tolerations=before.tolerations)
    if known_us is not None:
        return known_us
    return at_us + stay_us if at_us + stay_us <= LAST_INSTANT_US else None
