"""Editing the taints of a node: two taints are the same if key and effect are (semantics.md 1).

Sources: `pkg/util/taints/taints.go` (`TaintExists`, `AddOrUpdateTaint`, `DeleteTaint`),
`pkg/controller/util/node/controller_utils.go` (`SwapNodeControllerTaint`).
"""

from collections.abc import Iterable

from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.taints import Taint


def has_taint(taints: Iterable[Taint], wanted: Taint) -> bool:
    """Return whether the same taint is in the list; value and time do not count."""
    return any(taint.key == wanted.key and taint.effect == wanted.effect for taint in taints)


def with_taint(taints: tuple[Taint, ...], added: Taint) -> tuple[Taint, ...]:
    """Add a taint at the end, or replace the same taint in its place, so that it gets the later time."""
    if not has_taint(taints, added):
        return (*taints, added)
    return tuple(added if has_taint((taint,), added) else taint for taint in taints)


def without_taints(taints: tuple[Taint, ...], removed: Iterable[Taint]) -> tuple[Taint, ...]:
    """Remove all taints that are the same as one of `removed`; others keep their order."""
    gone = tuple(removed)
    return tuple(taint for taint in taints if not has_taint(gone, taint))


def stamped(taint: Taint, now_us: int) -> Taint:
    """Give a taint its `timeAdded`, whole seconds, as API objects keep times."""
    return Taint(taint.key, taint.value, taint.effect, now_us - now_us % SECOND_US)
