"""Taints for which only the order of a pod's tolerations decides how long it may stay (semantics.md 3.4, 13 row 23).

The first match wins: `[Exists for 5 s, Exists forever]` means 5 s, the reverse means forever. Kubernetes does not say
so; evictstream warns.
"""

from collections.abc import Iterable, Sequence

import msgspec

from evictstream.models.kubernetes.integers import canonical_int64
from evictstream.models.kubernetes.matching import bounded_seconds, tolerates
from evictstream.models.kubernetes.taints import NO_EXECUTE, NOT_READY, UNREACHABLE, Taint
from evictstream.models.kubernetes.tolerations import GREATER_THAN, LESS_THAN, Toleration


class OrderConflict(msgspec.Struct, frozen=True, gc=False):
    """A taint for which another order of tolerations gives another time.

    Attributes:
        taint: the taint.
        in_use: index of the toleration that decides, counted from 0 in pod order.
        passed_over: index of the first later one that matches too and gives another time.
    """

    taint: Taint
    in_use: int
    passed_over: int


def order_conflict(
    tolerations: Sequence[Toleration], taint: Taint, *, comparison_operators: bool = False
) -> OrderConflict | None:
    """Find out whether the order decides for one taint.

    Args:
        tolerations: of the pod, in pod order.
        taint: with effect `NoExecute`; for the other effects no time counts.
        comparison_operators: whether `Gt` and `Lt` compare.
    """
    if taint.effect != NO_EXECUTE:
        return None
    matching = [
        (index, bounded_seconds(toleration))
        for index, toleration in enumerate(tolerations)
        if tolerates(toleration, taint, comparison_operators=comparison_operators)
    ]
    for index, seconds in matching[1:]:
        if seconds != matching[0][1]:
            return OrderConflict(taint, matching[0][0], index)
    return None


def order_conflicts(
    tolerations: Sequence[Toleration], taints: Iterable[Taint], *, comparison_operators: bool = False
) -> tuple[OrderConflict, ...]:
    """Find the conflicts for several taints, in their order."""
    conflicts = (order_conflict(tolerations, taint, comparison_operators=comparison_operators) for taint in taints)
    return tuple(conflict for conflict in conflicts if conflict is not None)


def conceivable_taints(tolerations: Sequence[Toleration]) -> tuple[Taint, ...]:
    """List the `NoExecute` taints for which tolerations of a pod can differ, for when no node is given.

    The list begins with the two health taints. Each key in a toleration follows with all values that matter to
    tolerations of that key, or of every key: the empty text, values of `Equal`, and neighbours of the numbers of `Gt`
    and `Lt`.
    """
    keys = dict.fromkeys((NOT_READY, UNREACHABLE, *(entry.key for entry in tolerations if entry.key)))
    return tuple(
        Taint(key, value, NO_EXECUTE)
        for key in keys
        for value in dict.fromkeys(
            ("", *(value for entry in tolerations if entry.key in ("", key) for value in _telling_values(entry)))
        )
    )


def _telling_values(toleration: Toleration) -> tuple[str, ...]:
    if toleration.operator in (GREATER_THAN, LESS_THAN):
        bound = canonical_int64(toleration.value)
        return () if bound is None else (str(bound + (1 if toleration.operator == GREATER_THAN else -1)),)
    return (toleration.value,)
