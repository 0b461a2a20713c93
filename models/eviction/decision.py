"""The decision about one pod: when it has to leave and why, or why it need not (semantics.md 12.5).

The decision depends on recorded facts alone. It needs no clock: it is an instant, which the caller compares with its
clock.

Windows are derived and never stored (semantics.md 12.4). The window of a taint and a pod opens at the later of two
events, the taint's arrival on the node and the first sight of the pod there. It closes when the taint or the pod goes.
Where the value of the taint plays a part in which toleration is in use, the window of that toleration opens no earlier
than that value came. Each taint, each value and each pod keeps its own start, so the windows do not depend on how node
and pod events interleave.
"""

import enum
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import msgspec

from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import (
    FINISHED,
    MIRROR,
    TERMINATING,
    Due,
    NodeState,
    Outage,
    PodState,
    TaintState,
)
from evictstream.models.instants import LAST_INSTANT_US, SECOND_US
from evictstream.models.kubernetes.handed_over import for_built_in
from evictstream.models.kubernetes.matching import bounded_seconds, first_match, looks_at_value
from evictstream.models.kubernetes.taints import HEALTH_KEYS, NO_EXECUTE, Taint, other_health_key
from evictstream.models.kubernetes.toleration_index import TolerationIndex
from evictstream.models.kubernetes.tolerations import Toleration, Tolerations
from evictstream.models.messages.vocabulary import Verdict

_UNTOLERATED = Verdict.UNTOLERATED  # see `evictstream.models.eviction` for these constants
_TOLERATION_EXPIRES = Verdict.TOLERATION_EXPIRES

# With more pairs of taint and toleration than this, building an index once is cheaper than trying every pair. A usual
# node has one to three taints, a usual pod two to six tolerations.
INDEXED_PAIRS: Final = 64

MOST_COVERAGES: Final = 100
"""Lists of tolerations whose coverage one step keeps; the pods of a node share some ten. One kept has an entry for each
taint, at most 1,000, so all together take some 8 MB; others are worked out for each pod that has them."""


class _Finder(NamedTuple):
    """Finds in one list of tolerations.

    Attributes:
        in_use: the toleration in use for a taint, None if there is none.
        looks_at_value: for a taint and that toleration, whether the taint's value plays a part in its being in use.
    """

    in_use: Callable[[Taint], Toleration | None]
    looks_at_value: Callable[[Taint, Toleration], bool]


class NothingDue(enum.Enum):
    """Why nothing is due for a pod that is known and bound, in the order in which `decide` checks."""

    TERMINATING = enum.auto()
    FINISHED = enum.auto()
    MIRROR = enum.auto()
    NODE_UNKNOWN = enum.auto()
    NO_TAINT = enum.auto()
    TOLERATED = enum.auto()
    UNDECIDABLE = enum.auto()
    BUILT_IN = enum.auto()
    """It has to leave, and Kubernetes' own controller sees to it (semantics.md 12.12)."""


class ToleratedTaint(msgspec.Struct, frozen=True, gc=False):
    """A taint that is tolerated for a while.

    Attributes:
        state: the taint.
        toleration: the one in use for it.
        since_us: since when it is in use for this taint as far as the node tells: since the taint, or its value, came.
        window_us: how long it is tolerated, from the start of the window; never negative, of any size.
        outage_us: how long an outage may last before the pod has to leave, whatever the two health taints do
            meanwhile; None if the taint is no health taint, the other health taint is tolerated forever, or a value
            that plays a part has changed since its taint came.
    """

    state: TaintState
    toleration: Toleration
    since_us: int
    window_us: int
    outage_us: int | None


class Coverage(msgspec.Struct, frozen=True, gc=False):
    """How a list of tolerations covers the `NoExecute` taints of a node.

    Attributes:
        untolerated: the first taint in node order that no toleration covers; the others do not matter then.
        tolerated: the taints that are tolerated for a while, in node order; without those that cannot be the reason
            for any pod, as an earlier one with the same toleration came no later.
    """

    untolerated: TaintState | None
    tolerated: tuple[ToleratedTaint, ...] = ()


Coverages: TypeAlias = dict[int, tuple[Tolerations, Coverage]]
"""Cache for one step: the coverage of each list of tolerations. Most pods of a node share a few lists.

The key is the identity of the list: equal lists are one shared tuple. The hash of a list would be computed again for
each pod, which doubles the time of a look-up and grows with the list. The entry holds the list, so that no other list
can get its identity. A cache is valid for one `NodeState` and one `RuleParameters`.
"""


