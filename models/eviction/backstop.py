"""What outlasts the backstop: Kubernetes' own controller evicts a pod that something holds (semantics.md 12.12).

Neither brake nor policy moves the seconds of a spec. Where these are a backstop, that controller goes on by them.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from evictstream.models.eviction.aggregate import NodeAggregate
from evictstream.models.eviction.built_in_timer import timer_us
from evictstream.models.eviction.decision import Coverages
from evictstream.models.eviction.held_attempts import subject_of
from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import Eviction, NodeState, PodState
from evictstream.models.kubernetes.handed_over import has_moved
from evictstream.models.messages.vocabulary import EvictionState
from evictstream.models.steering.holds import Holder, Subject


class Outlasted(NamedTuple):
    """Evictions that a brake or policy holds for longer than Kubernetes' own controller waits.

    Attributes:
        built_in_us: when that controller evicts the first of their pods, microseconds since 1970.
        evictions: how many there are.
    """

    built_in_us: int
    evictions: int


def built_in_goes_on_us(
    node: NodeState | None,
    pod: PodState,
    rules: RuleParameters,
    *,
    until_us: int | None,
    coverages: Coverages | None = None,
) -> int | None:
    """Return when Kubernetes' own controller evicts a pod that is held; None if it does not before the hold ends.

    The tolerations themselves say that a policy has left it something to do: no setting of a cluster is asked. Where
    that controller is known to be on, the eviction has its timer.

    Args:
        node: of the pod.
        pod: with an eviction; what has left is exempt.
        rules: `comparison_operators` matters here.
        until_us: when the hold ends, microseconds since 1970; None for a hold without an end.
        coverages: cache for this node only, as `decide` has one.
    """
    if node is None or pod.exemptions or not has_moved(pod.tolerations):
        return None
    goes_on_us = timer_us(node, pod, rules, coverages)
    return None if goes_on_us is None or (until_us is not None and until_us <= goes_on_us) else goes_on_us


def outruns_deadline_us(eviction: Eviction) -> int | None:
    """Return when Kubernetes' own controller evicts a pod whose deadline moved behind its timer; None if it did not.

    It never sets the timer again, so an edit of tolerations in an open window does not move it.
    """
    at_us = eviction.built_in_us
    is_ahead = eviction.state is EvictionState.SCHEDULED and at_us is not None and at_us < eviction.due.deadline_us
    return at_us if is_ahead else None


def outlasted_by(
    holders_of: Callable[[str], Sequence[Holder]],
    aggregates: Iterable[NodeAggregate],
    now_us: int,
    rules: RuleParameters,
) -> dict[str, Outlasted]:
    """Find what brakes or policies hold for longer than Kubernetes' own controller waits, by `Holder.holder`.

    An eviction whose deadline lies ahead counts, if it will be held then. What outlasts nothing is left out, and so is
    the limit of a policy: it names no instant.

    Args:
        holders_of: those of a cluster.
        aggregates: nodes with their pods.
        now_us: microseconds since 1970.
        rules: `comparison_operators` matters here.
    """
    found: dict[str, Outlasted] = {}
    of_cluster: dict[str, Sequence[Holder]] = {}
    for aggregate in aggregates:
        cluster = aggregate.cluster
        if cluster not in of_cluster:
            of_cluster[cluster] = holders_of(cluster)
        if of_cluster[cluster]:
            coverages: Coverages = {}
            for pod in aggregate.pods.values():
                eviction = pod.eviction
                if eviction is None:
                    continue
                first_us = built_in_goes_on_us(aggregate.node, pod, rules, until_us=None, coverages=coverages)
                if first_us is not None:
                    subject = subject_of(aggregate, pod, eviction, eviction.due)
                    _compare(subject, of_cluster[cluster], now_us, first_us=first_us, found=found)
    return found


def _compare(
    subject: Subject, holders: Sequence[Holder], now_us: int, *, first_us: int, found: dict[str, Outlasted]
) -> None:
    at_us = max(now_us, subject.due_us)
    for one in holders:
        hold = one.hold(subject, at_us)
        if hold is not None and (hold.until_us is None or hold.until_us > first_us):
            known = found.get(one.holder, Outlasted(first_us, 0))
            found[one.holder] = Outlasted(min(known.built_in_us, first_us), known.evictions + 1)
