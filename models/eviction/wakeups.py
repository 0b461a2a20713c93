"""When an aggregate wants to be looked at again. Stale wake-ups are harmless: `fire` decides anew."""

from evictstream.models.eviction.state import Eviction, NodeAggregate
from evictstream.models.messages.vocabulary import EvictionState

_SCHEDULED = EvictionState.SCHEDULED


def eviction_wakeup_us(eviction: Eviction) -> int | None:
    """Tell when an eviction is owed its next step; None if it is done."""
    return eviction.due.deadline_us if eviction.state is _SCHEDULED else eviction.next_attempt_us


def purge_wakeup_us(aggregate: NodeAggregate) -> int | None:
    """Tell when the first remembered UID may be forgotten; None if none is remembered."""
    first = next(iter(aggregate.gone.values()), None)
    remembered = aggregate.departed.values() if first is None else (first, *aggregate.departed.values())
    return min((gone.until_us for gone in remembered), default=None)
