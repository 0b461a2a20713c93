"""Kubernetes as released: taints, tolerations, matching, and the objects that carry them (semantics.md part A)."""

from models.kubernetes.integers import canonical_int64
from models.kubernetes.matching import (
    bounded_seconds,
    first_match,
    first_untolerated,
    is_shadowing,
    stay_seconds,
    tolerates,
    tolerations_in_use,
)
from models.kubernetes.objects import (
    FieldTypeError,
    MissingFieldError,
    Node,
    NodeObject,
    ObjectError,
    Pod,
    PodObject,
    WrongKindError,
    read_node,
    read_pod,
)
from models.kubernetes.taints import (
    HEALTH_KEYS,
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY,
    PREFER_NO_SCHEDULE,
    UNREACHABLE,
    Taint,
    other_health_key,
)
from models.kubernetes.tolerations import Toleration, Tolerations, read_tolerations, tolerations_text

__all__ = [
    "HEALTH_KEYS",
    "NOT_READY",
    "NO_EXECUTE",
    "NO_SCHEDULE",
    "PREFER_NO_SCHEDULE",
    "UNREACHABLE",
    "FieldTypeError",
    "MissingFieldError",
    "Node",
    "NodeObject",
    "ObjectError",
    "Pod",
    "PodObject",
    "Taint",
    "Toleration",
    "Tolerations",
    "WrongKindError",
    "bounded_seconds",
    "canonical_int64",
    "first_match",
    "first_untolerated",
    "is_shadowing",
    "other_health_key",
    "read_node",
    "read_pod",
    "read_tolerations",
    "stay_seconds",
    "tolerates",
    "tolerations_in_use",
    "tolerations_text",
]
