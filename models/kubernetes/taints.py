"""Taints of a node (semantics.md 1 and 2.1; Kubernetes `staging/src/k8s.io/api/core/v1/taint.go`)."""

from typing import Final

import msgspec

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"

HEALTH_KEYS: Final = frozenset({NOT_READY, UNREACHABLE})
"""The two keys with which Kubernetes tells of one thing, an unhealthy node (semantics.md 7.2)."""


class Taint(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One entry of `node.spec.taints`, read as it is: nothing here checks that it is legal.

    Attributes:
        key: label key; two taints are the same taint if key and effect are equal (semantics.md 1).
        value: label value; empty if absent, which is the same thing to Kubernetes.
        effect: `NoSchedule`, `PreferNoSchedule`, `NoExecute`, or whatever text was read.
        time_added_us: `timeAdded` in microseconds since 1970, UTC. Optional, set by few, and never a window's start
            (semantics.md 13 row 7). Absent from taints that are a reason in a message.
    """

    key: str
    value: str = ""
    effect: str = ""
    time_added_us: int | None = None


def taint_text(taint: Taint) -> str:
    """Write a taint as Kubernetes does: `key=value:Effect`, `key:Effect`, `key=value:` or `key` (semantics.md 1)."""
    if not taint.effect:
        return f"{taint.key}={taint.value}:" if taint.value else taint.key
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def is_same_taint(one: Taint, other: Taint) -> bool:
    """Tell whether two taints are the same to Kubernetes: equal key and effect, whatever the value and the instant."""
    return one.key == other.key and one.effect == other.effect


def other_health_key(key: str) -> str:
    """Name the other one of the two health taints.

    Args:
        key: one of `HEALTH_KEYS`.
    """
    return UNREACHABLE if key == NOT_READY else NOT_READY
