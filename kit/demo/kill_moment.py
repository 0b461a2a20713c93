"""What the demo reads off the oracle beforehand: when to kill a worker, and how long to wait. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from evictstream.kit.oracle import PodPlan

LONGEST_TAIL_US = 120_000_000
"""How long after the recording deadlines may lie to be waited for."""


def kill_moment_us(plan: Mapping[str, PodPlan], start_us: int) -> int | None:
    """Choose the middle of the longest stretch in which at least half as many deadlines are pending as ever.

    Returns:
        Microseconds since 1970, not before `start_us`; `None` if no deadline is ever pending.
    """
    changes: dict[int, int] = {}
    for pod in plan.values():
        for begin, end in _pending(pod):
            changes[begin] = changes.get(begin, 0) + 1
            changes[end] = changes.get(end, 0) - 1
    pending, peak = 0, 0
    course: list[tuple[int, int]] = []
    for moment in sorted(changes):
        pending += changes[moment]
        peak = max(peak, pending)
        course.append((moment, pending))
    if not peak:
        return None
    stretches: list[tuple[int, int]] = []
    since: int | None = None
    for moment, count in course:
        if 2 * count >= peak:
            since = moment if since is None else since
        elif since is not None:
            stretches.append((since, moment))
            since = None
    begin, end = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
    return max(start_us, (begin + end) // 2)


def _pending(pod: PodPlan) -> list[tuple[int, int]]:
    """Return from when to when a deadline of the pod is ahead, if nobody ever fails or waits."""
    found = []
    evicted_us = pod.course().evicted_us
    for span in pod.spans:
        if evicted_us is not None and span.since_us >= evicted_us:
            break
        if span.is_announced and span.deadline_us is not None:
            until = span.deadline_us if span.until_us is None else min(span.deadline_us, span.until_us)
            found.append((span.since_us, until))
    return found


def waits_until_us(plan: Mapping[str, PodPlan], end_us: int) -> int:
    """Return when the last eviction is due, at least `end_us`; later ones than the longest tail are not waited for."""
    due = [course.evicted_us for course in (one.course() for one in plan.values()) if course.evicted_us is not None]
    return max([end_us, *(moment for moment in due if moment <= end_us + LONGEST_TAIL_US)])


def still_owed(plan: Mapping[str, PodPlan], now_us: int) -> set[str]:
    """Return the UIDs of pods that have to be evicted by now, whatever may have kept the service from it."""
    return {
        uid
        for uid, pod in plan.items()
        for span in pod.spans
        if span.due_us is not None and span.due_us <= now_us and (span.until_us is None or now_us < span.until_us)
    }
