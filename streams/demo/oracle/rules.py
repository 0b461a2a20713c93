"""Kubernetes' rules for one taint and a list of tolerations, on objects as they are in JSON (semantics 3 and 4)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
HEALTH = (NOT_READY, UNREACHABLE)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def to_us(text: str) -> int:
    """Read RFC 3339 as microseconds since 1970."""
    return (dt.datetime.fromisoformat(text) - _EPOCH) // dt.timedelta(microseconds=1)


LAST_US = to_us("9999-12-31T23:59:59.999999Z")
"""A time past the end of year 9999 is no deadline (12.5)."""


def matches(toleration: Json, taint: Json) -> bool:
    """Tell whether a toleration tolerates a taint (3.1)."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")


def in_use(tolerations: Sequence[Json], taint: Json) -> Json | None:
    """Return the first toleration, in the pod's order, that matches; `None` if none does (3.4)."""
    return next((toleration for toleration in tolerations if matches(toleration, taint)), None)


def allowed_us(toleration: Json) -> int | None:
    """Return for how long a toleration lets a pod stay: never negative (section 4), `None` for ever."""
    seconds = toleration.get("tolerationSeconds")
    return None if seconds is None else max(0, int(seconds)) * 1_000_000
