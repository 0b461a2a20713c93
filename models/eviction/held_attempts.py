"""What the brakes mean for the next attempt of an eviction (docs/messages.md#brakes).

A brake puts attempts off and changes nothing else: neither window nor deadline, nor what cancels or ends an eviction.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import Due, Eviction, PodState
from evictstream.models.instants import SECOND_US
from evictstream.models.steering.brakes import Hold, StandingBrake, Subject, longest_hold

BOTH_KNOW_US: Final = 5 * SECOND_US
"""So long after `Held` worker and executor know the same brakes: whose view is older than 3 s acts on no eviction."""


def owed_after_held_us(
    pod: PodState, eviction: Eviction, brakes: Iterable[StandingBrake], rules: RuleParameters
) -> int | None:
    """Return when the next attempt is owed after `Held`, if nothing but the executor's brake holds it.

    At the latest when `Held` has been silent for too long: the brake may depend on the zone, which the worker does not
    know. Earlier if the brake ends before, or is gone. An executor that has not read that yet is given time to.
    """
    latest_us = eviction.next_attempt_us
    if latest_us is None:
        return None
    standing = next((each for each in brakes if each.brake.id == eviction.held_by), None)
    until_us = 0 if standing is None else standing.until_us(pod.uid)
    if until_us is None:
        return latest_us
    if until_us <= (eviction.issued_at_us or 0):
        until_us = latest_us - rules.accepted_silence_us + BOTH_KNOW_US
    return min(latest_us, until_us)


def hold_of(pod: PodState, eviction: Eviction, due: Due, brakes: Sequence[StandingBrake], now_us: int) -> Hold | None:
    """Return what holds an attempt that is owed now; None if nothing does.

    What became due after the end of a brake is not spread. An attempt that the executor holds has been due since it was
    issued, any other one since it is owed.
    """
    return longest_hold(brakes, subject_of(pod, eviction, due), now_us)


def subject_of(pod: PodState, eviction: Eviction, due: Due) -> Subject:
    """Return an eviction as brakes see it; the zone of its node is not known here."""
    return Subject(pod.address.partition("/")[0], pod.uid, due.taint.key, eviction.held_since_us)
