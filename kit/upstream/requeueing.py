"""When the scheduler tries a pod again that taints or a cordon refused (semantics.md 5).

Each of the two plugins answers for the pods that it refused. Sources: the functions `isSchedulableAfter...` in
`pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go` and
`pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go`. Changes of other fields of a node or a pod
do not reach these functions and requeue nothing.
"""

import enum
from collections.abc import Sequence

from evictstream.kit.rules.scheduling.filtering import HARD_EFFECTS, UNSCHEDULABLE_TAINT
from evictstream.models.kubernetes.matching import first_untolerated, tolerates
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.tolerations import Toleration


class QueueingHint(enum.StrEnum):
    """Whether a change may make a waiting pod schedulable."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


def taints_after_node_change(
    tolerations: Sequence[Toleration],
    before: Sequence[Taint] | None,
    after: Sequence[Taint],
    *,
    comparison_operators: bool = False,
) -> QueueingHint:
    """Answer a new or changed node: try again if its hard taints refused the pod before, or it is new, and now do not.

    Args:
        tolerations: of the waiting pod, in pod order.
        before: taints of the node before the change; None if the node is new.
        after: its taints now.
        comparison_operators: whether `Gt` and `Lt` compare.
    """
    was_untolerated = before is None or _refuses(tolerations, before, comparison_operators=comparison_operators)
    is_untolerated = _refuses(tolerations, after, comparison_operators=comparison_operators)
    return _hint(queue=was_untolerated and not is_untolerated)


def taints_after_toleration_change(waiting_uid: str, changed_uid: str) -> QueueingHint:
    """Answer a change of the tolerations of a pod: try again if it is the waiting one, whatever was added.

    Args:
        waiting_uid: UID of the pod that was refused.
        changed_uid: UID of the pod whose tolerations changed.
    """
    return _hint(queue=waiting_uid == changed_uid)


def cordon_after_node_change(*, before: bool | None, after: bool) -> QueueingHint:
    """Answer a new or changed node: try again if it was uncordoned, or is new and not cordoned.

    Args:
        before: `node.spec.unschedulable` before the change; None if the node is new.
        after: `node.spec.unschedulable` now.
    """
    return _hint(queue=before is not False and not after)


def cordon_after_toleration_change(
    waiting_uid: str, changed_uid: str, tolerations: Sequence[Toleration]
) -> QueueingHint:
    """Answer a change of the tolerations of a pod: try again if it is the waiting one and tolerates the cordon now.

    Args:
        waiting_uid: UID of the pod that was refused.
        changed_uid: UID of the pod whose tolerations changed.
        tolerations: of the changed pod, as they are now.
    """
    tolerated = any(tolerates(toleration, UNSCHEDULABLE_TAINT) for toleration in tolerations)
    return _hint(queue=waiting_uid == changed_uid and tolerated)


def _refuses(tolerations: Sequence[Toleration], taints: Sequence[Taint], *, comparison_operators: bool) -> bool:
    found = first_untolerated(tolerations, taints, HARD_EFFECTS, comparison_operators=comparison_operators)
    return found is not None


def _hint(*, queue: bool) -> QueueingHint:
    return QueueingHint.QUEUE if queue else QueueingHint.SKIP
