"""The tolerations that the DaemonSet controller gives to its pods (semantics.md 9.2).

Source: `pkg/controller/daemon/util/daemonset_util.go`, `AddOrUpdateDaemonPodTolerations`.
"""

from collections.abc import Sequence
from typing import Final

from evictstream.kit.rules.admission.origins import AddedBy, AdmittedToleration, add_or_replace
from evictstream.models.kubernetes.taints import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, UNSCHEDULABLE
from evictstream.models.kubernetes.tolerations import EXISTS, Toleration, Tolerations

MEMORY_PRESSURE_TAINT: Final = "node.kubernetes.io/memory-pressure"
_DISK_PRESSURE: Final = "node.kubernetes.io/disk-pressure"
_PID_PRESSURE: Final = "node.kubernetes.io/pid-pressure"
_NETWORK_UNAVAILABLE: Final = "node.kubernetes.io/network-unavailable"

DAEMON_TOLERATIONS: Final[Tolerations] = tuple(
    Toleration(key=key, operator=EXISTS, effect=effect)
    for key, effect in (
        (NOT_READY, NO_EXECUTE),
        (UNREACHABLE, NO_EXECUTE),
        (_DISK_PRESSURE, NO_SCHEDULE),
        (MEMORY_PRESSURE_TAINT, NO_SCHEDULE),
        (_PID_PRESSURE, NO_SCHEDULE),
        (UNSCHEDULABLE, NO_SCHEDULE),
    )
)
"""The tolerations of every pod of a DaemonSet, in this order, all without seconds."""

MEMORY_PRESSURE_TOLERATION: Final = Toleration(key=MEMORY_PRESSURE_TAINT, operator=EXISTS, effect=NO_SCHEDULE)
"""The one of these that PodTolerationRestriction gives to other pods too, unless they are best-effort."""

HOST_NETWORK_TOLERATION: Final = Toleration(key=_NETWORK_UNAVAILABLE, operator=EXISTS, effect=NO_SCHEDULE)
"""One more for pods that use the network of their node."""


def daemon_set_tolerations(
    admitted: Sequence[AdmittedToleration], *, host_network: bool = False
) -> tuple[AdmittedToleration, ...]:
    """Add the tolerations of a DaemonSet's pod to those of its template.

    A toleration of the template with the same identity is replaced in its place, which wipes its seconds. One with
    another identity for the same taint stays in front and is then in use, because the first match decides.

    Args:
        admitted: the tolerations of the template.
        host_network: `spec.hostNetwork` of the template.
    """
    added = (*DAEMON_TOLERATIONS, HOST_NETWORK_TOLERATION) if host_network else DAEMON_TOLERATIONS
    result = tuple(admitted)
    for toleration in added:
        result = add_or_replace(result, toleration, AddedBy.DAEMON_SET)
    return result
