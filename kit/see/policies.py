"""Policies as a list shows them, and what a change of them would hold or let go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from evictstream.kit.see.incidents import found_incidents
from evictstream.kit.see.steering import Steering
from evictstream.kit.see.stored_state import StoredState
from evictstream.kit.see.window_texts import window_text
from evictstream.models.eviction import EvictionState
from evictstream.models.eviction.held_attempts import subject_of
from evictstream.models.instants import instant_text
from evictstream.models.messages.policy import Policy, PolicySpec
from evictstream.models.messages.policy_clauses import (
    GuardMeasure,
    GuardScope,
    PolicyGuard,
    PolicyHold,
    PolicyInFlight,
    PolicyLimit,
    PolicySelection,
)
from evictstream.models.steering.holds import Holder, Subject, policy_holder
from evictstream.models.steering.policies import Policies, held_or_limited_by

MOST_PATTERNS_TOLD = 3
"""Patterns of a list that are told; the others are counted."""


class ListedPolicy(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True, kw_only=True):
    """One policy.

    Attributes:
        since: when its newest revision was appended.
        policy: the record; None if it cannot be read.
        problem: why the record cannot be read.
    """

    name: str
    since: str | None = None
    policy: Policy | None = None
    problem: str = ""


def listed_policies(policies: Policies) -> Iterator[ListedPolicy]:
    """Yield the policies that stand, by name, behind records that cannot be read."""
    for key, problem in policies.unreadable.items():
        yield ListedPolicy(name=key, problem=problem)
    for name, standing in sorted(policies.standing.items()):
        if standing.policy.spec is not None:
            yield ListedPolicy(name=name, since=instant_text(standing.appended_us), policy=standing.policy)


def clauses_text(spec: PolicySpec) -> str:
    """Say what a policy does: `settle 5s, patience 1h`."""
    parts = ["observe"] if spec.observe else []
    for word, seconds in (("settle", spec.settle_seconds), ("patience", spec.patience_seconds)):
        if seconds is not None:
            parts.append(f"{word} {length_text(seconds)}")
    if spec.limit is not None:
        parts.append(f"{rate_text(spec.limit)} per {scope_text(spec.limit)}")
    if spec.in_flight is not None:
        parts.append(f"{most_text(spec.in_flight)} in flight per {scope_text(spec.in_flight)}")
    if spec.hold is not None:
        parts.append(f"hold {_hold_text(spec.hold)}")
    if spec.guard is not None:
        parts.append(guard_text(spec.guard))
    return ", ".join(parts)


def guard_text(guard: PolicyGuard) -> str:
    """Say what a guard allows: `guard above 20 or 10% of nodes per taint key and zone within 10m`."""
    allowed = [] if guard.count is None else [str(guard.count)]
    if guard.share_percent is not None:
        allowed.append(f"{guard.share_percent}%")
    what = f"{' or '.join(allowed)} of nodes" if guard.of is GuardMeasure.NODES else f"{guard.count} pods"
    if guard.of is GuardMeasure.OWNERS_LOSING_ALL:
        what = f"{guard.count} owners losing all pods"
    by = "taint key" if guard.by is GuardScope.TAINT_KEY else f"taint key and {guard.by}"
    return f"guard above {what} per {by} within {length_text(guard.within_seconds)}"


def _hold_text(hold: PolicyHold) -> str:
    condition = hold.condition
    if condition is None:
        return f"outside of {' and '.join(map(window_text, hold.outside_of))}"
    if condition.zone is None:
        return "while all zones are in full disruption"
    return f"while {condition.zone.unhealthy_percent}% of a zone is unhealthy"


def rate_text(limit: PolicyLimit) -> str:
    """Write a rate as in a file: `10/s`, `5/10m`."""
    return f"{limit.evictions}/{length_text(limit.in_seconds).removeprefix('1')}"


def most_text(limit: PolicyInFlight) -> str:
    """Say how many may be in flight: `5 pods`, `10% of the nodes`, `3 nodes, 10% at most`."""
    if limit.count is None:
        return f"{limit.share_percent}% of the {limit.of}"
    most = f", {limit.share_percent}% at most" if limit.share_percent is not None else ""
    return f"{limit.count} {limit.of}{most}"


def scope_text(limit: PolicyLimit | PolicyInFlight) -> str:
    """Write the scope of a limit as in a file: `zone`, `label/KEY`."""
    return f"{limit.per}/{limit.label}" if limit.label else str(limit.per)


def length_text(seconds: int) -> str:
    """Write a length of time as in a file: `90s`, `2m`, `1h`, `1d`."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def selected_text(spec: PolicySpec) -> str:
    """Say which evictions a policy is about, for people."""
    text = _selection_words(spec.selected) or "all evictions"
    return text if spec.excluded is None else f"{text} except {_selection_words(spec.excluded)}"


def _selection_words(selection: PolicySelection) -> str:
    parts = [
        f"{name}: {_listed(patterns)}"
        for name, patterns in msgspec.to_builtins(selection).items()
        if name != "priority"  # it is no list
    ]
    if selection.priority is not None:
        parts.append(f"priority: below {selection.priority.below}")
    return "; ".join(parts)


def _listed(patterns: Sequence[str]) -> str:
    more = f" or {len(patterns) - MOST_PATTERNS_TOLD} more" if len(patterns) > MOST_PATTERNS_TOLD else ""
    return " or ".join(patterns[:MOST_PATTERNS_TOLD]) + more


class HeldChange(NamedTuple):
    """What a change of policies does to evictions that are due now, by cluster.

    Attributes:
        held: those that nothing holds now, and something would.
        released: those that something holds now, and nothing would, at once or spread.
        still: those that are held before and after, by whatever.
        others: those of `still` that no changed policy holds: other policies or brakes do.
    """

    held: Counter[str]
    released: Counter[str]
    still: Counter[str]
    others: Counter[str]


def held_change(before: Steering, after: Steering, state: StoredState, now_us: int) -> HeldChange:
    """Count what a change of policies would hold or let go of what is due at an instant, by the rows.

    What a policy would let go little by little counts as released, and what it limits as held.
    """
    change = HeldChange(Counter(), Counter(), Counter(), Counter())
    known = before.policies.standing
    changed = {policy_holder(name) for name, one in after.policies.standing.items() if one is not known.get(name)}
    incidents = {one.name: (one.state.incidents, found_incidents(one, after, now_us)) for one in state.clusters()}
    for stored in state.nodes():
        cluster = stored.aggregate.cluster
        stand, would = incidents[cluster]
        holders = before.of_cluster(cluster, now_us, stand), after.of_cluster(cluster, now_us, would)
        if not any(holders):
            continue
        for pod in stored.aggregate.pods.values():
            eviction = pod.eviction
            if eviction is None or eviction.state is EvictionState.DONE or eviction.owed_us > now_us:
                continue
            subject = subject_of(stored.aggregate, pod, eviction, eviction.due)
            was, is_held = held_or_limited_by(holders[0], subject, now_us), _is_held(holders[1], subject, now_us)
            if was is None:
                change.held[cluster] += is_held
            elif not is_held:
                change.released[cluster] += 1
            else:
                change.still[cluster] += 1
                mine = [one for one in holders[1] if one.holder in changed]
                change.others[cluster] += not _is_held(mine, subject, now_us)
    return HeldChange(*(+counts for counts in change))


def _is_held(holders: Sequence[Holder], subject: Subject, now_us: int) -> bool:
    """Whether an eviction that is due would have to wait, other than for its turn in a spread."""
    by = held_or_limited_by(holders, subject, now_us)
    return by is not None and not by.endswith("/spread")
