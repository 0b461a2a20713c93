"""What the taints of a node mean for one list of tolerations, before any times come into it.

Most pods of a node share a few lists of tolerations, so a step works this out once per list and not once per pod.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from evictstream.models.eviction.state import NodeState, TaintState
from evictstream.models.instants import MICROSECONDS_PER_SECOND
from evictstream.models.kubernetes.matching import bounded_seconds, first_match
from evictstream.models.kubernetes.taints import HEALTH_KEYS, NO_EXECUTE, Taint, other_health_key
from evictstream.models.kubernetes.toleration_index import TolerationIndex
from evictstream.models.kubernetes.tolerations import Toleration, Tolerations

# Pairs of taint and toleration from which on looking the list through once is cheaper than trying each with each. A
# usual node has one to three taints, a usual pod two to six tolerations.
INDEXED_PAIRS: Final = 64

Find = Callable[[Taint], Toleration | None]


class Stay(msgspec.Struct, frozen=True, gc=False):
    """A taint that is tolerated for a while.

    Attributes:
        state: the taint.
        toleration: the one in use for it.
        window_us: how long it is tolerated, from the start of the window; never negative, of any size.
        outage_us: how long an outage may last before the pod has to leave, whatever the two health taints do
            meanwhile; None if the taint is no health taint, or the other one is tolerated for ever.
    """

    state: TaintState
    toleration: Toleration
    window_us: int
    outage_us: int | None


class Coverage(msgspec.Struct, frozen=True, gc=False):
    """How a list of tolerations covers the `NoExecute` taints of a node.

    Attributes:
        untolerated: the first taint in node order that nothing tolerates; the others do not matter then.
        stays: the taints that are tolerated for a while, in node order.
    """

    untolerated: TaintState | None
    stays: tuple[Stay, ...] = ()


def cover(node: NodeState, tolerations: Tolerations, *, comparison_operators: bool) -> Coverage:
    """Find the toleration in use for each taint (semantics.md 3.4) and how long it lasts.

    Costs a few look-ups for each taint and each toleration, not for each pair.
    """
    find = _finder(node, tolerations, comparison_operators=comparison_operators)
    stays = []
    others: dict[str, Toleration | None] = {}
    for state in node.taints:
        match = find(state.taint)
        if match is None:
            return Coverage(state)
        seconds = bounded_seconds(match)
        if seconds is not None:
            longest = _outage_seconds(node, find, state.taint.key, seconds, others)
            stays.append(
                Stay(
                    state,
                    match,
                    seconds * MICROSECONDS_PER_SECOND,
                    None if longest is None else longest * MICROSECONDS_PER_SECOND,
                )
            )
    return Coverage(None, tuple(stays))


def _finder(node: NodeState, tolerations: Tolerations, *, comparison_operators: bool) -> Find:
    if len(node.taints) * len(tolerations) > INDEXED_PAIRS:
        return TolerationIndex(tolerations, NO_EXECUTE, comparison_operators=comparison_operators).first_match
    return lambda taint: first_match(tolerations, taint, comparison_operators=comparison_operators)


def _outage_seconds(
    node: NodeState, find: Find, key: str, seconds: int, others: dict[str, Toleration | None]
) -> int | None:
    """Give the larger of the seconds for a health taint and for the other one (semantics.md 12.5).

    The other one counts by the toleration that would be in use for it: none is 0, one without seconds is no bound.
    `others` remembers it by key: an object may list a key many times.
    """
    if key not in HEALTH_KEYS:
        return None
    other_key = other_health_key(key)
    if other_key not in others:
        present = (state.taint for state in node.taints if state.taint.key == other_key)
        others[other_key] = find(next(present, None) or Taint(other_key, effect=NO_EXECUTE))
    match = others[other_key]
    if match is None:
        return seconds
    other_seconds = bounded_seconds(match)
    return None if other_seconds is None else max(seconds, other_seconds)
