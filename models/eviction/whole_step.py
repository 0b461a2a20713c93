"""The steps about a node with all its pods: decide everything anew, or forget everything."""

from collections.abc import Iterator

from evictstream.models.eviction.changes import Changes
from evictstream.models.eviction.lifecycle import end
from evictstream.models.eviction.rules import Rules
from evictstream.models.eviction.slices import GONE_IN_SLICE, PODS_IN_SLICE, reconcile_all, whole
from evictstream.models.eviction.state import NodeAggregate
from evictstream.models.eviction.step import Step
from evictstream.models.messages.events import Origin
from evictstream.models.messages.vocabulary import CauseKind, EvictionState, Verdict


def decide_all(aggregate: NodeAggregate, at_us: int, rules: Rules, origin: Origin | None = None) -> Changes:
    """Decide about every pod anew, at once; `decide_all_slices` says what happens."""
    return whole(decide_all_slices(aggregate, at_us, rules, origin))


def decide_all_slices(
    aggregate: NodeAggregate, at_us: int, rules: Rules, origin: Origin | None = None
) -> Iterator[Changes]:
    """Decide about every pod anew, as is done once after catching up (semantics.md 12.7, row "restart").

    Windows are as recorded, so this changes something only if the rules are other ones than before.

    Args:
        aggregate: of the node; changed in place.
        at_us: now, or the instant of the record that asked for it.
        rules: the numbers.
        origin: the record that asked for it, if any.

    Yields:
        The changes, slice by slice.
    """
    step = Step(aggregate, rules, at_us, CauseKind.CATCH_UP, origin)
    yield from reconcile_all(step)
    yield step.finish()


def forget(aggregate: NodeAggregate, at_us: int, rules: Rules, origin: Origin | None = None) -> Changes:
    """Forget a node, at once; `forget_slices` says what happens."""
    return whole(forget_slices(aggregate, at_us, rules, origin))


def forget_slices(
    aggregate: NodeAggregate, at_us: int, rules: Rules, origin: Origin | None = None
) -> Iterator[Changes]:
    """Forget a node whose cluster was taken out of the service: cancel what is open, delete every row.

    The aggregate is empty afterwards. Nothing is remembered, not even how many evictions were opened for a pod: if the
    cluster is fed again later, give its aggregates a `first_ordinal` above all that were used.

    Args:
        aggregate: of the node; changed in place.
        at_us: the instant of the record.
        rules: the numbers.
        origin: the record that asked for it.

    Yields:
        The changes, slice by slice.
    """
    step = Step(aggregate, rules, at_us, CauseKind.FORGET, origin)
    for number, pod in enumerate(list(aggregate.pods.values()), start=1):
        if pod.eviction is not None:
            if pod.eviction.state is not EvictionState.DONE:
                end(step, pod, pod.eviction, Verdict.CLUSTER_FORGOTTEN)
            pod.eviction = None
            step.write_eviction(pod)
        aggregate.drop_pod(pod)
        step.delete_pod(pod.uid)
        if number % PODS_IN_SLICE == 0:
            yield step.hand_over()
    for number, uid in enumerate(aggregate.gone, start=1):
        step.write_gone(uid, None)
        if number % GONE_IN_SLICE == 0:
            yield step.hand_over()
    aggregate.gone.clear()
    if aggregate.node is not None or aggregate.departed:
        aggregate.node = None
        aggregate.departed.clear()
        step.write_node()
    aggregate.orphans.clear()
    aggregate.purge_at_us = None
    yield step.finish()
