"""Taints of a node (semantics.md 1 and 2.1; Kubernetes `staging/src/k8s.io/api/core/v1/taint.go`)."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"

HEALTH_KEYS: Final = frozenset({NOT_READY, UNREACHABLE})
"""The keys of the two taints of an unhealthy node (semantics.md 7.2)."""


class BareTaint(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A taint of a node."""

    key: Annotated[str, Meta(description="Label key.")]
    value: Annotated[str, Meta(description="Label value; absent means empty.")] = ""
    effect: Annotated[str, Meta(description="`NoSchedule`, `PreferNoSchedule` or `NoExecute`.")] = ""


class Taint(BareTaint, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One entry of `node.spec.taints`, read as it is: nothing here checks that it is legal, `effect` may be any text.

    Two taints are the same taint if key and effect are equal (semantics.md 1).

    Attributes:
        time_added_us: `timeAdded` in microseconds since 1970, UTC. Optional, set by few, and never a window's start
            (semantics.md 13 row 7). Messages have a `BareTaint`, without it.
    """

    time_added_us: int | None = None


def taint_text(taint: BareTaint) -> str:
    """Write a taint as Kubernetes does: `key=value:Effect`, `key:Effect`, `key=value:` or `key` (semantics.md 1)."""
    if not taint.effect:
        return f"{taint.key}={taint.value}:" if taint.value else taint.key
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def is_same_taint(one: Taint, other: Taint) -> bool:
    """Return whether two taints are the same to Kubernetes: equal key and effect, whatever the value and the time."""
    return one.key == other.key and one.effect == other.effect


def other_health_key(key: str) -> str:
    """Return the other one of the two health keys.

    Args:
        key: one of `HEALTH_KEYS`.
    """
    return UNREACHABLE if key == NOT_READY else NOT_READY
