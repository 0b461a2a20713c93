"""What holds an eviction now, since when it is due, and until when it is held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from evictstream.models.eviction import NodeAggregate, PodState, RuleParameters
from evictstream.models.eviction.backstop import built_in_goes_on_us
from evictstream.models.eviction.held_attempts import subject_of
from evictstream.models.instants import instant_text
from evictstream.models.steering.brakes import StandingBrake
from evictstream.models.steering.holds import Holder, is_of_policy, longest_hold
from evictstream.models.steering.policies import held_or_limited_by


class StandingHold(NamedTuple):
    """An eviction that is held.

    Attributes:
        by: the id of a brake, or `policy/NAME/REVISION/CLAUSE`.
        due_us: since when it is due, microseconds since 1970.
        until_us: when it may go, as it stands now; None where no instant is known.
        brake_ends_us: when the brake ends or has ended, if `until_us` is a turn in its spread; None otherwise.
        built_in_us: when Kubernetes' own controller goes on, if that is before (semantics.md 12.12).
    """

    cluster: str
    pod_uid: str
    by: str
    due_us: int
    until_us: int | None
    built_in_us: int | None = None
    brake_ends_us: int | None = None


def standing_hold(
    aggregate: NodeAggregate, pod: PodState, holders: Sequence[Holder], now_us: int, *, rules: RuleParameters
) -> StandingHold | None:
    """Return what holds the open eviction of a pod; None if it has none, if it is not due, or if nothing holds it."""
    eviction = pod.eviction
    wakeup_us = None if eviction is None else eviction.wakeup_us
    if eviction is None or wakeup_us is None or wakeup_us > now_us:
        return None
    subject, hold = subject_of(aggregate, pod, eviction, eviction.due), None
    by = held_or_limited_by(holders, subject, now_us) if holders else None
    if by is not None:
        hold = longest_hold(holders, subject, now_us)
    elif eviction.is_held_by_executor:
        by = eviction.held_by
    if by is None:
        return None
    until_us = None if hold is None else hold.until_us
    ends_us = (one.end_us for one in holders if isinstance(one, StandingBrake) and one.holder == by)
    return StandingHold(
        cluster=aggregate.cluster,
        pod_uid=pod.uid,
        by=by,
        due_us=subject.due_us,
        until_us=until_us,
        built_in_us=built_in_goes_on_us(aggregate.node, pod, rules, until_us=until_us),
        brake_ends_us=next(ends_us, None),
    )


def hold_text(hold: StandingHold) -> str:
    """Tell it."""
    until = _until(hold)
    held = f"It is due since {instant_text(hold.due_us)}. {_holder(hold.by)} holds it {until}."
    if hold.built_in_us is None:
        return held
    return f"{held} The built-in controller goes on at {instant_text(hold.built_in_us)}."


def _holder(by: str) -> str:
    if not is_of_policy(by):
        return f"The brake {by}"
    _, name, revision, clause = by.split("/", 3)
    return f"The policy {name} (revision {revision}, {clause})"


def _until(hold: StandingHold) -> str:
    if hold.until_us is not None:
        until = f"until {instant_text(hold.until_us)}"
        if hold.brake_ends_us is None:
            return until
        return f"{until}, its turn in the spread after the brake's end at {instant_text(hold.brake_ends_us)}"
    if not is_of_policy(hold.by):
        return "until somebody releases it"
    _, _, incident = hold.by.partition("/guard:")
    if incident:
        return f"until somebody answers the incident {incident}"
    clause = hold.by.split("/", 3)[3]
    if clause.startswith("guard:"):
        return f"until somebody answers the incident {clause.removeprefix('guard:')}"
    return _UNTIL.get(clause, "until somebody changes the policy")


_UNTIL: Final = {"limit": "until it is its turn", "hold": "until the outage is over"}
"""What a clause waits for that names no instant."""
