"""What an executor last reported of its queue: which attempts need no repeat (semantics.md 12.8)."""

import msgspec

from evictstream.models.eviction.rule_parameters import RuleParameters
from evictstream.models.eviction.state import Eviction
from evictstream.models.eviction.transitions import OUTSTANDING
from evictstream.models.messages.vocabulary import Outcome

_OBSERVED = Outcome.OBSERVED
_NOT_ANSWERED = frozenset({None, Outcome.ACCEPTED, _OBSERVED})


class ExecutorQueue(msgspec.Struct, frozen=True):
    """The newest report of a cluster's executor; instants are microseconds UTC.

    Attributes:
        reported_at_us: append time of the report: no clock of an executor counts.
        read_to_us: the latest `issuedAt` of an attempt that was read; nothing is said of what was issued later.
    """

    reported_at_us: int
    read_to_us: int

    def holds(self, issued_at_us: int) -> bool:
        """Whether an attempt that was issued then, and has no answer, is in the queue."""
        return issued_at_us <= self.read_to_us


def is_only_observed(eviction: Eviction, queue: ExecutorQueue | None) -> bool:
    """Whether the newest attempt was observed, and no executor that acts has reported since it was issued.

    Then a repeat would only be observed again. An executor that begins to act reports, and so ends this.
    """
    if eviction.outcome is not _OBSERVED or eviction.state not in OUTSTANDING:
        return False
    return queue is None or queue.reported_at_us <= (eviction.issued_at_us or 0)


def held_until_us(queue: ExecutorQueue, eviction: Eviction, rules: RuleParameters) -> int:
    """Return until when a report keeps the next attempt of an eviction back; 0 if it does not.

    Only an attempt without an outcome waits, and not beyond `accepted_limit_us` from its `Evict`, whatever reports say.
    """
    issued_at_us = eviction.issued_at_us
    if issued_at_us is None or eviction.state not in OUTSTANDING:
        return 0
    if eviction.outcome not in _NOT_ANSWERED or not queue.holds(issued_at_us):
        return 0
    return min(queue.reported_at_us + rules.report_silence_us, issued_at_us + rules.accepted_limit_us)
