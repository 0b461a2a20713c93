"""Outages: the two health taints tell of one thing (semantics.md 12.4).

The controller that sets `not-ready` and `unreachable` swaps one for the other, sometimes with both on the node for
some milliseconds, and when it is restarted takes the taint off and puts it back within 0.1 s. All of that is one
outage. A longer gap is meant as a fresh start, and is one.
"""

from collections.abc import Iterable

import msgspec

from evictstream.models.eviction.state import Outage, TaintState
from evictstream.models.kubernetes.taints import HEALTH_KEYS


def advance_outage(
    known: Outage | None, taints: Iterable[TaintState], ready: str | None, at_us: int, gap_us: int
) -> Outage | None:
    """Carry the outage of a node over to what is seen on it now.

    Args:
        known: the outage so far; None if there was none, or if the node is new.
        taints: the `NoExecute` taints on the node now.
        ready: status of its condition `Ready`, None if it is not reported.
        at_us: the instant of the event.
        gap_us: longest gap without a health taint that does not end an outage, microseconds.

    Returns:
        The outage, which may be in its gap, or None.
    """
    is_tainted = any(state.taint.key in HEALTH_KEYS for state in taints)
    if known is None:
        return Outage(at_us) if is_tainted else None
    is_too_long = known.gap_since_us is not None and at_us - known.gap_since_us > gap_us
    if is_tainted:
        if is_too_long:
            return Outage(at_us)
        return known if known.gap_since_us is None else msgspec.structs.replace(known, gap_since_us=None)
    if is_too_long or ready is None or ready == "True":
        return None
    return known if known.gap_since_us is not None else msgspec.structs.replace(known, gap_since_us=at_us)
