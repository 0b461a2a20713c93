"""The two health NoExecute taints, and which of them a condition `Ready` requires (semantics.md 7.2).

Source: `pkg/controller/nodelifecycle/node_lifecycle_controller.go` (`processTaintBaseEviction`,
`doNoExecuteTaintingPass`).
"""

import enum
from collections.abc import Iterable
from typing import Final

from evictstream.kit.upstream.lifecycle.nodes import FALSE, TRUE, UNKNOWN
from evictstream.kit.upstream.lifecycle.taint_lists import has_taint
from evictstream.models.kubernetes.taints import NO_EXECUTE, NOT_READY, UNREACHABLE, Taint

NOT_READY_TAINT: Final = Taint(NOT_READY, "", NO_EXECUTE)
UNREACHABLE_TAINT: Final = Taint(UNREACHABLE, "", NO_EXECUTE)
HEALTH_TAINTS: Final = (UNREACHABLE_TAINT, NOT_READY_TAINT)
"""The two health taints, in the order of their removal."""


class HealthStep(enum.StrEnum):
    """The action of a round on a node's health taint."""

    SWAP = "swap"
    """The node has the opposite taint: add the fitting one and remove the other, at once and without a token."""
    QUEUE = "queue"
    """The node has no health taint: it joins the queue of its zone, behind nodes of earlier rounds."""
    KEEP = "keep"
    """The node has the fitting taint: it joins the queue only if unknown there, as after a restart."""
    CLEAR = "clear"
    """The node is ready: remove both taints, and remove it from the queue."""
    NOTHING = "nothing"
    """`Ready` has a status that Kubernetes does not know."""


def fitting_taint(ready_status: str) -> Taint | None:
    """Give the health taint for a status of `Ready`: None for all but False and Unknown."""
    return {FALSE: NOT_READY_TAINT, UNKNOWN: UNREACHABLE_TAINT}.get(ready_status)


def opposite_taint(taint: Taint) -> Taint:
    """Return the other one of the two health taints."""
    return UNREACHABLE_TAINT if taint is NOT_READY_TAINT else NOT_READY_TAINT


def health_step(ready_status: str, taints: Iterable[Taint]) -> HealthStep:
    """Decide what a round does about a node.

    Args:
        ready_status: status of `Ready`, see `LifecycleSettings.reacts_in_same_round`.
        taints: of the node, as they were when the round began.
    """
    present = tuple(taints)
    fitting = fitting_taint(ready_status)
    if fitting is None:
        return HealthStep.CLEAR if ready_status == TRUE else HealthStep.NOTHING
    if has_taint(present, opposite_taint(fitting)):
        return HealthStep.SWAP
    return HealthStep.KEEP if has_taint(present, fitting) else HealthStep.QUEUE
