"""What guards mean for one pod (docs/policies.md#guard): when it may not be evicted, and for how long nothing is owed.

An eviction is wrong only if each revision of the policy that could have been known then holds it, with each view of the
cluster's nodes that could have been known. What is owed may wait as long as any of them lets it. So some of what the
page says is not asked for to the second:

- A worker's view may be as old as the lag limit lets it be, but it has the record that tainted the pod's own node, and
  all before. So a storm of which no incident is published yet is known only from its records that are that old.
- An incident that is published holds from when it was opened, by the clock of the worker. If clocks may differ, from
  its first record on. So does one of owners: a pod that comes, or goes, may have let it begin earlier by then.
- After a person has answered, what was not published yet is left alone: it may belong to the answered incident.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from evictstream.kit.oracle.cluster_views import ClusterView
from evictstream.kit.oracle.guard_counts import NO_CLUSTER, CountedCluster, allowed_by
from evictstream.kit.oracle.guard_parts import OWNERS, CountedPart, counts_alike, measure_of, part_of
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
        clusters: Mapping[str, CountedCluster],
        *,
        view_age_us: int,
        early_us: int,
    ) -> None:
        """`view_age_us` is how old a worker's view may be, `early_us` how much the clocks of two workers may differ."""
        self.policies = policies
        self.incidents: defaultdict[tuple[str, str, str], list[SeenIncident]] = defaultdict(list)
        for one in incidents:
            self.incidents[one.policy, one.cluster, one.taint].append(one)
        self.clusters = clusters
        self.view_age_us = view_age_us
        self.early_us = early_us
        self._begins: dict[tuple[str, int], int | None] = {}
        self._spells: dict[tuple[str, str, CountedPart], list[Stretch]] = {}

    @property
    def is_one_clock(self) -> bool:
        """Whether the clocks of all workers agree."""
        return self.early_us < _ONE_CLOCK_US

    def cluster(self, name: str) -> CountedCluster:
        """Give what guards count of a cluster."""
        return self.clusters.get(name, NO_CLUSTER)

    def views_of(self, cluster: str) -> Sequence[ClusterView]:
        """Give the views of a cluster."""
        return self.cluster(cluster).views

    def begin_of(self, incident: SeenIncident) -> int | None:
        """Give the place of the first view at which an incident may have been opened; None if there is none."""
        which = incident.id, incident.first_us
        if which not in self._begins:
            views = enumerate(self.views_of(incident.cluster))
            self._begins[which] = next((place for place, view in views if self.can_be(incident, view)), None)
        return self._begins[which]

    def earliest_begin_us(self, incident: SeenIncident) -> int:
        """Give when it may have begun to hold: a worker that has stood still issues nothing, and then opens it."""
        begin = self.begin_of(incident)
        begin_us = incident.first_us if begin is None else self.views_of(incident.cluster)[begin].append_us
        return min(incident.opened_us, incident.first_us, begin_us)

    def spells_in(self, cluster: str, name: str, part: CountedPart) -> list[Stretch]:
        """Say when a node was among those of a part, by the append times of the records that say so."""
        where = cluster, name, part
        if where not in self._spells:
            found = self._spells[where] = []
            begin_us: int | None = None
            for view in self.views_of(cluster) if part.node in (None, name) else ():
                node = view.nodes.get(name)
                if node is not None and part.has(name, node.zone):
                    begin_us = view.append_us if begin_us is None else begin_us
                elif begin_us is not None:
                    found.append((begin_us, view.append_us))
                    begin_us = None
            if begin_us is not None:
                found.append((begin_us, NEVER_US))
        return self._spells[where]

    def can_be(self, incident: SeenIncident, view: ClusterView) -> bool:
        """Tell whether it may have been opened at a view, perhaps with later taints than it has in its first record."""
        said, part, at_us = incident.said[0][1], incident.part, incident.first_us
        cluster, taint = self.cluster(incident.cluster), incident.taint
        span = min(incident.opened_us, at_us) - self.view_age_us - self.early_us, at_us
        if view.append_us > at_us or view.known(part) != said["known"]:
            return False
        revisions = self.policies.get(incident.policy, ())
        guards = (one.guard_of(incident.cluster, taint) for one in revisions if one.from_us <= at_us)
        return cluster.may_leave(view, taint, part, at_us) and any(
            guard is not None
            and part.is_counted_by(guard)
            and said.get("of", "nodes") == measure_of(guard)
            and said["allowed"] == allowed_by(guard, view, part) < said["openedWith"]
            and cluster.most_since(view, taint, part, guard, from_us=incident.from_us, span=span) >= said["openedWith"]
            for guard in guards
        )

    def has_begun(self, incident: SeenIncident) -> bool:
        """Tell whether a taint of it came when it says that the first did."""
        span = incident.from_us, incident.from_us
        return any(
            view.any_within(incident.taint, incident.part, *span)
            for view in self.views_of(incident.cluster)
            if view.append_us <= incident.first_us
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

    def latest_answered_us(self, incident: SeenIncident) -> int:
        """Give the last instant at which it may have been answered or let go first; never, if it may wait."""
        revisions = self.policies[incident.policy]
        answers = [one.answers[incident.id].from_us for one in revisions if incident.id in one.answers]
        guards = (one.guard_of(incident.cluster, incident.taint) for one in revisions)
        releases = [released_us(incident, guard) for guard in guards if guard is not None]
        is_over = incident.id in revisions[-1].answers or NEVER_US not in releases
        return max((one for one in (*answers, *releases) if one != NEVER_US), default=NEVER_US) if is_over else NEVER_US

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
    node: str = ""

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
        may_have_begun_later = not self.log.is_one_clock or measure_of(incident.said[0][1]) == OWNERS
        is_open = issue.issued_us > incident.opened_us + early_us and (
            not may_have_begun_later or issue.at_us > incident.first_us
        )
        answered_us = self.log.answered_us(incident, issue.issued_us + early_us)
        if not is_open or not incident.from_us <= issue.since_us <= answered_us:
            return False
        known, possible = self._views_at(issue)
        return (
            all(self._is_in(incident.part, view) for view in possible)
            and self._surely_stands(incident, known, answered_us, issue)
            and self._is_kept(incident, revision, guard, issue)
        )

    def _views_at(self, issue: Issue) -> tuple[Sequence[ClusterView], Sequence[ClusterView]]:
        """Give the views that its worker surely had had, and those that may have been its newest."""
        oldest_us = min(issue.issued_us, issue.at_us) - self.log.view_age_us
        there = [view for view in self.log.views_of(self.cluster) if view.append_us <= issue.at_us]
        known = sum(view.append_us <= oldest_us or view.offset <= issue.offset for view in there)
        return there[:known], there[known - 1 :] if known else ()

    def _is_in(self, part: CountedPart, view: ClusterView) -> bool:
        return self.node in view.nodes and part.has(self.node, view.nodes[self.node].zone)

    def _surely_stands(
        self, incident: SeenIncident, known: Sequence[ClusterView], answered_us: int, issue: Issue
    ) -> bool:
        """Tell whether some node carries a taint of it at each moment from its beginning to the last that is known."""
        begin = self.log.begin_of(incident)
        if not known or self.log.may_have_let_go(incident, issue.issued_us):
            return False
        return all(
            view.any_within(incident.taint, incident.part, incident.from_us, answered_us)
            for view in known[len(known) if begin is None else begin :]
        )

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
        known, possible = self._views_at(issue)
        guards = [guard, *filter(None, (one.guard_of(self.cluster, taint) for one in log.policies[name]))]
        if not known or not all(
            counts_alike(guard, one) and self.node in view.nodes for view in possible for one in guards
        ):
            return False
        after_us = min(one.get("releaseAfterSeconds", NEVER_US // SECOND_US) for one in guards) * SECOND_US
        arrivals = [view.arrivals(taint, CountedPart()) for view in [*known, *possible]]
        if min((there[0].since_us for there in arrivals if there), default=0) + after_us <= now_us:
            return False
        parts = {part_of(guard, self.node, view.nodes[self.node].zone) for view in possible}
        answered = (one for one in log.incidents[name, self.cluster, taint] if log.answered_us(one, now_us) <= now_us)
        if any(one.part.meets(part) for one in answered for part in parts):
            return False
        return all(self._is_exceeded(view, guard, guards, issue) for view in possible)

    def _is_exceeded(self, view: ClusterView, guard: Json, guards: Sequence[Json], issue: Issue) -> bool:
        """Tell whether a guard is exceeded in a view, and whatever began there begins by the pod's taint."""
        part = part_of(guard, self.node, view.nodes[self.node].zone)
        span = min(issue.issued_us, issue.at_us) - self.log.view_age_us, issue.at_us
        cluster = self.log.cluster(self.cluster)
        begins = [cluster.first_excess_us(view, issue.taint, part, each, span=span) for each in guards]
        return begins[0] is not None and all(begin_us is None or begin_us <= issue.since_us for begin_us in begins)

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
            release_us = released_us(incident, guard)
            answer = revision.answers.get(incident.id)
            if not incident.earliest_us <= since_us <= min(release_us, NEVER_US if answer is None else answer.from_us):
                continue
            for from_us, to_us in self.log.spells_in(self.cluster, self.node, incident.part):
                begin_us = max(self.log.earliest_begin_us(incident), revision.from_us, from_us)
                end_us = min(incident.ended_us, revision.to_us, to_us)
                if incident.id in revision.lost:
                    yield begin_us, end_us
                elif answer is None:
                    yield begin_us, min(end_us, release_us + share_us)
                elif not answer.is_approval:
                    yield begin_us, end_us
                else:
                    yield begin_us, min(end_us, answer.from_us + share_us)
                    yield max(begin_us, answer.expires_us), min(end_us, release_us + share_us)


NO_GUARDS: Final = GuardLog({}, (), {}, view_age_us=0, early_us=0)

UNGUARDED_POD: Final = PodGuards(NO_GUARDS)