def decide(
    node: NodeState | None, pod: PodState, rules: RuleParameters, coverages: Coverages | None = None
) -> Due | NothingDue:
    """Decide about a pod.

    Args:
        node: its node, None if the node is not known.
        pod: the pod.
        rules: `comparison_operators` and `built_in` matter here.
        coverages: cache of this step, for this `node` only; `decide` adds to it. Without one nothing is cached.

    Returns:
        `Due` with the deadline, which may lie in the past ("due now") or ahead ("due then"); or the reason why
        nothing is due. A time past the year 9999 is no deadline.
    """
    if pod.exemptions:
        return _exempt(pod.exemptions)
    if node is None:
        return NothingDue.NODE_UNKNOWN
    if not node.taints:
        return NothingDue.UNDECIDABLE if node.is_undecidable else NothingDue.NO_TAINT
    due = _due(node, pod, pod.tolerations, rules, coverages)
    if due is None:
        return NothingDue.TOLERATED
    if rules.built_in and not _is_later_for_built_in(node, pod, due, rules, coverages):
        return NothingDue.BUILT_IN
    return due


def built_in_due(
    node: NodeState,
    pod: PodState,
    rules: RuleParameters,
    coverages: Coverages | None = None,
    *,
    tolerations: Tolerations | None = None,
) -> Due | None:
    """Return what the built-in controller's deadline is by its spec and by this decision's windows; None for never.

    Its timer is another one after an edit in an open window (`built_in_timer.py`).

    Args:
        node: of the pod.
        pod: the pod.
        rules: `comparison_operators` matters here.
        coverages: cache for this node only.
        tolerations: others than the pod has now.
    """
    return _due(node, pod, for_built_in(pod.tolerations if tolerations is None else tolerations), rules, coverages)


def built_in_stay_us(node: NodeState, pod: PodState, rules: RuleParameters, coverages: Coverages | None) -> int | None:
    """Return how long the built-in controller lets a pod stay from now on, if it has no timer; None for forever."""
    coverage = _coverage(node, for_built_in(pod.tolerations), rules, coverages)
    if coverage.untolerated is not None:
        return 0
    return min((each.window_us for each in coverage.tolerated), default=None)


def _is_later_for_built_in(
    node: NodeState, pod: PodState, due: Due, rules: RuleParameters, coverages: Coverages | None
) -> bool:
    """Return whether the built-in controller, by the spec, would do later or never what is due."""
    if due.verdict is _UNTOLERATED or for_built_in(pod.tolerations) is pod.tolerations:
        return False
    spec = built_in_due(node, pod, rules, coverages)
    return spec is None or spec.deadline_us > due.deadline_us


def _due(
    node: NodeState, pod: PodState, tolerations: Tolerations, rules: RuleParameters, coverages: Coverages | None
) -> Due | None:
    """Return what is due for a pod with these tolerations on a node with taints; None if it tolerates all forever."""
    coverage = _coverage(node, tolerations, rules, coverages)
    state = coverage.untolerated
    if state is not None:
        return Due(
            deadline_us=untolerated_since_us(state, pod),
            verdict=_UNTOLERATED,
            taint=state.taint,
            toleration=None,
            window_start_us=window_start_us(state, pod),
        )
    earliest: Due | None = None
    for tolerated in coverage.tolerated:
        expiry = _expiry(node.outage, pod, tolerated)
        # On equal times the first taint in node order is the reason.
        if expiry is not None and (earliest is None or expiry.deadline_us < earliest.deadline_us):
            earliest = expiry
    return earliest


def _coverage(
    node: NodeState, tolerations: Tolerations, rules: RuleParameters, coverages: Coverages | None
) -> Coverage:
    known = coverages.get(id(tolerations)) if coverages is not None else None
    if known is not None:
        return known[1]
    coverage = cover(node, tolerations, comparison_operators=rules.comparison_operators)
    if coverages is not None and len(coverages) < MOST_COVERAGES:
        coverages[id(tolerations)] = (tolerations, coverage)
    return coverage


def window_start_us(taint: TaintState, pod: PodState) -> int:
    """Compute when the window of a taint and a pod opened, whatever its value; microseconds since 1970."""
    return max(taint.since_us, pod.since_us)


def untolerated_since_us(taint: TaintState, pod: PodState) -> int:
    """Compute since when the pod is untolerated, and so due: the latest of the changes that made it so."""
    return max(taint.since_us, taint.value_since_us, pod.since_us, pod.tolerations_since_us)


