"""The numbers of the node lifecycle controller (semantics.md 8.1).

Sources: `pkg/controller/nodelifecycle/config/v1alpha1/defaults.go`, the flags in
`cmd/kube-controller-manager/app/options/nodelifecyclecontroller.go`, and the constants in
`pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go` and `node_lifecycle_controller.go`.
"""

import math
import struct
from typing import Final

import msgspec

from evictstream.models.instants import SECOND_US

NO_EXECUTE_PASS_PERIOD_US: Final = 100_000
"""Time between two passes over the queues of nodes that wait for a health taint; not a flag."""

RETRY_WITHOUT_READY_US: Final = 50_000
"""Wait before a queued node without a condition `Ready` is tried again; not a flag."""

_LARGEST_SINGLE: Final = 3.4028234663852886e38


def single(number: float) -> float:
    """Round to 32-bit floating point, the type of Kubernetes' rates and threshold.

    Raises:
        OverflowError: `number` is finite but too large.
    """
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded


class SettingError(ValueError):
    """A number cannot be used.

    Attributes:
        field: its name.
        rule: the rule that it breaks.
    """

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field} {rule}")
        self.field = field
        self.rule = rule


class LifecycleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The controller's flags, with upstream's defaults.

    Attributes:
        monitor_period_us: time from one round over all nodes to the next (`--node-monitor-period`). Default 5 s.
        monitor_grace_period_us: longest silence of a node that has a condition `Ready` (`--node-monitor-grace-period`).
            Default 50 s, before Kubernetes 1.32 it was 40 s. More than that is too long, exactly that is not.
        startup_grace_period_us: the same for a node without a condition `Ready` (`--node-startup-grace-period`).
            Default 60 s.
        eviction_rate: nodes per second and zone that get a health taint (`--node-eviction-rate`). Default 0.1. Used as
            a 32-bit number; `math.inf` stands for no limit, 0 for none at all.
        secondary_eviction_rate: the same in a large zone in partial disruption (`--secondary-node-eviction-rate`).
            Default 0.01.
        large_cluster_size_threshold: a zone with more nodes than this is large (`--large-cluster-size-threshold`).
            Default 50.
        unhealthy_zone_threshold: share of nodes that are not ready from which a zone is in partial disruption
            (`--unhealthy-zone-threshold`). Default 0.55, compared as 32-bit numbers.
        reacts_in_same_round: whether a node that a round finds silent is queued for its health taint in this very
            round. Default on, as since Kubernetes 1.29 (#120816) and in all recordings; off, the condition before the
            round decides, and the taint comes a period later.
        reads_live_leases: whether a node's lease is read from the API server before the node is called silent (gate
            `NodeControllerLeaseCircuitBreaker`). Default on, as since Kubernetes 1.37 (#138698).
    """

    monitor_period_us: int = 5 * SECOND_US
    monitor_grace_period_us: int = 50 * SECOND_US
    startup_grace_period_us: int = 60 * SECOND_US
    eviction_rate: float = 0.1
    secondary_eviction_rate: float = 0.01
    large_cluster_size_threshold: int = 50
    unhealthy_zone_threshold: float = 0.55
    reacts_in_same_round: bool = True
    reads_live_leases: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers with which no cluster can run; Kubernetes itself checks none of them.

        Raises:
            SettingError: a period is not positive, a grace period, a rate or a threshold is negative, a share is not
                between 0 and 1, or a number does not fit into 32 bits.
        """
        if self.monitor_period_us <= 0:
            raise SettingError("monitor_period_us", "must be positive")
        for field in ("monitor_grace_period_us", "startup_grace_period_us", "large_cluster_size_threshold"):
            if getattr(self, field) < 0:
                raise SettingError(field, "must not be negative")
        if self.large_cluster_size_threshold >= 2**31:
            raise SettingError("large_cluster_size_threshold", "must be below 2147483648")
        for field in ("eviction_rate", "secondary_eviction_rate"):
            rate = getattr(self, field)
            if math.isnan(rate) or rate < 0:
                raise SettingError(field, "must be a number and not negative")
            if math.isfinite(rate) and rate > _LARGEST_SINGLE:
                raise SettingError(field, "must fit into a 32-bit floating point number")
        if not 0 <= self.unhealthy_zone_threshold <= 1:
            raise SettingError("unhealthy_zone_threshold", "must be between 0 and 1")
