"""Incidents as they were published: each has a reason, says what people have said, and ends with its last taint.

When an incident begins or ends depends on when its worker looks, so each has to be right with some view of the cluster
that could have been known, and with some revision of its policy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from evictstream.kit.oracle.cluster_views import Arrival
from evictstream.kit.oracle.guard_parts import CountedPart, part_of
from evictstream.kit.oracle.guard_records import NEVER_US, GuardRevision, SeenIncident
from evictstream.kit.oracle.guards import GuardLog, released_us
from evictstream.kit.oracle.limits import Stretch
from evictstream.kit.oracle.reading import Json, to_us
from evictstream.kit.oracle.records import Violation, shown
from evictstream.kit.oracle.standing_brakes import READ_WITHIN_US


def check_incidents(log: GuardLog, *, ended_at_us: int, slack_us: int, looks: bool) -> Iterator[Violation]:
    """Find incidents without a reason, in a wrong state, that end too early or too late, and those that are missing.

    Args:
        log: what was written and published.
        ended_at_us: when the run ended, quiet.
        slack_us: what happened so shortly before the end may have had no effect yet.
        looks: whether workers look at guards at the end; else none has to begin or to end.
    """
    for incidents in log.incidents.values():
        for one in incidents:
            if log.begin_of(one) is None or not log.has_begun(one):
                yield _wrong("incident without a reason", one, str(one.said[0][1]))
            yield from _check_states(log, one)
            if one.ended_us != NEVER_US and not _may_have_ended(log, one):
                yield _wrong("incident ended too early", one, f"at {shown(one.ended_us)} its taints are on nodes")
            if looks and one.ended_us == NEVER_US and _is_over(log, one, ended_at_us - slack_us):
                yield _wrong("incident outlasts its taints", one, "no node carries them any more, or nothing guards")
    if looks:
        yield from _check_missing(log, ended_at_us=ended_at_us, slack_us=slack_us)


def _check_missing(log: GuardLog, *, ended_at_us: int, slack_us: int) -> Iterator[Violation]:
    """Find what exceeds a guard at the end of the run, for long, and is of no incident."""
    settled_us = ended_at_us - slack_us
    for policy, revisions in log.policies.items():
        if revisions[-1].from_us + READ_WITHIN_US > settled_us:
            continue
        for name in log.clusters:
            views = log.views_of(name)
            if not views or views[-1].append_us > settled_us:
                continue
            for key in sorted({key for node in views[-1].nodes.values() for key in node.taints}):
                guard = revisions[-1].guard_of(name, key)
                if guard is not None:
                    for part in {part_of(guard, node, seen.zone): None for node, seen in views[-1].nodes.items()}:
                        yield from _missing(log, (policy, name, key), guard, part, span=(settled_us, ended_at_us))


def _missing(
    log: GuardLog, which: tuple[str, str, str], guard: Json, part: CountedPart, *, span: Stretch
) -> Iterator[Violation]:
    policy, name, key = which
    cluster = log.cluster(name)
    view = cluster.views[-1]
    standing = [one for one in log.incidents[which] if one.ended_us == NEVER_US]

    def is_free(arrival: Arrival) -> bool:
        zone = view.zone_of(arrival.node)
        return not any(
            one.part.has(arrival.node, zone) and one.earliest_us <= arrival.since_us <= log.latest_answered_us(one)
            for one in standing
        )

    since_us = cluster.first_excess_us(view, key, part, guard, span=span, counts=is_free)
    if since_us is not None and cluster.has_to_leave(view, key, part, span):
        text = f"{policy} for {key} since {shown(since_us)}: more than the guard allows, and no incident of {part}"
        yield Violation("incident is missing", text, cluster=name)


def _may_have_ended(log: GuardLog, incident: SeenIncident) -> bool:
    if log.may_have_let_go(incident, incident.ended_us):
        return True
    views = [view for view in log.views_of(incident.cluster) if view.append_us <= incident.ended_us]
    span = incident.earliest_us, log.answered_us(incident, incident.ended_us)
    return not all(
        view.any_within(incident.taint, incident.part, *span) for view in views[log.begin_of(incident) or 0 :]
    )


def _is_over(log: GuardLog, incident: SeenIncident, by_us: int) -> bool:
    """Tell whether it has been over for long at the end of the run."""
    last = log.policies[incident.policy][-1]
    if last.from_us + READ_WITHIN_US < by_us and last.guard_of(incident.cluster, incident.taint) is None:
        return True
    views = log.views_of(incident.cluster)
    newest = [
        view for view, after in itertools.zip_longest(views, views[1:]) if after is None or after.append_us > by_us
    ]
    return not any(view.any_within(incident.taint, incident.part, incident.earliest_us, NEVER_US) for view in newest)


def _check_states(log: GuardLog, incident: SeenIncident) -> Iterator[Violation]:
    """Find states of no revision that may be known; a worker that stood still tells of the one that it knew before."""
    for _, said in incident.said if log.is_one_clock else ():
        at_us, early_us = to_us(said["at"]), log.early_us
        states = {
            state
            for revision in log.policies.get(incident.policy, ())
            if revision.from_us <= at_us + early_us
            and (revision.to_us >= at_us - READ_WITHIN_US - early_us or revision.number == said.get("revision", -1))
            for now_us in (at_us - early_us, at_us, at_us + early_us)
            for state in _states(revision, incident, now_us)
        }
        if said["state"] not in states:
            yield _wrong(
                "incident in a wrong state",
                incident,
                f"at {said['at']}: {said['state']}, not {sorted(states)}",
            )


def _states(revision: GuardRevision, incident: SeenIncident, now_us: int) -> Iterator[str]:
    guard: Json | None = revision.guard_of(incident.cluster, incident.taint)
    if guard is None:
        return
    answer = revision.answers.get(incident.id)
    if answer is not None and not answer.is_approval:
        yield "Rejected"
    elif answer is not None and now_us < answer.expires_us:
        yield "Approved"
    else:
        is_released = now_us >= released_us(incident, guard)
        if not is_released or incident.id in revision.lost:
            yield "Waiting"
        if is_released:
            yield "Released"


def _wrong(rule: str, incident: SeenIncident, text: str) -> Violation:
    about = f"{incident.id} of {incident.policy} for {incident.taint} since {shown(incident.from_us)}"
    return Violation(rule, f"{about}: {text}", cluster=incident.cluster)
