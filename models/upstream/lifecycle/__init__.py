"""Kubernetes' node lifecycle controller: conditions and heartbeats in, taints and times out (semantics.md 7, 8)."""

from evictstream.models.upstream.lifecycle.changes import (
    Change,
    ConditionsWritten,
    NodeReported,
    PodsMarkedNotReady,
    TaintsChanged,
    ZoneTurned,
)
from evictstream.models.upstream.lifecycle.clock import LifecycleClock
from evictstream.models.upstream.lifecycle.condition_taints import (
    OWNED_KEYS,
    UNSCHEDULABLE,
    TaintDifference,
    condition_taints,
    taint_difference,
    taints_at_creation,
)
from evictstream.models.upstream.lifecycle.controller import NodeLifecycle
from evictstream.models.upstream.lifecycle.disruption import DisruptionStep, Passage, disruption_step
from evictstream.models.upstream.lifecycle.health_taints import (
    NOT_READY_TAINT,
    UNREACHABLE_TAINT,
    HealthStep,
    health_step,
)
from evictstream.models.upstream.lifecycle.limiter import Limiter, NoTokens, TokenBucket, limiter_after, new_limiter
from evictstream.models.upstream.lifecycle.nodes import Condition, PodKey, WatchedNode, WatchedPod, find_condition
from evictstream.models.upstream.lifecycle.pace import INSTANT, ClientLimiter, RequestPace, plausible_paces
from evictstream.models.upstream.lifecycle.queue import Again, RateLimitedTimedQueue, TimedValue
from evictstream.models.upstream.lifecycle.reading import WatchedNodeObject, read_watched_node
from evictstream.models.upstream.lifecycle.settings import LifecycleSettings, SettingError
from evictstream.models.upstream.lifecycle.silence import HealthUpdate, NodeHealth, update_health
from evictstream.models.upstream.lifecycle.zones import (
    ZoneState,
    is_excluded_from_disruption,
    reduced_rate,
    zone_key,
    zone_rate,
    zone_state,
)

__all__ = [
    "INSTANT",
    "NOT_READY_TAINT",
    "OWNED_KEYS",
    "UNREACHABLE_TAINT",
    "UNSCHEDULABLE",
    "Again",
    "Change",
    "ClientLimiter",
    "Condition",
    "ConditionsWritten",
    "DisruptionStep",
    "HealthStep",
    "HealthUpdate",
    "LifecycleClock",
    "LifecycleSettings",
    "Limiter",
    "NoTokens",
    "NodeHealth",
    "NodeLifecycle",
    "NodeReported",
    "Passage",
    "PodKey",
    "PodsMarkedNotReady",
    "RateLimitedTimedQueue",
    "RequestPace",
    "SettingError",
    "TaintDifference",
    "TaintsChanged",
    "TimedValue",
    "TokenBucket",
    "WatchedNode",
    "WatchedNodeObject",
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
    "read_watched_node",
    "reduced_rate",
    "taint_difference",
    "taints_at_creation",
    "update_health",
    "zone_key",
    "zone_rate",
    "zone_state",
]
