"""What the taints of a node mean for one list of tolerations, before any times come into it.

Most pods of a node share a few lists of tolerations, so a step works this out once per list and not once per pod.
"""

import msgspec

from models.eviction.state import NodeState, TaintState
from models.instants import MICROSECONDS_PER_SECOND
from models.kubernetes.matching import bounded_seconds, first_match
from models.kubernetes.taints import HEALTH_KEYS, NO_EXECUTE, Taint, other_health_key
from models.kubernetes.tolerations import Toleration, Tolerations


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
    """Find the toleration in use for each taint (semantics.md 3.4) and how long it lasts."""
    stays = []
    for state in node.taints:
        match = first_match(tolerations, state.taint, comparison_operators=comparison_operators)
        if match is None:
            return Coverage(state)
        seconds = bounded_seconds(match)
        if seconds is not None:
            longest = _outage_seconds(node, tolerations, state.taint.key, seconds, comparison_operators)
            stays.append(
                Stay(
                    state,
                    match,
                    seconds * MICROSECONDS_PER_SECOND,
                    None if longest is None else longest * MICROSECONDS_PER_SECOND,
                )
            )
    return Coverage(None, tuple(stays))


def _outage_seconds(
    node: NodeState,
    tolerations: Tolerations,
    key: str,
    seconds: int,
    comparison_operators: bool,  # noqa: FBT001 - private, and five plain arguments in a row read best
) -> int | None:
    """Give the larger of the seconds for a health taint and for the other one (semantics.md 12.5).

    The other one counts by the toleration that would be in use for it: none is 0, one without seconds is no bound.
    """
    if key not in HEALTH_KEYS:
        return None
    other_key = other_health_key(key)
    present = (state.taint for state in node.taints if state.taint.key == other_key)
    other = next(present, None) or Taint(other_key, effect=NO_EXECUTE)
    match = first_match(tolerations, other, comparison_operators=comparison_operators)
    if match is None:
        return seconds
    other_seconds = bounded_seconds(match)
    return None if other_seconds is None else max(seconds, other_seconds)
