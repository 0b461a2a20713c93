"""The NoSchedule taints that follow from the conditions of a node (semantics.md 7.1).

Source: `pkg/controller/nodelifecycle/node_lifecycle_controller.go` (`doNoScheduleTaintingPass`), for new nodes
`plugin/pkg/admission/nodetaint/admission.go`. Not rate limited.
"""

import dataclasses
from collections.abc import Iterable
from typing import Final

from evictstream.kit.upstream.lifecycle.nodes import (
    DISK_PRESSURE,
    FALSE,
    MEMORY_PRESSURE,
    NETWORK_UNAVAILABLE,
    PID_PRESSURE,
    READY,
    TRUE,
    UNKNOWN,
    Condition,
)
from evictstream.kit.upstream.lifecycle.taint_lists import has_taint
from evictstream.models.kubernetes.taints import NO_SCHEDULE, NOT_READY, UNREACHABLE, Taint

CORDON_TAINT: Final = "node.kubernetes.io/unschedulable"

_KEYS: Final = {
    (READY, FALSE): NOT_READY,
    (READY, UNKNOWN): UNREACHABLE,
    (MEMORY_PRESSURE, TRUE): "node.kubernetes.io/memory-pressure",
    (DISK_PRESSURE, TRUE): "node.kubernetes.io/disk-pressure",
    (PID_PRESSURE, TRUE): "node.kubernetes.io/pid-pressure",
    (NETWORK_UNAVAILABLE, TRUE): "node.kubernetes.io/network-unavailable",
}
"""Type and status of a condition to the key of its taint; other conditions give none."""

OWNED_KEYS: Final = frozenset({*_KEYS.values(), CORDON_TAINT})
"""Keys whose NoSchedule taints belong to the controller: it also removes those that another client added."""


@dataclasses.dataclass(frozen=True, slots=True)
class TaintDifference:
    """The taints that have to change on a node.

    Attributes:
        added: taints it lacks, in the order of the conditions, `unschedulable` last.
        removed: taints that it must lose, in node order.
    """

    added: tuple[Taint, ...]
    removed: tuple[Taint, ...]


def condition_taints(conditions: Iterable[Condition], *, is_unschedulable: bool) -> tuple[Taint, ...]:
    """List the NoSchedule taints that a node has to have, without times, each once.

    Args:
        conditions: all of them; a type that is there twice counts twice.
        is_unschedulable: `spec.unschedulable`, which `kubectl cordon` sets.
    """
    keys = [key for condition in conditions if (key := _KEYS.get((condition.type, condition.status))) is not None]
    if is_unschedulable:
        keys.append(CORDON_TAINT)
    return tuple(Taint(key, "", NO_SCHEDULE) for key in dict.fromkeys(keys))


def taint_difference(taints: Iterable[Taint], wanted: tuple[Taint, ...]) -> TaintDifference:
    """Compare a node's taints with those it has to have.

    Only taints with one of `OWNED_KEYS` and effect NoSchedule count. A wanted taint that the node has already stays as
    it is, whatever its value and time.

    Args:
        taints: all taints of the node.
        wanted: the result of `condition_taints`.
    """
    owned = tuple(taint for taint in taints if taint.effect == NO_SCHEDULE and taint.key in OWNED_KEYS)
    return TaintDifference(
        added=tuple(taint for taint in wanted if not has_taint(owned, taint)),
        removed=tuple(taint for taint in owned if not has_taint(wanted, taint)),
    )


def taints_at_creation(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Give a node that is being created its first taint, so that no pod lands on it before it is ready.

    Done by the admission plugin `TaintNodesByCondition`, not by the controller, and without a time.

    Args:
        taints: those with which the kubelet registers it.
    """
    first = Taint(NOT_READY, "", NO_SCHEDULE)
    return taints if has_taint(taints, first) else (*taints, first)
