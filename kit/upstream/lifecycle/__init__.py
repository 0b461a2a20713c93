"""Kubernetes' node lifecycle controller: conditions and heartbeats in, taints and times out (semantics.md 7, 8)."""

from evictstream.kit.upstream.lifecycle.changes import (
    ClusterChange,
    ConditionsWritten,
    NodeReported,
    PodsMarkedNotReady,
    TaintsChanged,
    ZoneTurned,
)
from evictstream.kit.upstream.lifecycle.clock import LifecycleClock
from evictstream.kit.upstream.lifecycle.condition_taints import (
    CORDON_TAINT,
    OWNED_KEYS,
    TaintDifference,
    condition_taints,
    taint_difference,
    taints_at_creation,
)
from evictstream.kit.upstream.lifecycle.controller import NodeLifecycle
from evictstream.kit.upstream.lifecycle.disruption import DisruptionStep, Passage, disruption_step
from evictstream.kit.upstream.lifecycle.health_taints import (
    NOT_READY_TAINT,
    UNREACHABLE_TAINT,
    HealthStep,
    health_step,
)
from evictstream.kit.upstream.lifecycle.leases import LiveLease, NodeLease, WatchedLeases
from evictstream.kit.upstream.lifecycle.limiter import Limiter, NoTokens, TokenBucket, limiter_after, new_limiter
from evictstream.kit.upstream.lifecycle.nodes import Condition, PodAddress, WatchedNode, WatchedPod, find_condition
from evictstream.kit.upstream.lifecycle.pace import INSTANT, ClientLimiter, RequestPace, plausible_paces
from evictstream.kit.upstream.lifecycle.queue import Again, RateLimitedTimedQueue, TimedValue
from evictstream.kit.upstream.lifecycle.settings import LifecycleSettings, SettingError
from evictstream.kit.upstream.lifecycle.silence import HealthUpdate, NodeHealth, update_health
from evictstream.kit.upstream.lifecycle.zones import (
    ZoneState,
    is_excluded_from_disruption,
    reduced_rate,
    zone_key,
    zone_rate,
    zone_state,
)

__all__ = [
    "CORDON_TAINT",
    "INSTANT",
    "NOT_READY_TAINT",
    "OWNED_KEYS",
    "UNREACHABLE_TAINT",
    "Again",
    "ClientLimiter",
    "ClusterChange",
    "Condition",
    "ConditionsWritten",
    "DisruptionStep",
    "HealthStep",
    "HealthUpdate",
    "LifecycleClock",
    "LifecycleSettings",
    "Limiter",
    "LiveLease",
    "NoTokens",
    "NodeHealth",
    "NodeLease",
    "NodeLifecycle",
    "NodeReported",
    "Passage",
    "PodAddress",
    "PodsMarkedNotReady",
    "RateLimitedTimedQueue",
    "RequestPace",
    "SettingError",
    "TaintDifference",
    "TaintsChanged",
    "TimedValue",
    "TokenBucket",
    "WatchedLeases",
    "WatchedNode",
    "WatchedPod",
    "ZoneState",
    "ZoneTurned",
    "condition_taints",
    "disruption_step",
    "find_condition",
    "health_step",
    "is_excluded_from_disruption",
    "limiter_after",
    "new_limiter",
    "plausible_paces",
    "reduced_rate",
    "taint_difference",
    "taints_at_creation",
    "update_health",
    "zone_key",
    "zone_rate",
    "zone_state",
]
