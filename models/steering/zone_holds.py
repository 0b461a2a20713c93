"""What a policy holds while a zone, or all zones, are in an outage: a function of the counts of nodes, and of the time.

In an outage of a zone the nodes are rarely dead: what is between is. Kubernetes' controller taints slower then, or not
at all, while the windows of tainted nodes go on. A hold keeps their pods where they are. It is about the two taints of
node health, unless its policy names taints.

When the outage is over, what was due before goes spread from that instant on. The counts know it (`node_counts.py`), so
a new owner finds the same.
"""

from typing import Final, NamedTuple

from evictstream.models.kubernetes.taints import HEALTH_KEYS
from evictstream.models.messages.policy import PolicySpec
from evictstream.models.messages.policy_clauses import PolicyHold, ZoneOutage
from evictstream.models.steering.holds import Subject, share_us
from evictstream.models.steering.node_counts import STILL, KnownNodes

ANY_ZONE: Final = None
"""Of a hold that looks at all zones together."""


class OutageHold(NamedTuple):
    """The clause.

    Attributes:
        hold: as the record has it.
        zone: how a zone has to be; None if all zones have to be in full disruption.
        is_about_all: whether the policy names taints itself.
    """

    hold: PolicyHold
    zone: ZoneOutage | None
    is_about_all: bool

    def until_us(self, known: KnownNodes, zone: str | None, now_us: int) -> int | None:
        """Return until when there was an outage in a zone: `STILL` if there is one, None if there was none."""
        if self.zone is None:
            return known.full_until_us(now_us)
        return known.unhealthy_until_us(zone, self.zone.unhealthy_percent, self.zone.at_least, now_us)

    def open_us(self, subject: Subject, now_us: int) -> int | None:
        """Return when it lets an eviction go, `now_us` for at once; None while only the end of the outage does."""
        if subject.known is None or not (self.is_about_all or subject.taint in HEALTH_KEYS):
            return now_us
        until_us = self.until_us(subject.known, subject.zone, now_us)
        if until_us is None or subject.due_us > until_us:
            return now_us
        open_us = None if until_us == STILL else until_us + share_us(subject.pod_uid, self.hold.spread_seconds)
        if self.hold.at_most_seconds is None:
            return open_us
        latest_us = subject.waits_until_us(self.hold.at_most_seconds)
        return latest_us if open_us is None else min(open_us, latest_us)

    def zones_held(self, known: KnownNodes, now_us: int) -> frozenset[str | None]:
        """Return the zones in which there is an outage; `ANY_ZONE` alone for all."""
        zones = known.zones(now_us) if self.zone is not None else (ANY_ZONE,)
        return frozenset(zone for zone in zones if self.until_us(known, zone, now_us) == STILL)


def outage_hold(spec: PolicySpec) -> OutageHold | None:
    """Return what a revision holds in an outage; None if it says nothing of one."""
    if spec.hold is None or spec.hold.condition is None:
        return None
    return OutageHold(spec.hold, spec.hold.condition.zone, bool(spec.selected.taints))
