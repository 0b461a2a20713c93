"""Zones: the zone of a node, the state of a zone, and how fast its nodes may be tainted (semantics.md 8.2 to 8.4).

Sources: `staging/src/k8s.io/component-helpers/node/topology/helpers.go` (`GetZoneKey`),
`pkg/controller/nodelifecycle/node_lifecycle_controller.go` (`ComputeZoneState`, `ReducedQPSFunc`, `HealthyQPSFunc`).
"""

import enum
from collections.abc import Iterable, Mapping
from typing import Final

from evictstream.kit.upstream.lifecycle.nodes import TRUE
from evictstream.kit.upstream.lifecycle.settings import LifecycleSettings, single
from evictstream.models.kubernetes.shapes import EXCLUDE_DISRUPTION_LABEL, ZONE_LABEL

BETA_REGION_LABEL: Final = "failure-domain.beta.kubernetes.io/region"
BETA_ZONE_LABEL: Final = "failure-domain.beta.kubernetes.io/zone"
REGION_LABEL: Final = "topology.kubernetes.io/region"

_FEW_NOT_READY: Final = 2
"""Up to this many nodes that are not ready are never a partial disruption, whatever their share."""


class ZoneState(enum.StrEnum):
    """The state of a zone; the values are Kubernetes' own."""

    INITIAL = "Initial"
    """Not computed yet; works as normal."""
    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


def zone_key(labels: Mapping[str, str] | None) -> str:
    """Give the key of a node's zone.

    Args:
        labels: the node's labels, None if it has none. The two beta labels win, each by itself and even if empty.

    Returns:
        Region, `:`, NUL, `:`, zone; the empty text if both are empty, which is one common zone.
    """
    if labels is None:
        return ""
    region = labels.get(BETA_REGION_LABEL, labels.get(REGION_LABEL, ""))
    zone = labels.get(BETA_ZONE_LABEL, labels.get(ZONE_LABEL, ""))
    return f"{region}:\0:{zone}" if region or zone else ""


def is_excluded_from_disruption(labels: Mapping[str, str] | None) -> bool:
    """Return whether a node does not count for its zone; any value of the label counts, also an empty one."""
    return labels is not None and EXCLUDE_DISRUPTION_LABEL in labels


def zone_state(ready_statuses: Iterable[str | None], unhealthy_zone_threshold: float) -> tuple[int, ZoneState]:
    """Compute the state of a zone.

    Args:
        ready_statuses: status of the condition `Ready` of each node that counts; None stands for a node without it.
            Only `True` is ready.
        unhealthy_zone_threshold: share of nodes not ready from which a zone is in partial disruption.

    Returns:
        The number of nodes that are not ready, and the state. A zone without nodes is normal.
    """
    statuses = tuple(ready_statuses)
    ready = statuses.count(TRUE)
    not_ready = len(statuses) - ready
    if not ready and not_ready:
        return not_ready, ZoneState.FULL_DISRUPTION
    # As 32-bit numbers, so that 11 of 20 is 0.55. Rounding the 64-bit quotient gives the same as dividing in 32 bits.
    if not_ready > _FEW_NOT_READY and single(not_ready / len(statuses)) >= single(unhealthy_zone_threshold):
        return not_ready, ZoneState.PARTIAL_DISRUPTION
    return not_ready, ZoneState.NORMAL


def reduced_rate(size: int, settings: LifecycleSettings) -> float:
    """Give the rate of a zone in partial disruption: slow if it is large, else 0.

    Args:
        size: how many of its nodes count.
        settings: the rates and the threshold.
    """
    return settings.secondary_eviction_rate if size > settings.large_cluster_size_threshold else 0.0


def zone_rate(state: ZoneState, size: int, settings: LifecycleSettings) -> float:
    """Give the rate of a zone while some other zone is not in full disruption (semantics.md 8.4).

    Args:
        state: of the zone.
        size: how many of its nodes count.
        settings: the rates and the threshold.

    Returns:
        Nodes per second that may get a health taint.
    """
    if state is ZoneState.PARTIAL_DISRUPTION:
        return reduced_rate(size, settings)
    return settings.eviction_rate
