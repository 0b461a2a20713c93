"""What `evictstream what-if --policy` adds: when evictions are issued, and what holds the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from evictstream.kit.replay.policy_preview import GovernedPreview
from evictstream.kit.replay.standing_holds import hold_text
from evictstream.kit.what_if.preview import PodOutcome, Preview, leaves_us
from evictstream.models.instants import SECOND_US, instant_text
from evictstream.models.steering.holds import holder_of


def governed_rows(preview: Preview, governed: GovernedPreview) -> Iterator[list[str]]:
    """Give rows of the summary."""
    end_us = preview.at_us + governed.seconds * SECOND_US
    due_us = [leaves_us(one.after, preview.at_us) for one in preview.outcomes]
    fates = [fate for one in preview.outcomes if (fate := governed.fates.get(one.uid)) is not None]
    yield [f"have to leave within {governed.seconds:,} s", f"{sum(at is not None and at <= end_us for at in due_us):,}"]
    yield ["  evicted by then", f"{sum(fate.issued_us is not None for fate in fates):,}"]
    holders = Counter(holder_of(fate.hold.by) for fate in fates if fate.hold is not None)
    for holder, count in sorted(holders.items()):
        yield [f"  held then, {holder}", f"{count:,}"]


def governed_words(preview: Preview, governed: GovernedPreview, outcome: PodOutcome) -> str:
    """Say when the eviction of a pod is issued, or what holds it."""
    fate = governed.fates.get(outcome.uid)
    if leaves_us(outcome.after, preview.at_us) is None:
        return ""
    if fate is None:
        return f"not within {governed.seconds:,} s"
    if fate.hold is not None:
        return f"held, {fate.hold.by}"
    seconds = ((fate.issued_us or 0) - preview.at_us) / SECOND_US
    return f"after {seconds:.1f} s" if seconds else "at once"


def governed_json(governed: GovernedPreview | None, outcome: PodOutcome) -> dict[str, object]:
    """Give the same for programs; nothing if nobody asks."""
    if governed is None:
        return {}
    fate = governed.fates.get(outcome.uid)
    hold = None if fate is None else fate.hold
    until_us = None if hold is None else hold.until_us
    return {
        "issuedAt": None if fate is None or fate.issued_us is None else instant_text(fate.issued_us),
        "heldBy": None if hold is None else hold.by,
        "heldUntil": None if until_us is None else instant_text(until_us),
        "held": None if hold is None else hold_text(hold),
    }
