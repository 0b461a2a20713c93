"""What guards mean for one pod (docs/policies.md#guard): when it may not be evicted, and for how long nothing is owed.

An eviction is wrong only if each revision of the policy that could have been known then holds it, with each view of the
cluster's nodes that could have been known. What is owed may wait as long as any of them lets it. So some of what the
page says is not asked for to the second:

- A worker's view may be as old as the lag limit lets it be, but it has the record that tainted the pod's own node, and
  all before. So a storm of which no incident is published yet is known only from its records that are that old.
- An incident that is published holds from when it was opened, by the clock of the worker. If clocks may differ, from
  its first record on.
- After a person has answered, what was not published yet is left alone: it may belong to the answered incident.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from evictstream.kit.oracle.cluster_views import ClusterView
from evictstream.kit.oracle.guard_records import NEVER_US, GuardRevision, SeenIncident
from evictstream.kit.oracle.limits import SECOND_US, Stretch
from evictstream.kit.oracle.reading import Json
from evictstream.kit.oracle.standing_brakes import READ_WITHIN_US

_LOOKS_AROUND_US: Final = SECOND_US

_ONE_CLOCK_US: Final = SECOND_US // 10  # what may differ by more is not compared


class Issue(NamedTuple):
    """An eviction that was issued, with what its worker has surely known.

    Attributes:
        taint: key of the reason.
        since_us: since when the taint is on the node.
        due_us: since when it is surely due.
        issued_us: when it was issued, by the clock of the worker.
        at_us: its append time.
        offset: of the record that made the node what it is.
    """

    taint: str
    since_us: int
    due_us: int
    issued_us: int
    at_us: int
    offset: int


class GuardLog:
    """All policies that guard, all incidents that were published, and the views of all clusters."""

    def __init__(
        self,
        policies: Mapping[str, Sequence[GuardRevision]],
        incidents: Iterable[SeenIncident],
        views: Mapping[str, Sequence[ClusterView]],
        *,
        view_age_us: int,
        early_us: int,
    ) -> None:
        """`view_age_us` is how old a worker's view may be, `early_us` how much the clocks of two workers may differ."""
        self.policies = policies
        self.incidents: defaultdict[tuple[str, str, str], list[SeenIncident]] = defaultdict(list)
        for one in incidents:
            self.incidents[one.policy, one.cluster, one.taint].append(one)
        self.views = views
        self.view_age_us = view_age_us
        self.early_us = early_us

    @property
    def is_one_clock(self) -> bool:
        """Whether the clocks of all workers agree."""
        return self.early_us < _ONE_CLOCK_US

    def views_of(self, cluster: str) -> Sequence[ClusterView]:
        """Give the views of a cluster."""
        return self.views.get(cluster, ())

    def can_be(self, incident: SeenIncident, view: ClusterView) -> bool:
        """Tell whether the incident may have been opened at a view."""
        said = incident.said[0][1]
        revisions = self.policies.get(incident.policy, ())
        guards = (
            one.guard_of(incident.cluster, incident.taint) for one in revisions if one.from_us <= incident.first_us
        )
        return (
            view.append_us <= incident.first_us
            and view.known == said["known"]
            and any(
                guard is not None
                and said["allowed"] == view.allowed(guard) < said["openedWith"]
                and view.count_from(incident.taint, incident.from_us, guard["withinSeconds"] * SECOND_US)
                >= said["openedWith"]
                for guard in guards
            )
        )

    def answered_us(self, incident: SeenIncident, until_us: int = NEVER_US) -> int:
        """Give when it was answered, or let go, first, as far as that had been said by an instant."""
        instants = [NEVER_US]
        for revision in self.policies.get(incident.policy, ()):
            if revision.from_us > until_us:
                break
            if incident.id in revision.answers:
                instants.append(revision.answers[incident.id].from_us)
            guard = revision.guard_of(incident.cluster, incident.taint)
            if guard is not None:
                instants.append(released_us(incident, guard))
        return min(instants)

    def may_have_let_go(self, incident: SeenIncident, until_us: int) -> bool:
        """Tell whether its policy may have guarded nothing since it was opened: then it ends, whatever its taints."""
        return any(
            one.guard_of(incident.cluster, incident.taint) is None
            for one in self.policies.get(incident.policy, ())
            if one.from_us <= until_us + self.early_us
            and one.to_us >= incident.opened_us - READ_WITHIN_US - self.early_us
        )


def released_us(incident: SeenIncident, guard: Json) -> int:
    """Give when a guard lets an incident go by itself."""
    after_seconds = guard.get("releaseAfterSeconds")
    return NEVER_US if after_seconds is None else incident.opened_us + after_seconds * SECOND_US


