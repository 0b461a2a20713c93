"""Formats taints, tolerations and times for tables and for JSON."""

from __future__ import annotations

from msgspec import UNSET

from evictstream.models.kubernetes import Taint, Toleration, taint_text
from evictstream.models.kubernetes.tolerations import EQUAL, EXISTS

FOR_EVER = "forever"
NO_VALUE = "-"


def toleration_words(toleration: Toleration) -> str:
    """Format a toleration in one line: key, operator, value and effect, then its seconds if it has any."""
    key = toleration.key or "any key"
    if toleration.operator == EXISTS:
        matched = f"{key} {EXISTS}"
    else:
        matched = f"{key} {toleration.operator or EQUAL} {toleration.value or '(empty)'}"
    effect = toleration.effect or "any effect"
    return f"{matched}, {effect}" + seconds_suffix(toleration.toleration_seconds) + built_in_words(toleration)


def built_in_words(toleration: Toleration) -> str:
    """Say what the spec has for Kubernetes' own controller, in brackets; empty where nothing was moved."""
    seconds = toleration.built_in_seconds
    return "" if seconds is UNSET else f" (built-in: {stay_words(seconds)})"


def seconds_suffix(seconds: int | None) -> str:
    """Format seconds as the end of a line; empty without a limit."""
    return "" if seconds is None else f", {seconds} s"


def stay_words(seconds: int | None) -> str:
    """Format how long a pod may stay."""
    return FOR_EVER if seconds is None else f"{seconds} s"


def taint_json(taint: Taint | None) -> dict[str, object] | None:
    """Return a taint as it is in a node's `spec.taints`."""
    if taint is None:
        return None
    fields: dict[str, object] = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return {name: value for name, value in fields.items() if value}


def toleration_json(toleration: Toleration | None) -> dict[str, object] | None:
    """Return a toleration as in a pod's `spec.tolerations`, and beside seconds that were moved what the spec has."""
    if toleration is None:
        return None
    fields: dict[str, object] = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    shown = {name: value for name, value in fields.items() if value}
    if toleration.toleration_seconds is not None:
        shown |= {"tolerationSeconds": toleration.toleration_seconds}
    return shown if toleration.built_in_seconds is UNSET else shown | {"builtInSeconds": toleration.built_in_seconds}


def taint_words(taint: Taint | None) -> str:
    """Format a taint as Kubernetes does; a dash for none."""
    return NO_VALUE if taint is None else taint_text(taint)
