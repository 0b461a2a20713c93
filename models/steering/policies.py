"""Which evictions the policies hold, and until when: a function of the records of the policies topic, and of the time.

All policies that select an eviction bind: it waits for the longest of their holds. `observe` holds as long as the
policy stands, `settle` until the taint has stood long enough, `hold` until a window opens or an outage is over. What
nothing holds any more waits for its turn, where a `limit` says so (`limits.py`). A `guard` lets what is due at once
wait for a second, and what is too much wait for a person (`guards.py`, `incidents.py`). A revision may hold what the
next one does not. That is spread from the append time of the next one on, as after a brake, so a change releases no
stampede. What the earlier revision would have let go sooner goes sooner: a change holds nothing longer than no change.

`Policies` is a value, as `Brakes` is.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from evictstream.models.instants import MILLISECOND_US, SECOND_US, microseconds, moment_at
from evictstream.models.messages.incident import IncidentAnswer
from evictstream.models.messages.policy import MOST_EARLIER_SPECS, EarlierSpec, Policy, PolicySpec, decode_policy
from evictstream.models.messages.policy_clauses import (
    GuardMeasure,
    PolicyGuard,
    PolicyInFlight,
    PolicyLimit,
    PolicySelection,
)
from evictstream.models.steering import holds
from evictstream.models.steering.guards import LOOK_AROUND_US
from evictstream.models.steering.holds import Hold, Holder, Subject, longest, longest_hold, policy_holder, share_us
from evictstream.models.steering.limits import LimitedBy, order_of, scope_value
from evictstream.models.steering.patterns import Patterns, trait_patterns
from evictstream.models.steering.windows import Windows, is_zone
from evictstream.models.steering.zone_holds import OutageHold, outage_hold

MOST_POLICIES: Final = 100
"""Policies that stand at once. Each eviction that is due is compared with all of its cluster. What comes beyond it is
as a record that cannot be read: everything is held."""


class _Matcher:
    """A selection, ready to be compared with evictions of one cluster."""

    __slots__ = ("_namespaces", "_nodes", "_taints", "_traits", "clusters")

    def __init__(self, selection: PolicySelection, *, is_unknown_in: bool) -> None:
        self.clusters = Patterns(selection.clusters)
        self._nodes = Patterns(selection.nodes)
        self._taints = Patterns(selection.taints)
        self._namespaces = Patterns(selection.namespaces)
        self._traits = trait_patterns(selection, is_unknown_in=is_unknown_in)

    def match(self, subject: Subject) -> bool:
        return (
            self._taints.match(subject.taint)
            and self._namespaces.match(subject.namespace)
            and self._nodes.match(subject.node)
            and (self._traits is None or self._traits.match(subject))
        )


class _Clauses:
    """One revision: what it does, and to which evictions."""

    __slots__ = ("_elsewhere", "_excluded", "_selected", "_windows", "limits", "outage", "spec")

    def __init__(self, spec: PolicySpec) -> None:
        self.spec = spec
        hold = spec.hold
        self._windows = Windows(hold.outside_of) if hold is not None and hold.outside_of else None
        self.outage = outage_hold(spec)
        self.limits = tuple(limit for limit in (spec.limit, spec.in_flight) if limit is not None)
        self._selected = _Matcher(spec.selected, is_unknown_in=True)
        self._excluded: _Matcher | None = None
        self._elsewhere = self
        if spec.excluded is not None:
            self._elsewhere = _Clauses(msgspec.structs.replace(spec, excluded=None))
            self._excluded = _Matcher(spec.excluded, is_unknown_in=False)

    def of_cluster(self, cluster: str) -> "_Clauses | None":
        """Return what remains of it for a cluster; None if it selects nothing there."""
        if not self._selected.clusters.match(cluster):
            return None
        is_excluded = self._excluded is not None and self._excluded.clusters.match(cluster)
        return self if is_excluded else self._elsewhere

    def select(self, subject: Subject) -> bool:
        """Whether it is about an eviction of the cluster."""
        return self._selected.match(subject) and (self._excluded is None or not self._excluded.match(subject))

    def held(self, subject: Subject, now_us: int) -> tuple[str, int | None] | None:
        """Return which clause holds an eviction that it selects, and until when; None if none does.

        Of several clauses the one that holds longest; None for until a person changes something.
        """
        if self.spec.observe:
            return "observe", None
        settled_us = subject.taint_since_us + (self.spec.settle_seconds or 0) * SECOND_US
        open_us = now_us
        if self._windows is not None:
            open_us = self._open_us(self._windows, subject, now_us)
        elif self.outage is not None:
            over_us = self.outage.open_us(subject, now_us)
            if over_us is None:
                return "hold", None
            open_us = over_us
        looked_us = now_us if self.spec.guard is None else subject.taint_since_us + LOOK_AROUND_US
        until_us, clause = max((settled_us, "settle"), (open_us, "hold"), (looked_us, "guard"))
        return (clause, until_us) if now_us < until_us else None

    def _open_us(self, windows: Windows, subject: Subject, now_us: int) -> int:
        """Return when the windows let an eviction go: what was due before one opens is spread over its beginning."""
        hold, span = self.spec.hold, windows.span(now_us)
        assert hold is not None  # noqa: S101 - it has the windows
        open_us = max(now_us, span.from_us)
        if subject.due_us < span.from_us:
            half_seconds = (span.to_us - span.from_us) // 2 // SECOND_US
            open_us = span.from_us + share_us(subject.pod_uid, min(hold.spread_seconds, half_seconds))
        if hold.at_most_seconds is not None:
            open_us = min(open_us, subject.waits_until_us(hold.at_most_seconds))
        return open_us


class StandingPolicy:
    """A policy as its record has come.

    Attributes:
        policy: the record.
        appended_us: its append time.
        answers: to incidents, by id, and since when they count.
    """

    __slots__ = ("_clauses", "_earlier", "answers", "appended_us", "policy")

    def __init__(self, policy: Policy, appended_us: int) -> None:
        self.policy = policy
        self.appended_us = appended_us
        self._clauses = None if policy.spec is None else _Clauses(policy.spec)
        self._earlier = tuple((self.ended_us(one), _Clauses(one.spec)) for one in policy.earlier)
        self.answers = {one.incident: (one, self.counts_from_us(one)) for one in policy.answers}

    def ended_us(self, earlier: EarlierSpec) -> int:
        """Return when an earlier revision ended."""
        return self.appended_us if earlier.ended_at is None else microseconds(earlier.ended_at)

    def counts_from_us(self, answer: IncidentAnswer) -> int:
        """Return since when an answer counts."""
        return self.appended_us if answer.counts_from is None else microseconds(answer.counts_from)

    def spreads(self, earlier: EarlierSpec, now_us: int) -> bool:
        """Whether what an earlier revision held may still have to wait."""
        return now_us < self.ended_us(earlier) + self.policy.spread_seconds * SECOND_US

    def replaced_by(self, spec: PolicySpec | None, now_us: int) -> tuple[EarlierSpec, ...]:
        """Return the earlier revisions of a record that replaces this one, the newest first.

        One that says the same as the new or as a newer one is left out: what it holds, the other one holds as long.
        """
        before = () if self.policy.spec is None else (EarlierSpec(spec=self.policy.spec),)
        spread = (
            EarlierSpec(spec=one.spec, ended_at=moment_at(self.ended_us(one)))
            for one in self.policy.earlier
            if self.spreads(one, now_us)
        )
        found: list[EarlierSpec] = []
        for one in (*before, *spread):
            if one.spec != spec and all(one.spec != newer.spec for newer in found):
                found.append(one)
        return tuple(found[:MOST_EARLIER_SPECS])

    def kept_answers(self) -> tuple[IncidentAnswer, ...]:
        """Return the answers for the record that replaces this one, the newest first."""
        return tuple(
            msgspec.structs.replace(answer, counts_from=moment_at(from_us)) for answer, from_us in self.answers.values()
        )

    def is_over(self, now_us: int) -> bool:
        """Whether it is deleted, and can hold nothing any more."""
        return self.policy.spec is None and not any(self.spreads(one, now_us) for one in self.policy.earlier)

    def of_cluster(self, cluster: str) -> "ClusterPolicy | None":
        """Return it as it is for a cluster; None if it selects nothing there."""
        clauses = None if self._clauses is None else self._clauses.of_cluster(cluster)
        earlier = tuple(
            (ended_us, was)
            for ended_us, clauses_then in self._earlier
            if (was := clauses_then.of_cluster(cluster)) is not None
        )
        if clauses is None and not earlier:
            return None
        return ClusterPolicy(
            policy=self.policy,
            cluster=cluster,
            appended_us=self.appended_us,
            clauses=clauses,
            earlier=earlier,
            answers=self.answers,
        )


class ClusterPolicy(NamedTuple):
    """A policy, as it is for the evictions of one cluster.

    Attributes:
        policy: the record.
        cluster: which.
        appended_us: the append time of the record.
        clauses: of the revision that stands; None if it is deleted, or selects nothing here.
        earlier: when earlier revisions have ended, and their clauses.
        answers: as in `StandingPolicy`.
    """

    policy: Policy
    cluster: str
    appended_us: int
    clauses: _Clauses | None
    earlier: tuple[tuple[int, _Clauses], ...]
    answers: Mapping[str, tuple[IncidentAnswer, int]] = {}

    @property
    def holder(self) -> str:
        """Its name, as of what holds."""
        return policy_holder(self.policy.name)

    @property
    def guard(self) -> PolicyGuard | None:
        """Its guard; None if it has none, or is deleted."""
        return None if self.clauses is None else self.clauses.spec.guard

    def select(self, subject: Subject) -> bool:
        """Whether the revision that stands is about an eviction of its cluster."""
        return self.clauses is not None and self.clauses.select(subject)

    def hold(self, subject: Subject, now_us: int) -> Hold | None:
        """Return until when it holds an eviction of its cluster; None if it does not."""
        found = None
        if self.clauses is not None and self.clauses.select(subject):
            held = self.clauses.held(subject, now_us)
            found = None if held is None else Hold(self._by(held[0]), held[1])
            if found is not None and found.until_us is None:
                return found
        return longest((found, *(self._spread(ended_us, was, subject, now_us) for ended_us, was in self.earlier)))

    def _spread(self, ended_us: int, was: _Clauses, subject: Subject, now_us: int) -> Hold | None:
        """Return until when an eviction waits that an earlier revision held at its end, or may have limited.

        It waits no longer than the earlier revision would have held it. Limits and guards have left nothing that says
        whether they let an eviction wait: all that was due then is spread, unless a limit, or a guard, still binds.
        """
        if subject.due_us > ended_us or not was.select(subject):
            return None
        until_us = ended_us + share_us(subject.pod_uid, self.policy.spread_seconds)
        is_limited = bool(was.limits) and not any(self.limits(subject))
        is_guarded = was.spec.guard is not None and (
            self.guard is None
            or not self.select(subject)
            or self.guard.release_after_seconds != was.spec.guard.release_after_seconds  # perhaps long ago
        )
        if not (is_limited or is_guarded):
            held = was.held(subject, ended_us)
            if held is None:
                return None
            until_us = until_us if held[1] is None else min(until_us, held[1])
        return Hold(self._by("spread"), until_us) if now_us < until_us else None

    def _by(self, clause: str) -> str:
        return f"{self.holder}/{self.policy.revision}/{clause}"

    def outages(self) -> Iterator[OutageHold]:
        """Yield what its revisions hold while a zone, or all zones, are in an outage."""
        for clauses in (self.clauses, *(was for _, was in self.earlier)):
            if clauses is not None and clauses.outage is not None:
                yield clauses.outage

    def limits(self, subject: Subject) -> Iterator[LimitedBy]:
        """Yield the limits that an eviction of its cluster falls under."""
        if self.clauses is None or not self.clauses.limits or not self.clauses.select(subject):
            return
        for limit in self.clauses.limits:
            yield self._limited(limit, subject)

    def _limited(self, limit: PolicyLimit | PolicyInFlight, subject: Subject) -> LimitedBy:
        return LimitedBy(
            order=order_of(limit, self.policy.name),
            name=(self.policy.name, self.cluster, limit, scope_value(limit, subject)),
            limit=limit,
            by=self._by("limit"),
            since_us=self.appended_us,
            of=lambda other: self._limited(limit, other) if self._selects(other) else None,
        )

    def _selects(self, subject: Subject) -> bool:
        return self.clauses is not None and self.clauses.select(subject)

    def patience_us(self, subject: Subject) -> int | None:
        """Return how long after its deadline a disruption budget may keep the pod; None if it does not say."""
        if self.clauses is None or self.clauses.spec.patience_seconds is None or not self.clauses.select(subject):
            return None
        return self.clauses.spec.patience_seconds * SECOND_US


def _count(standing: Iterable[StandingPolicy]) -> int:
    """Count the policies that are not deleted."""
    return sum(one.policy.spec is not None for one in standing)


def _zones(policy: Policy) -> set[str]:
    """Return the time zones of all its revisions."""
    specs = [one.spec for one in policy.earlier] + ([] if policy.spec is None else [policy.spec])
    return {window.zone for spec in specs if spec.hold is not None for window in spec.hold.outside_of}


def limits_on(holders: Iterable[Holder], subject: Subject) -> list[LimitedBy]:
    """Return the limits that an eviction falls under, in the order in which it waits for them."""
    limits = (holder.limits(subject) for holder in holders if isinstance(holder, ClusterPolicy))
    return sorted(itertools.chain.from_iterable(limits), key=lambda limit: limit.order)


def held_or_limited_by(holders: Iterable[Holder], subject: Subject, now_us: int) -> str | None:
    """Return what an eviction that is due has to wait for, as `Hold.by`; a limit also if it is its turn."""
    hold = longest_hold(holders, subject, now_us)
    if hold is not None:
        return hold.by
    return next((limit.by for limit in limits_on(holders, subject)), None)


def longest_patience_us(holders: Iterable[Holder], subject: Subject) -> int | None:
    """Return the patience for an eviction, the longest of all policies; None if none says."""
    found: int | None = None
    for holder in holders:
        patience_us = holder.patience_us(subject) if isinstance(holder, ClusterPolicy) else None
        if patience_us is not None:
            found = patience_us if found is None else max(found, patience_us)
    return found


class Policies(msgspec.Struct, frozen=True):
    """All policies that have been read.

    Attributes:
        standing: by name, also those that are deleted until their records go.
        unreadable: what is wrong with each record that is no policy, by its key. While there is one, all is held.
    """

    standing: Mapping[str, StandingPolicy] = {}
    unreadable: Mapping[str, str] = {}

    def with_record(self, key: bytes | None, value: bytes | None, appended_ms: int) -> "Policies":
        """Return the policies after a record of the topic; one without a value removes what had its key."""

        def read(name: str, text: bytes, others: Mapping[str, StandingPolicy]) -> StandingPolicy | str:
            policy = decode_policy(text)
            if policy.name != name:
                return "the key is not the name of the policy"
            unknown = next((zone for zone in _zones(policy) if not is_zone(zone)), None)
            if unknown is not None:
                return f"there is no time zone {unknown} here"
            if policy.spec is not None and _count(others.values()) >= MOST_POLICIES:
                return f"more than {MOST_POLICIES} policies"
            return StandingPolicy(policy, appended_ms * MILLISECOND_US)

        return Policies(*holds.with_record(self.standing, self.unreadable, (key, value), read))

    @property
    def has_guards(self) -> bool:
        """Whether a policy guards."""
        return any(True for _ in self._guards())

    @property
    def counts_pods(self) -> bool:
        """Whether a guard counts pods, or owners by their pods."""
        return any(guard.of is not GuardMeasure.NODES for guard in self._guards())

    def _guards(self) -> Iterator[PolicyGuard]:
        specs = (one.policy.spec for one in self.standing.values())
        return (spec.guard for spec in specs if spec is not None and spec.guard is not None)

    def objection(self) -> str | None:
        """Return why nothing may be evicted at all: a record cannot be read; None if all can."""
        for key, detail in self.unreadable.items():
            return (
                f"policy {key!r} cannot be read ({detail}); apply it again, upgrade the workers,"
                " or remove it with `evictstream policy delete`"
            )
        return None

    def of_cluster(self, cluster: str) -> tuple[ClusterPolicy, ...]:
        """Return the policies that may say something of evictions of a cluster."""
        found = (standing.of_cluster(cluster) for standing in self.standing.values())
        return tuple(one for one in found if one is not None)


NO_POLICIES: Final = Policies()
