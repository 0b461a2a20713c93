"""Kubernetes' taint eviction controller, as a reference model (semantics.md 6).

Changes of nodes and pods with their instants go in; timers, deletions with their attempts, and Events come out.
"""

from evictstream.kit.upstream.taint_eviction.controller import TaintEvictionController
from evictstream.kit.upstream.taint_eviction.distribution import WORKERS, PodKey, WaitingKeys, fnv1a_32, worker_of
from evictstream.kit.upstream.taint_eviction.evicting import ATTEMPTS, PAUSE_US, ApiRefusal, ApiServer
from evictstream.kit.upstream.taint_eviction.feed import (
    ControllerInput,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
    apply,
    run_controller,
)
from evictstream.kit.upstream.taint_eviction.metrics import (
    BUCKETS,
    COUNTER_NAME,
    HISTOGRAM_NAME,
    DeletionMetrics,
    upstream_latency,
)
from evictstream.kit.upstream.taint_eviction.outcomes import (
    CONDITION_MESSAGE,
    CONDITION_REASON,
    CONDITION_STATUS,
    CONDITION_TYPE,
    EVENT_REASON,
    EVENT_TYPE,
    AdditionSkipped,
    AttemptFailed,
    ControllerOutcome,
    EventEmitted,
    EvictionForgotten,
    PodDeleted,
    Request,
    TimerCancelled,
    TimerKept,
    TimerSet,
)
from evictstream.kit.upstream.taint_eviction.staying import stay_us
from evictstream.kit.upstream.taint_eviction.timers import Added, Cancelled, Timer, TimerQueue

__all__ = [
    "ATTEMPTS",
    "BUCKETS",
    "CONDITION_MESSAGE",
    "CONDITION_REASON",
    "CONDITION_STATUS",
    "CONDITION_TYPE",
    "COUNTER_NAME",
    "EVENT_REASON",
    "EVENT_TYPE",
    "HISTOGRAM_NAME",
    "PAUSE_US",
    "WORKERS",
    "Added",
    "AdditionSkipped",
    "ApiRefusal",
    "ApiServer",
    "AttemptFailed",
    "Cancelled",
    "ControllerInput",
    "ControllerOutcome",
    "DeletionMetrics",
    "EventEmitted",
    "EvictionForgotten",
    "NodeGone",
    "NodeSeen",
    "PodDeleted",
    "PodGone",
    "PodKey",
    "PodSeen",
    "Request",
    "TaintEvictionController",
    "Timer",
    "TimerCancelled",
    "TimerKept",
    "TimerQueue",
    "TimerSet",
    "WaitingKeys",
    "apply",
    "fnv1a_32",
    "run_controller",
    "stay_us",
    "upstream_latency",
    "worker_of",
]
