"""The decision about one pod: when it has to leave and why, or why it need not (semantics.md 12.5).

A function of recorded facts alone. It needs no clock: it gives an instant, and whoever has a clock compares.
"""

import enum

from evictstream.models.eviction.coverage import Coverage, Stay, cover
from evictstream.models.eviction.rules import Rules
from evictstream.models.eviction.state import FINISHED, MIRROR, TERMINATING, Due, NodeState, Outage, PodState
from evictstream.models.eviction.windows import untolerated_since_us, window_start_us
from evictstream.models.instants import LAST_INSTANT_US
from evictstream.models.messages.vocabulary import Verdict

_UNTOLERATED = Verdict.UNTOLERATED  # bound once: an enum's members are slow to look up, and this runs per pod
_TOLERATION_EXPIRES = Verdict.TOLERATION_EXPIRES


class Idle(enum.Enum):
    """Why nothing is due for a pod that is known and bound, in the order in which it is looked at."""

    TERMINATING = enum.auto()
    FINISHED = enum.auto()
    MIRROR = enum.auto()
    NODE_UNKNOWN = enum.auto()
    NO_TAINT = enum.auto()
    TOLERATED = enum.auto()
    UNDECIDABLE = enum.auto()


def decide(
    node: NodeState | None, pod: PodState, rules: Rules, covered: dict[int, Coverage] | None = None
) -> Due | Idle:
    """Decide about a pod.

    Args:
        node: its node, None if that is not known.
        pod: the pod.
        rules: only `comparison_operators` matters here.
        covered: what was worked out for other pods with the same tolerations, by the identity of the shared tuple;
            added to. Only good for this very `node` and these `rules`, and while the pods live.

    Returns:
        `Due` with the deadline, which may lie in the past ("due now") or ahead ("due then"); or the reason why
        nothing is due. A time past the year 9999 is no deadline.
    """
    if pod.marks:
        return _idle_by_marks(pod.marks)
    if node is None:
        return Idle.NODE_UNKNOWN
    if not node.taints:
        return Idle.UNDECIDABLE if node.is_undecidable else Idle.NO_TAINT
    coverage = covered.get(id(pod.tolerations)) if covered is not None else None
    if coverage is None:
        coverage = cover(node, pod.tolerations, comparison_operators=rules.comparison_operators)
        if covered is not None:
            covered[id(pod.tolerations)] = coverage
    state = coverage.untolerated
    if state is not None:
        since_us = untolerated_since_us(state, pod)
        return Due(since_us, _UNTOLERATED, state.taint, None, window_start_us(state, pod))
    earliest: Due | None = None
    for stay in coverage.stays:
        expiry = _expiry(node.outage, pod, stay)
        # On equal times the first taint in node order is the reason.
        if expiry is not None and (earliest is None or expiry.deadline_us < earliest.deadline_us):
            earliest = expiry
    return Idle.TOLERATED if earliest is None else earliest


def _expiry(outage: Outage | None, pod: PodState, stay: Stay) -> Due | None:
    """Compute when one taint's toleration runs out; None if not before the end of year 9999."""
    start_us = window_start_us(stay.state, pod)
    deadline_us = start_us + stay.window_us
    outage_since_us = None
    if outage is not None and stay.outage_us is not None:
        bound_us = max(outage.since_us, pod.since_us) + stay.outage_us
        if bound_us < deadline_us:
            deadline_us = bound_us
            outage_since_us = outage.since_us
    if deadline_us > LAST_INSTANT_US:
        return None
    return Due(deadline_us, _TOLERATION_EXPIRES, stay.state.taint, stay.toleration, start_us, outage_since_us)


def _idle_by_marks(marks: int) -> Idle:
    if marks & TERMINATING:
        return Idle.TERMINATING
    if marks & FINISHED:
        return Idle.FINISHED
    return Idle.MIRROR if marks & MIRROR else Idle.UNDECIDABLE
