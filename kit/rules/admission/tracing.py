"""Where the tolerations of a pod that exists came from, as far as its object shows (semantics.md 9).

A stored pod does not say who added what. Some origins follow from what controllers and plugins always do; others are
only possible, because an author may write the same thing. Namespace and cluster defaults leave no trace at all.
"""

from collections.abc import Iterable, Sequence

import msgspec

from evictstream.kit.rules.admission.daemon_sets import (
    DAEMON_TOLERATIONS,
    HOST_NETWORK_TOLERATION,
    MEMORY_PRESSURE_TOLERATION,
)
from evictstream.kit.rules.admission.default_seconds import DEFAULT_SECONDS
from evictstream.kit.rules.admission.extended_resources import extended_resource_tolerations
from evictstream.kit.rules.admission.origins import AddedBy, plain
from evictstream.models.kubernetes.taints import NO_EXECUTE, NOT_READY, UNREACHABLE
from evictstream.models.kubernetes.tolerations import EXISTS, Toleration


class TracedToleration(msgspec.Struct, frozen=True, gc=False):
    """One toleration of a stored pod.

    Attributes:
        toleration: as it is on the pod.
        origin: what added it.
        is_certain: no other origin is possible for this object. Otherwise the author, or a default of the namespace or
            the cluster, may have added the same toleration.
    """

    toleration: Toleration
    origin: AddedBy
    is_certain: bool


def trace(
    tolerations: Sequence[Toleration],
    *,
    is_daemon: bool = False,
    host_network: bool = False,
    requested: Iterable[str] = (),
    is_best_effort: bool = True,
    not_ready_seconds: int = DEFAULT_SECONDS,
    unreachable_seconds: int = DEFAULT_SECONDS,
) -> tuple[TracedToleration, ...]:
    """Say for each toleration of a stored pod where it came from.

    Args:
        tolerations: of the pod, in pod order.
        is_daemon: a DaemonSet controls the pod. The tolerations that DaemonSets add are then certainly theirs.
        host_network: `spec.hostNetwork`.
        requested: names of the resources that its containers and init containers request.
        is_best_effort: other pods may have a toleration for memory pressure from PodTolerationRestriction.
        not_ready_seconds: what DefaultTolerationSeconds adds in this cluster.
        unreachable_seconds: what DefaultTolerationSeconds adds in this cluster.
    """
    daemon = (*DAEMON_TOLERATIONS, HOST_NETWORK_TOLERATION) if host_network else DAEMON_TOLERATIONS
    possible: dict[Toleration, AddedBy] = {}
    if not is_best_effort:
        possible[MEMORY_PRESSURE_TOLERATION] = AddedBy.MEMORY_PRESSURE
    for toleration in plain(extended_resource_tolerations((), requested)):
        possible[toleration] = AddedBy.EXTENDED_RESOURCE
    for key, seconds in ((NOT_READY, not_ready_seconds), (UNREACHABLE, unreachable_seconds)):
        possible[Toleration(key, EXISTS, effect=NO_EXECUTE, toleration_seconds=seconds)] = (
            AddedBy.DEFAULT_TOLERATION_SECONDS
        )
    return tuple(
        TracedToleration(toleration, AddedBy.DAEMON_SET, is_certain=True)
        if is_daemon and toleration in daemon
        else TracedToleration(toleration, possible.get(toleration, AddedBy.WRITTEN), is_certain=False)
        for toleration in tolerations
    )
