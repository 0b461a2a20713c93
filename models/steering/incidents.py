"""Incidents: what guards hold until a person answers, and until when.

An incident is about the nodes, perhaps of one zone, whose taint of its key came since its beginning, and no later than
it was answered. It holds all evictions of its policy on them for this taint, until somebody approves it, or for as long
as it says. It ends when the last of its taints is gone.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from evictstream.models.instants import SECOND_US, microseconds
from evictstream.models.messages.incident import IncidentAnswer, IncidentState, IncidentVerdict
from evictstream.models.steering.guarded_nodes import ALL_NODES, Covered, GuardedPart
from evictstream.models.steering.guards import Exceeded
from evictstream.models.steering.holds import Hold, Holder, Subject, share_us
from evictstream.models.steering.policies import ClusterPolicy

MOST_INCIDENTS: Final = 100
"""Incidents of a cluster that are kept, the oldest: they are in its row, which is written with each heartbeat. One that
waits is never dropped. What exceeds a guard beyond them is not held until one ends: only who may taint nodes makes so
many, with as many keys."""

_ID_BYTES: Final = 5  # people type ids; a fleet has some incidents at a time


class OpenIncident(msgspec.Struct, frozen=True, omit_defaults=True):
    """An incident as the row of its cluster has it; instants are microseconds UTC.

    Attributes:
        id: of it; no other one in the fleet has it.
        policy: name of the policy whose guard holds it.
        taint: key of the taint.
        from_us: when the first of its taints came.
        opened_us: when it was found.
        nodes: how many nodes, pods or owners there were then.
        limit: how many the guard allowed.
        known: of how many that were known.
        answered_us: when it was answered first, or let go; 0 if it was not.
        zone: of all its nodes, empty for nodes without a zone; None where nodes of all zones were counted together.
        node: its one node, where the pods of each node were counted; else None.
        of: what was counted; a text, as a later version may count something else.
        by_person: whether a person has answered it. It is never let go by itself if the answer is lost.
    """

    id: str
    policy: str
    taint: str
    from_us: int
    opened_us: int
    nodes: int
    limit: int
    known: int
    answered_us: int = 0
    zone: str | None = None
    node: str | None = None
    of: str = "nodes"
    by_person: bool = False

    @property
    def part(self) -> GuardedPart:
        """The nodes that were counted."""
        return GuardedPart(self.zone, self.node)


def open_incident(cluster: str, policy: ClusterPolicy, exceeded: Exceeded, now_us: int) -> OpenIncident:
    """Return a new incident of the guard of a policy."""
    name, part, guard = policy.policy.name, exceeded.part, policy.guard
    place = [text for text in (part.zone, part.node) if text is not None]
    text = "\0".join((cluster, name, exceeded.taint, str(exceeded.from_us), str(now_us), *place))
    return OpenIncident(
        id=hashlib.blake2b(text.encode(), digest_size=_ID_BYTES).hexdigest(),
        policy=name,
        taint=exceeded.taint,
        from_us=exceeded.from_us,
        opened_us=now_us,
        nodes=exceeded.counted,
        limit=exceeded.limit,
        known=exceeded.known,
        zone=part.zone,
        node=part.node,
        of="nodes" if guard is None else str(guard.of),
    )


def begin_earlier(incidents: list[OpenIncident], policy: ClusterPolicy, exceeded: Exceeded) -> bool:
    """Let an incident begin with taints that came before it; returns whether there is one to which they belong.

    Records may be late, so the first taints of a storm may be told after its incident was found. What has been answered
    begins no earlier.
    """
    within_us = 0 if policy.guard is None else policy.guard.within_seconds * SECOND_US
    for place, one in enumerate(incidents):
        is_of_it = (one.policy, one.taint) == (policy.policy.name, exceeded.taint) and not one.answered_us
        is_near = exceeded.from_us < one.from_us <= exceeded.from_us + within_us
        if is_of_it and is_near and one.part in (exceeded.part, ALL_NODES):
            incidents[place] = msgspec.structs.replace(one, from_us=exceeded.from_us)
            return True
    return False


def found_together(found: Sequence[Exceeded], room: int) -> list[Exceeded]:
    """Return what is to become incidents; where there is room for so many, or for fewer, those of a key are one.

    The last room is for all nodes: no zone and no node is left out, as long as its key is not the one too many.
    """
    if len(found) < room:
        return list(found)
    together: dict[str, Exceeded] = {}
    for one in found:
        known = together.get(one.taint, one)
        together[one.taint] = one._replace(
            part=ALL_NODES,
            from_us=min(one.from_us, known.from_us),
            counted=one.counted if known is one else known.counted + one.counted,
            known=one.known if known is one else known.known + one.known,
        )
    return list(together.values())


class StandingIncident(NamedTuple):
    """An incident with the policy that holds it, as long as one decision takes.

    Attributes:
        incident: as its row has it.
        policy: as it is for the cluster.
    """

    incident: OpenIncident
    policy: ClusterPolicy

    @property
    def holder(self) -> str:
        """The name of its policy, as of what holds."""
        return self.policy.holder

    @property
    def answer(self) -> tuple[IncidentAnswer, int] | None:
        """What a person has said, and since when it counts; None if nobody has."""
        return self.policy.answers.get(self.incident.id)

    def state(self, now_us: int) -> IncidentState:
        """Return where it is."""
        found = self.answer
        if found is not None and found[0].verdict is IncidentVerdict.REJECTED:
            return IncidentState.REJECTED
        if found is not None and (found[0].expires_at is None or now_us < microseconds(found[0].expires_at)):
            return IncidentState.APPROVED
        release_us = self.release_us
        return IncidentState.WAITING if release_us is None or now_us < release_us else IncidentState.RELEASED

    @property
    def release_us(self) -> int | None:
        """When it lets evictions go by itself; None if never, as when the answer of a person is lost."""
        if self.incident.by_person and self.answer is None:
            return None
        guard = self.policy.guard
        after_seconds = None if guard is None else guard.release_after_seconds
        return None if after_seconds is None else self.incident.opened_us + after_seconds * SECOND_US

    @property
    def waits_from_us(self) -> int:
        """Since when it waits for a person, if it does: since it was found, or since its approval expired."""
        expires_at = None if self.answer is None else self.answer[0].expires_at
        return max(self.incident.opened_us, 0 if expires_at is None else microseconds(expires_at))

    def answered_us(self, now_us: int) -> int | None:
        """Return when it was answered first, or let go; None if it was not."""
        found, release_us = self.answer, self.release_us
        instants = [self.incident.answered_us] if self.incident.answered_us else []
        if found is not None:
            instants.append(found[1])
        if release_us is not None and release_us <= now_us:
            instants.append(release_us)
        return min(instants, default=None)

    def covered(self, now_us: int) -> Covered:
        """Return which taints belong to it."""
        return Covered(self.incident.part, (self.incident.from_us, self.answered_us(now_us)))

    def hold(self, subject: Subject, now_us: int) -> Hold | None:
        """Return until when it holds an eviction of its cluster; None if it does not."""
        incident = self.incident
        if subject.taint != incident.taint or not self.covered(now_us).has(
            subject.taint_since_us, subject.node, subject.zone
        ):
            return None
        if not self.policy.select(subject):
            return None
        by = f"{self.holder}/{self.policy.policy.revision}/guard:{incident.id}"
        let_go_us = self._let_go_us(now_us)
        if let_go_us is None:
            return Hold(by, None)
        until_us = let_go_us + share_us(subject.pod_uid, self.policy.policy.spread_seconds)
        return Hold(by, until_us) if subject.due_us <= let_go_us and now_us < until_us else None

    def _let_go_us(self, now_us: int) -> int | None:
        """Return since when its evictions may go, or when they may; None if a person has to answer first."""
        found = self.answer
        match self.state(now_us):
            case IncidentState.REJECTED:
                return None
            case IncidentState.APPROVED if found is not None:
                return found[1]
            case _:
                return self.release_us


def standing_incidents(incidents: Iterable[OpenIncident], holders: Iterable[Holder]) -> Iterator[StandingIncident]:
    """Yield those whose policy still has a guard; it is one of the `holders`."""
    policies = (one for one in holders if isinstance(one, ClusterPolicy) and one.guard is not None)
    by_name = {one.policy.name: one for one in policies}
    for incident in incidents:
        policy = by_name.get(incident.policy)
        if policy is not None:
            yield StandingIncident(incident, policy)