@dataclass(frozen=True, slots=True)
class PodGuards:
    """The guards, as seen by one pod."""

    log: GuardLog
    cluster: str = ""
    namespace: str = ""
    uid: str = ""

    def hold(self, issue: Issue) -> bool:
        """Tell whether a guard holds an eviction, whatever could have been known when it was issued."""
        oldest_us = issue.issued_us - READ_WITHIN_US - self.log.early_us
        newest_us = issue.issued_us + self.log.early_us
        return any(
            all(
                self._holds(name, revision, issue)
                for revision in revisions
                if revision.from_us <= newest_us and revision.to_us >= oldest_us
            )
            for name, revisions in self.log.policies.items()
        )

    def _holds(self, name: str, revision: GuardRevision, issue: Issue) -> bool:
        guard = revision.guard_of(self.cluster, issue.taint, self.namespace)
        now_us = issue.issued_us + self.log.early_us
        if guard is None:
            ends_us = revision.guarded_until_us(self.cluster, issue.taint, self.namespace)
            return any(self._is_spread(revision, ended_us, issue) for ended_us in ends_us)
        if now_us < issue.since_us + _LOOKS_AROUND_US:
            return True
        incidents = self.log.incidents[name, self.cluster, issue.taint]
        return any(self._surely_holds(one, revision, guard, issue) for one in incidents) or self._is_too_much(
            name, guard, issue
        )

    def _is_spread(self, revision: GuardRevision, from_us: int, issue: Issue) -> bool:
        """Tell whether it is surely not its turn yet, of what is spread from an instant on."""
        early_us = self.log.early_us
        return issue.due_us + early_us <= from_us and issue.issued_us + early_us < from_us + revision.share_us(self.uid)

    def _surely_holds(self, incident: SeenIncident, revision: GuardRevision, guard: Json, issue: Issue) -> bool:
        early_us = self.log.early_us
        is_open = issue.issued_us > incident.opened_us + early_us and (
            self.log.is_one_clock or issue.at_us > incident.first_us
        )
        answered_us = self.log.answered_us(incident, issue.issued_us + early_us)
        if not is_open or not incident.from_us <= issue.since_us <= answered_us:
            return False
        return self._surely_stands(incident, answered_us, issue) and self._is_kept(incident, revision, guard, issue)

    def _surely_stands(self, incident: SeenIncident, answered_us: int, issue: Issue) -> bool:
        """Tell whether some node carries a taint of it at each moment from its beginning to that of the pod's node."""
        if self.log.may_have_let_go(incident, issue.issued_us):
            return False
        before = [view for view in self.log.views_of(self.cluster) if view.offset <= issue.offset]
        begins = next((place for place, view in enumerate(before) if self.log.can_be(incident, view)), len(before))
        return all(view.any_within(incident.taint, incident.from_us, answered_us) for view in before[begins:])

    def _is_kept(self, incident: SeenIncident, revision: GuardRevision, guard: Json, issue: Issue) -> bool:
        """Tell whether a revision of the policy still holds all evictions of the incident."""
        answer, early_us = revision.answers.get(incident.id), self.log.early_us
        if answer is not None and not answer.is_approval:
            return True
        if answer is not None and issue.issued_us < answer.expires_us + early_us:
            return issue.issued_us < answer.expires_us - early_us and self._is_spread(revision, answer.from_us, issue)
        release_us = released_us(incident, guard)
        return issue.issued_us + early_us < release_us or self._is_spread(revision, release_us, issue)

    def _is_too_much(self, name: str, guard: Json, issue: Issue) -> bool:
        """Tell whether the nodes exceed the guard in each view that could have been known, and the pod's is of them."""
        log, taint = self.log, issue.taint
        now_us = issue.issued_us + log.early_us
        if any(log.answered_us(one, now_us) <= now_us for one in log.incidents[name, self.cluster, taint]):
            return False
        oldest_us = min(issue.issued_us, issue.at_us) - log.view_age_us
        there = [view for view in log.views_of(self.cluster) if view.append_us <= issue.at_us]
        known = sum(view.append_us <= oldest_us or view.offset <= issue.offset for view in there)
        if not known:
            return False
        guards = [guard, *filter(None, (one.guard_of(self.cluster, taint) for one in log.policies[name]))]
        after_us = min(one.get("releaseAfterSeconds", NEVER_US // SECOND_US) for one in guards) * SECOND_US
        first_us = min((view.arrivals[taint][0] for view in there if view.arrivals.get(taint)), default=0)
        if first_us + after_us <= now_us:
            return False
        views = there[known - 1 :]
        exceeded = [view.first_excess_us(taint, guard) for view in views]
        begins = [view.first_excess_us(taint, each) for view in views for each in guards]
        return None not in exceeded and all(begin_us is None or begin_us <= issue.since_us for begin_us in begins)

    def stretches(self, taint: str, since_us: int) -> Iterator[Stretch]:
        """Give when an eviction for a taint that came at an instant may have to wait."""
        for name, revisions in self.log.policies.items():
            for revision in revisions:
                for from_us, to_us in self._of_revision(name, revision, taint, since_us):
                    yield from_us, to_us + READ_WITHIN_US

    def _of_revision(self, name: str, revision: GuardRevision, taint: str, since_us: int) -> Iterator[Stretch]:
        share_us = revision.share_us(self.uid)
        for ended_us in revision.guarded_until_us(self.cluster, taint, self.namespace):
            yield ended_us, ended_us + share_us
        guard = revision.guard_of(self.cluster, taint, self.namespace)
        if guard is None:
            return
        yield since_us, since_us + _LOOKS_AROUND_US
        for incident in self.log.incidents[name, self.cluster, taint]:
            answer, release_us = revision.answers.get(incident.id), released_us(incident, guard)
            begin_us = max(min(incident.opened_us, incident.first_us), revision.from_us)
            end_us = min(incident.ended_us, revision.to_us)
            if not incident.earliest_us <= since_us <= min(release_us, NEVER_US if answer is None else answer.from_us):
                continue
            if answer is None:
                yield begin_us, min(end_us, release_us + share_us)
            elif not answer.is_approval:
                yield begin_us, end_us
            else:
                yield begin_us, min(end_us, answer.from_us + share_us)
                yield max(begin_us, answer.expires_us), min(end_us, release_us + share_us)


NO_GUARDS: Final = GuardLog({}, (), {}, view_age_us=0, early_us=0)

UNGUARDED_POD: Final = PodGuards(NO_GUARDS)
