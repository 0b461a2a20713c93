"""Remembering deleted UIDs for a while, so that a late feed cannot bring back the dead (semantics.md 12.3)."""

from evictstream.models.eviction.accepting import Version, later
from evictstream.models.eviction.limits import MOST_DEPARTED
from evictstream.models.eviction.state import Gone
from evictstream.models.eviction.step import Step


def remember_node(step: Step, uid: str, version: Version) -> None:
    """Remember a deleted node by its UID; events of it up to `version` will be dropped. Writes the node's row."""
    departed = step.aggregate.departed
    departed[uid] = gone = _memory(step, departed.get(uid), version, 0)
    if len(departed) > MOST_DEPARTED:
        del departed[min(departed, key=lambda known: departed[known].until_us)]
    step.write_node()
    _wake(step, gone)


def remember_pod(step: Step, uid: str, version: Version, opened: int) -> None:
    """Remember a deleted pod by its UID; events of it up to `version` will be dropped. Writes its row."""
    gone = step.aggregate.gone
    gone[uid] = _memory(step, gone.pop(uid, None), version, opened)  # as the last: they are forgotten in this order
    step.write_gone(uid, gone[uid])
    _wake(step, gone[uid])


def _memory(step: Step, known: Gone | None, version: Version, opened: int) -> Gone:
    until_us = step.at_us + step.rules.remember_deleted_us
    if known is None:
        return Gone(version, until_us, opened)
    return Gone(later(version, known.version), max(until_us, known.until_us), max(opened, known.opened))


def _wake(step: Step, gone: Gone) -> None:
    """Ask for one wake-up per node, not one per deleted pod: it forgets all whose time has passed and asks again."""
    aggregate = step.aggregate
    if aggregate.purge_at_us is None or gone.until_us < aggregate.purge_at_us:
        aggregate.purge_at_us = gone.until_us
        step.wake(gone.until_us, "")