def cover(node: NodeState, tolerations: Tolerations, *, comparison_operators: bool) -> Coverage:
    """Find the toleration in use for each taint (semantics.md 3.4) and how long it lasts.

    The cost is a few look-ups for each taint and each toleration, not for each pair.
    """
    finder = _finder(node, tolerations, comparison_operators=comparison_operators)
    tolerated = []
    others: dict[str, int | None] = {}
    came_us: dict[int, int] = {}  # when the earliest taint came, by the toleration in use
    for state in node.taints:
        match = finder.in_use(state.taint)
        if match is None:
            return Coverage(state)
        seconds = bounded_seconds(match)
        if seconds is not None:
            since_us = state.value_since_us if _began_with_value(finder, state, match) else state.since_us
            longest = None
            if state.taint.key in HEALTH_KEYS:  # an outage shifts the deadline of these
                if since_us == state.since_us:
                    longest = _outage_seconds(node, finder, state.taint.key, seconds, others=others)
            elif came_us.get(id(match), LAST_INSTANT_US + 1) <= since_us:
                continue
            else:
                came_us[id(match)] = since_us
            tolerated.append(
                ToleratedTaint(
                    state,
                    match,
                    since_us=since_us,
                    window_us=seconds * SECOND_US,
                    outage_us=None if longest is None else longest * SECOND_US,
                )
            )
    return Coverage(None, tuple(tolerated))


def _finder(node: NodeState, tolerations: Tolerations, *, comparison_operators: bool) -> _Finder:
    if len(node.taints) * len(tolerations) > INDEXED_PAIRS:
        index = TolerationIndex(tolerations, NO_EXECUTE, comparison_operators=comparison_operators)
        return _Finder(index.first_match, lambda taint, _: index.looks_at_value(taint))
    return _Finder(
        lambda taint: first_match(tolerations, taint, comparison_operators=comparison_operators),
        lambda taint, match: looks_at_value(
            tolerations, taint, in_use=match, comparison_operators=comparison_operators
        ),
    )


def _began_with_value(finder: _Finder, state: TaintState, match: Toleration) -> bool:
    """Return whether a toleration is in use since the taint's value came, which was after the taint."""
    # Nearly all taints have the value that they came with, and the question costs as much as the match.
    return state.value_since_us != state.since_us and finder.looks_at_value(state.taint, match)


def _outage_seconds(
    node: NodeState, finder: _Finder, key: str, seconds: int, *, others: dict[str, int | None]
) -> int | None:
    """Return the larger of the seconds for a health taint and for the other one (semantics.md 12.5); None for no limit.

    `others` caches the seconds for the other one by its key, because a node may list a key many times.
    """
    other_key = other_health_key(key)
    if other_key not in others:
        others[other_key] = _other_seconds(node, finder, other_key)
    other_seconds = others[other_key]
    return None if other_seconds is None else max(seconds, other_seconds)


def _other_seconds(node: NodeState, finder: _Finder, key: str) -> int | None:
    """Return the seconds of the toleration that is or would be in use for a health taint.

    None at all means 0 s, one without seconds no limit. Nor is there a limit if the taint has another value than it
    came with and that plays a part: how long it had been tolerated before is not known.
    """
    state = next((other for other in node.taints if other.taint.key == key), None)
    taint = Taint(key, effect=NO_EXECUTE) if state is None else state.taint
    match = finder.in_use(taint)
    if match is None:
        return 0
    if state is not None and _began_with_value(finder, state, match):
        return None
    return bounded_seconds(match)


def _expiry(outage: Outage | None, pod: PodState, tolerated: ToleratedTaint) -> Due | None:
    """Compute when one taint's toleration runs out; None if that is after the year 9999."""
    start_us = max(tolerated.since_us, pod.since_us)
    deadline_us = start_us + tolerated.window_us
    outage_since_us = None
    if outage is not None and tolerated.outage_us is not None:
        bound_us = max(outage.since_us, pod.since_us) + tolerated.outage_us
        if bound_us < deadline_us:
            deadline_us = bound_us
            outage_since_us = outage.since_us
    if deadline_us > LAST_INSTANT_US:
        return None
    return Due(
        deadline_us=deadline_us,
        verdict=_TOLERATION_EXPIRES,
        taint=tolerated.state.taint,
        toleration=tolerated.toleration,
        window_start_us=start_us,
        outage_since_us=outage_since_us,
    )


def _exempt(exemptions: int) -> NothingDue:
    if exemptions & TERMINATING:
        return NothingDue.TERMINATING
    if exemptions & FINISHED:
        return NothingDue.FINISHED
    return NothingDue.MIRROR if exemptions & MIRROR else NothingDue.UNDECIDABLE
