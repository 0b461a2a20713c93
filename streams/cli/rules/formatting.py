"""Taints, tolerations and times in the words of tables, and in the shape of JSON."""

from __future__ import annotations

from evictstream.models.kubernetes import Taint, Toleration, taint_text
from evictstream.models.kubernetes.tolerations import EQUAL, EXISTS

FOR_EVER = "for ever"
NOTHING = "-"


def toleration_words(toleration: Toleration) -> str:
    """Write a toleration in one line: what it matches, then for how long if that is limited."""
    key = toleration.key or "any key"
    if toleration.operator == EXISTS:
        matched = f"{key} {EXISTS}"
    else:
        matched = f"{key} {toleration.operator or EQUAL} {toleration.value or '(empty)'}"
    effect = toleration.effect or "any effect"
    return f"{matched}, {effect}" + seconds_suffix(toleration.toleration_seconds)


def seconds_suffix(seconds: int | None) -> str:
    """Write a limit of time behind something; nothing if there is none."""
    return "" if seconds is None else f", {seconds} s"


def stay_words(seconds: int | None) -> str:
    """Write how long a pod may stay."""
    return FOR_EVER if seconds is None else f"{seconds} s"


def taint_json(taint: Taint | None) -> dict[str, object] | None:
    """Give a taint the shape that it has in a node."""
    if taint is None:
        return None
    fields: dict[str, object] = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return {name: value for name, value in fields.items() if value}


def toleration_json(toleration: Toleration | None) -> dict[str, object] | None:
    """Give a toleration the shape that it has in a pod."""
    if toleration is None:
        return None
    fields: dict[str, object] = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }
    shown = {name: value for name, value in fields.items() if value}
    return (
        shown if toleration.toleration_seconds is None else shown | {"tolerationSeconds": toleration.toleration_seconds}
    )


def taint_words(taint: Taint | None) -> str:
    """Write a taint as Kubernetes does; a dash for none."""
    return NOTHING if taint is None else taint_text(taint)
