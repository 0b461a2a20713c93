"""The cases in which this project differs from upstream's controller on purpose, recognised in a story so far.

Each function names one rule of semantics.md part B and says whether the next step runs into it. The agreement test
leaves out those steps and no others; `test_departures.py` shows for each that both really differ there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from evictstream.models.kubernetes import HEALTH_KEYS, NO_EXECUTE, Node, Pod, Taint, first_match
from evictstream.models.kubernetes.matching import looks_at_value

LONGEST_SECONDS = 9_223_372_036
"""Row 33: from the next number on upstream's durations overflow, so the tests draw no longer ones."""

GAP = 5
"""Seconds without a health taint that still belong to one outage (12.4)."""


def finite(pod: Pod, taints: Sequence[Taint], *, compare: bool) -> dict[str, int] | None:
    """Give the seconds in use by taint key, without those forever; None if some taint is untolerated."""
    seconds: dict[str, int] = {}
    for taint in taints:
        match = first_match(pod.tolerations, taint, comparison_operators=compare)
        if match is None:
            return None
        if match.toleration_seconds is not None:
            seconds[taint.key] = max(0, match.toleration_seconds)
    return seconds


def no_execute(node: Node | None) -> list[Taint]:
    return [] if node is None else [taint for taint in node.taints if taint.effect == NO_EXECUTE]


def health(taints: Sequence[Taint]) -> set[str]:
    return {taint.key for taint in taints} & HEALTH_KEYS


def node_departure(
    old: Node | None,
    new: Node | None,
    pods: Collection[Pod],
    waiting: Collection[str],
    last_added: Mapping[str, int],
    *,
    compare: bool,
) -> str | None:
    """Say which departure a change of the node runs into, if any.

    Args:
        old: the node before, None if it is not known.
        new: the node after, None if it is deleted.
        pods: the pods on it.
        waiting: names of those whose timer is pending.
        last_added: the last `timeAdded` seen by key of the taints that are there.
        compare: whether `Gt` and `Lt` compare.
    """
    if waiting and (new is None or (old is not None and old.uid != new.uid)):
        return "12.7, row 9: node deleted under a pending timer"
    if old is None or new is None or old.uid != new.uid:
        return None
    before, after = no_execute(old), no_execute(new)
    if health(before) and health(after) and health(before) != health(after):
        return "12.4: health taints are swapped"
    renewed = {taint.key for taint in after if _is_later(taint.time_added_us, last_added.get(taint.key))}
    for pod in pods:
        was = finite(pod, before, compare=compare)
        will = finite(pod, after, compare=compare)
        if not will:
            continue  # untolerated, or forever: evicted now, or cancelled, by both
        if pod.name not in waiting:
            continue  # forever until now, and by another value or another taint: both begin now
        if was != will:
            return "12.4, rows 4, 6 and 37: other finite taints under a pending timer"
        if any(_begins_anew(pod, taint, before, compare=compare) for taint in after if taint.key in will):
            return "12.4, row 37: a value under a pending timer"
        if renewed & will.keys():
            return "12.4: a later timeAdded under a pending timer"
    return None


def _begins_anew(pod: Pod, taint: Taint, before: Sequence[Taint], *, compare: bool) -> bool:
    """Tell whether a taint that stays has another value, at which the toleration in use or one before it looks."""
    match = first_match(pod.tolerations, taint, comparison_operators=compare)
    is_other = any(old.key == taint.key and old.value != taint.value for old in before)
    looks = match is not None and looks_at_value(pod.tolerations, taint, in_use=match, comparison_operators=compare)
    return is_other and looks


def _is_later(added: int | None, recorded: int | None) -> bool:
    return added is not None and recorded is not None and added > recorded


def edit_departure(node: Node | None) -> str | None:
    """Say whether an edit of tolerations meets taints, which is where deadlines are computed anew."""
    return "12.5, row 5: tolerations edited under NoExecute taints" if no_execute(node) else None


def replacement_departure(name: str, waiting: Collection[str]) -> str | None:
    """Say whether a pod that is replaced under its name, seen as one update, has a timer to hand on."""
    return "12.1, row 8: pod replaced under a pending timer" if name in waiting else None


class OutageGap:
    """Follows the gap of an outage, in which a health taint that comes back goes on with the old outage (12.4)."""

    def __init__(self) -> None:
        self._since: int | None = None
        self._was_tainted = False

    def departure(self, node: Node, at: int) -> str | None:
        """Say whether this node comes back from a gap."""
        is_back = bool(health(no_execute(node))) and self._since is not None and at - self._since <= GAP
        return "12.4: a health taint comes back within the gap of an outage" if is_back else None

    def follow(self, node: Node | None, at: int) -> None:
        """Take note of the node as it is now, None if it is deleted or another one."""
        is_tainted = bool(health(no_execute(node)))
        if is_tainted or node is None or node.ready in (None, "True"):
            self._since = None
        elif self._was_tainted:
            self._since = at
        self._was_tainted = is_tainted
