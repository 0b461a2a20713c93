"""Which toleration covers which taint (semantics.md 3), and for upstream's models how long a pod may stay (4).

The same results as Kubernetes: `staging/src/k8s.io/api/core/v1/toleration.go` (matching),
`staging/src/k8s.io/component-helpers/scheduling/corev1/helpers.go` (lists) and
`pkg/controller/tainteviction/taint_eviction.go` (time to stay).

`comparison_operators` stands for the feature gate `TaintTolerationComparisonOperators`: off, a toleration with `Gt`
or `Lt` matches nothing.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Final

from evictstream.models.kubernetes.integers import canonical_int64
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.tolerations import EQUAL, EXISTS, GREATER_THAN, LESS_THAN, Toleration

_EQUALS: Final = ("", EQUAL)
_COMPARES: Final = (GREATER_THAN, LESS_THAN)

# Reading two numbers costs ten times as much as the rest of a match, and the same few pairs come again and again. With
# texts of the length below this is less than 1 MiB.
_COMPARISONS_KEPT: Final = 2048
_LONGEST_NUMBER: Final = 20  # characters of the longest signed 64-bit number; a longer text is none, and is not kept


def tolerates(toleration: Toleration, taint: Taint, *, comparison_operators: bool = False) -> bool:
    """Return whether one toleration covers one taint; comparisons are exact and case sensitive (semantics.md 3.1)."""
    return first_match((toleration,), taint, comparison_operators=comparison_operators) is not None


def first_match(
    tolerations: Iterable[Toleration], taint: Taint, *, comparison_operators: bool = False
) -> Toleration | None:
    """Find the toleration in use for a taint: the first in pod order that matches, not the longest nor the shortest."""
    # One loop without calls: every verdict goes through here, for every taint.
    key, value, effect = taint.key, taint.value, taint.effect
    for toleration in tolerations:
        if toleration.effect and toleration.effect != effect:
            continue
        if toleration.key and toleration.key != key:
            continue
        operator = toleration.operator
        if operator == EXISTS:
            return toleration
        if operator in _EQUALS:
            if toleration.value == value:
                return toleration
        elif (
            comparison_operators
            and len(value) <= _LONGEST_NUMBER
            and len(toleration.value) <= _LONGEST_NUMBER
            and _compares(operator, value, toleration.value)
        ):
            return toleration
    return None


def looks_at_value(
    tolerations: Iterable[Toleration], taint: Taint, *, in_use: Toleration, comparison_operators: bool = False
) -> bool:
    """Return whether the value of a taint plays a part in which toleration is in use: for it, or for one before it.

    With another value another toleration might be in use. Of `in_use` and those before it, one that is for the key and
    the effect compares the value.
    """
    key, effect = taint.key, taint.effect
    for toleration in tolerations:
        if (
            (not toleration.effect or toleration.effect == effect)
            and (not toleration.key or toleration.key == key)
            and (toleration.operator in _EQUALS or (comparison_operators and toleration.operator in _COMPARES))
        ):
            return True
        if toleration is in_use:
            return False
    return False


def first_untolerated(
    tolerations: Sequence[Toleration],
    taints: Iterable[Taint],
    effects: Collection[str] | None,
    *,
    comparison_operators: bool = False,
) -> Taint | None:
    """Find the first taint, in node order, that no toleration covers (semantics.md 3.3).

    Args:
        tolerations: of the pod, in pod order.
        taints: of the node, in node order.
        effects: only taints with one of these count, or all with None; the eviction looks at `NoExecute` alone.
        comparison_operators: whether `Gt` and `Lt` compare.

    Returns:
        The taint, or None if all are tolerated, which is also so when there is none.
    """
    for taint in taints:
        if (effects is None or taint.effect in effects) and (
            first_match(tolerations, taint, comparison_operators=comparison_operators) is None
        ):
            return taint
    return None


def tolerations_in_use(
    tolerations: Sequence[Toleration], taints: Sequence[Taint], *, comparison_operators: bool = False
) -> tuple[Toleration, ...] | None:
    """List the toleration in use for every taint, in node order (semantics.md 3.4).

    Returns:
        One toleration per taint, the same one perhaps several times; None if some taint is untolerated. No taints
        give an empty tuple: tolerated, nothing in use.
    """
    in_use = []
    for taint in taints:
        match = first_match(tolerations, taint, comparison_operators=comparison_operators)
        if match is None:
            return None
        in_use.append(match)
    return tuple(in_use)


def stay_seconds(in_use: Sequence[Toleration]) -> int | None:
    """Return how long a pod may stay with these tolerations in use, by the table of semantics.md 4.

    The reference models of `kit.upstream` use it. The service looks at each taint with its own window, in
    `models.eviction.decision`.

    Returns:
        Seconds, 0 for "evict now", or None forever.
    """
    if not in_use:
        return 0
    finite = [seconds for toleration in in_use if (seconds := bounded_seconds(toleration)) is not None]
    return min(finite) if finite else None


def bounded_seconds(toleration: Toleration) -> int | None:
    """Return the seconds of a toleration: negative seconds count as 0, and None means forever."""
    seconds = toleration.toleration_seconds
    return None if seconds is None else max(0, seconds)


def is_shadowing(tolerations: Sequence[Toleration], taint: Taint, *, comparison_operators: bool = False) -> bool:
    """Return whether a later toleration for the same taint would have set another time.

    The first match decides between 5 s and forever, and Kubernetes does not say so; evictstream's output warns
    (semantics.md 13 row 23).

    Returns:
        True if, behind the toleration in use, another one matches the taint with other seconds.
    """
    keys = ("", taint.key)  # a cheap check first: nearly all entries of a long list have other keys
    matching = (
        bounded_seconds(toleration)
        for toleration in tolerations
        if toleration.key in keys and tolerates(toleration, taint, comparison_operators=comparison_operators)
    )
    for in_use in matching:
        return any(later != in_use for later in matching)
    return False


@lru_cache(maxsize=_COMPARISONS_KEPT)
def _compares(operator: str, taint_value: str, toleration_value: str) -> bool:
    """Compare the taint's number with the toleration's: `Gt` matches if the taint's is greater (semantics.md 3.2).

    An unknown operator matches nothing.
    """
    number = canonical_int64(taint_value)
    bound = canonical_int64(toleration_value)
    if number is None or bound is None:
        return False
    if operator == GREATER_THAN:
        return number > bound
    return operator == LESS_THAN and number < bound
