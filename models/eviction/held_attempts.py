"""What brakes and policies mean for the next attempt of an eviction (docs/messages.md#brakes).

They put attempts off and change nothing else: neither window nor deadline, nor what cancels or ends an eviction.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.leaving_pods import leaving_pods
from evictstream.models.eviction.node_standing import last_left
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import FINISHED, ONLY_OBSERVED_US, Due, Eviction, PodState
from evictstream.models.instants import SECOND_US
from evictstream.models.messages.vocabulary import EvictionState, Outcome
from evictstream.models.steering.brakes import StandingBrake
from evictstream.models.steering.guarded_nodes import GuardedNode
from evictstream.models.steering.holds import Holder, Subject
from evictstream.models.steering.in_flight import PodPlace

BOTH_KNOW_US: Final = 5 * SECOND_US
"""So long after `Held` worker and executor know the same brakes: whose view is older than 3 s acts on no eviction."""


def owed_after_held_us(
    pod: PodState, eviction: Eviction, holders: Iterable[Holder], rules: RuleParameters
) -> int | None:
    """Return when the next attempt is owed after `Held`, if nothing but the executor's brake holds it.

    At the latest when `Held` has been silent for too long: the executor may see another zone than the worker, as of a
    node whose labels have just changed. Earlier if the brake ends before, or is gone. An executor that has not read
    that yet is given time to.
    """
    latest_us = eviction.next_attempt_us
    if latest_us is None:
        return None
    brakes = (each for each in holders if isinstance(each, StandingBrake))
    standing = next((each for each in brakes if each.brake.id == eviction.held_by), None)
    until_us = 0 if standing is None else standing.until_us(pod.uid)
    if until_us is None:
        return latest_us
    if until_us <= (eviction.issued_at_us or 0):
        until_us = latest_us - rules.accepted_silence_us + BOTH_KNOW_US
    return min(latest_us, until_us)


def guarded_node(aggregate: NodeAggregate, *, counts_pods: bool, rules: RuleParameters | None = None) -> GuardedNode:
    """Return a node as guards see it; of one that is gone, its row remembers its zone, its taints, and when that was.

    Its pods are looked at if a guard counts them.
    """
    node = aggregate.node
    if node is None:
        left = last_left(aggregate)
        if left is None:
            return GuardedNode(aggregate.name, gone_us=0)
        taints = [(one.key, one.since_us) for one in left.taints]
        had = {one.key: one.pods for one in left.taints}
        return GuardedNode(aggregate.name, taints, zone=left.zone, gone_us=left.at_us, pods=had)
    taints = [(state.taint.key, state.since_us) for state in node.taints]
    pods = leaving_pods(aggregate, rules) if counts_pods else None
    return GuardedNode(aggregate.name, taints, zone=node.zone, labels=node.labels, pods=pods)


def subject_of(aggregate: NodeAggregate, pod: PodState, eviction: Eviction, due: Due) -> Subject:
    """Return an eviction as brakes and policies see it.

    What became due after the end of a hold is not spread. An attempt that the executor holds has been due since it was
    issued, any other one since it is owed. How long a policy may hold at most counts from when the pod has to leave.

    Args:
        aggregate: of the pod's node.
        pod: the pod.
        eviction: the open one of the pod.
        due: why the pod has to leave; that taint counts, whatever else would be a reason.
    """
    node, traits = aggregate.node, pod.traits
    taints = () if node is None else node.taints
    since_us = next((state.since_us for state in taints if state.taint == due.taint), due.window_start_us)
    return Subject(
        namespace=pod.address.partition("/")[0],
        pod_uid=pod.uid,
        taint=due.taint.key,
        due_us=eviction.held_since_us,
        node=aggregate.name,
        taint_since_us=since_us,
        zone=None if node is None else node.zone,
        node_labels=None if node is None else node.labels,
        traits=traits,
        known=aggregate.known,
        first_issued_us=_first_issued_us(eviction),
        leaves_us=max(eviction.owed_us, due.deadline_us),
    )


def _first_issued_us(eviction: Eviction) -> int | None:
    """Return since when an eviction is in flight; rows of before know its newest attempt only."""
    if eviction.state is EvictionState.SCHEDULED or _is_only_observed(eviction):
        return None
    return eviction.issued_at_us if eviction.first_issued_us is None else eviction.first_issued_us


def _is_only_observed(eviction: Eviction) -> bool:
    """Whether no attempt has followed one that an executor observed; rows of before know its outcome only."""
    return eviction.first_issued_us == ONLY_OBSERVED_US or eviction.outcome is Outcome.OBSERVED


def is_in_flight(pod: PodState | None) -> bool:
    """Whether an eviction is out and its pod is still there: not one that has finished, nor what is only observed."""
    if pod is None or pod.eviction is None or pod.eviction.state is EvictionState.SCHEDULED:
        return False
    if _is_only_observed(pod.eviction):
        return False
    return pod.eviction.state is not EvictionState.DONE or not pod.exemptions & FINISHED


def flying_on(aggregate: NodeAggregate) -> Iterator[tuple[PodPlace, Subject]]:
    """Yield what is in flight on a node, as policies see it."""
    for pod in aggregate.pods.values():
        if pod.eviction is not None and is_in_flight(pod):
            yield (aggregate.timer_key, pod.uid), subject_of(aggregate, pod, pod.eviction, pod.eviction.due)
