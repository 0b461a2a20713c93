"""Kubernetes' rules as pure functions: taints, tolerations, and what follows from them (semantics.md part A).

The objects as they are read, matching (sections 3 and 4), and the eviction verdict for a pod on a node. The other rules
of Kubernetes (validation, scheduling, admission, kubectl) are in `kit.rules`.

`docs/kubernetes-rules.md` has each rule with its source.
"""

from evictstream.models.kubernetes.integers import canonical_int64, is_canonical
from evictstream.models.kubernetes.matching import (
    bounded_seconds,
    first_match,
    first_untolerated,
    is_shadowing,
    stay_seconds,
    tolerates,
    tolerations_in_use,
)
from evictstream.models.kubernetes.objects import (
    FieldTimeError,
    FieldTypeError,
    MissingFieldError,
    Node,
    ObjectError,
    Pod,
    WrongKindError,
    read_node,
    read_pod,
)
from evictstream.models.kubernetes.shapes import NodeObject, PodObject
from evictstream.models.kubernetes.taints import (
    HEALTH_KEYS,
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY,
    PREFER_NO_SCHEDULE,
    UNREACHABLE,
    UNSCHEDULABLE,
    Taint,
    is_same_taint,
    other_health_key,
    taint_text,
)
from evictstream.models.kubernetes.tolerations import (
    Toleration,
    Tolerations,
    is_same_toleration,
    read_tolerations,
    read_tolerations_row,
    shared_tolerations_row,
    tolerations_row,
)
from evictstream.models.kubernetes.verdict import EvictionTiming, EvictionVerdict, TaintCoverage, eviction_verdict

__all__ = [
    "HEALTH_KEYS",
    "NOT_READY",
    "NO_EXECUTE",
    "NO_SCHEDULE",
    "PREFER_NO_SCHEDULE",
    "UNREACHABLE",
    "UNSCHEDULABLE",
    "EvictionTiming",
    "EvictionVerdict",
    "FieldTimeError",
    "FieldTypeError",
    "MissingFieldError",
    "Node",
    "NodeObject",
    "ObjectError",
    "Pod",
    "PodObject",
    "Taint",
    "TaintCoverage",
    "Toleration",
    "Tolerations",
    "WrongKindError",
    "bounded_seconds",
    "canonical_int64",
    "eviction_verdict",
    "first_match",
    "first_untolerated",
    "is_canonical",
    "is_same_taint",
    "is_same_toleration",
    "is_shadowing",
    "other_health_key",
    "read_node",
    "read_pod",
    "read_tolerations",
    "read_tolerations_row",
    "shared_tolerations_row",
    "stay_seconds",
    "taint_text",
    "tolerates",
    "tolerations_in_use",
    "tolerations_row",
]
