"""Incidents as they were published: each has a reason, says what people have said, and ends with its last taint.

When an incident begins or ends depends on when its worker looks, so each has to be right with some view of the cluster
that could have been known, and with some revision of its policy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from evictstream.kit.oracle.guard_records import NEVER_US, GuardRevision, SeenIncident
from evictstream.kit.oracle.guards import GuardLog, released_us
from evictstream.kit.oracle.reading import Json, to_us
from evictstream.kit.oracle.records import Violation, shown
from evictstream.kit.oracle.standing_brakes import READ_WITHIN_US


def check_incidents(log: GuardLog, *, ended_at_us: int, slack_us: int) -> Iterator[Violation]:
    """Find incidents without a reason, with a wrong state, and such that end too early or too late.

    Args:
        log: what was written and published.
        ended_at_us: when the run ended, quiet.
        slack_us: what happened so shortly before the end may have had no effect yet.
    """
    for incidents in log.incidents.values():
        for one in incidents:
            if not any(log.can_be(one, view) for view in log.views_of(one.cluster)):
                yield _wrong("incident without a reason", one, str(one.said[0][1]))
            yield from _check_states(log, one)
            if one.ended_us != NEVER_US and not _may_have_ended(log, one):
                yield _wrong("incident ended too early", one, f"at {shown(one.ended_us)} its taints are on nodes")
            if one.ended_us == NEVER_US and _is_over(log, one, ended_at_us - slack_us):
                yield _wrong("incident outlasts its taints", one, "no node carries them any more, or nothing guards")


def _may_have_ended(log: GuardLog, incident: SeenIncident) -> bool:
    if log.may_have_let_go(incident, incident.ended_us):
        return True
    views = [view for view in log.views_of(incident.cluster) if view.append_us <= incident.ended_us]
    begins = next((place for place, view in enumerate(views) if log.can_be(incident, view)), 0)
    answered_us = log.answered_us(incident, incident.ended_us)
    return not all(view.any_within(incident.taint, incident.earliest_us, answered_us) for view in views[begins:])


def _is_over(log: GuardLog, incident: SeenIncident, by_us: int) -> bool:
    """Tell whether it has been over for long at the end of the run."""
    last = log.policies[incident.policy][-1]
    if last.from_us + READ_WITHIN_US < by_us and last.guard_of(incident.cluster, incident.taint) is None:
        return True
    views = log.views_of(incident.cluster)
    newest = [
        view for view, after in itertools.zip_longest(views, views[1:]) if after is None or after.append_us > by_us
    ]
    return not any(view.any_within(incident.taint, incident.earliest_us, NEVER_US) for view in newest)


def _check_states(log: GuardLog, incident: SeenIncident) -> Iterator[Violation]:
    for _, said in incident.said if log.is_one_clock else ():
        at_us, early_us = to_us(said["at"]), log.early_us
        states = {
            _state(revision, incident, now_us)
            for revision in log.policies.get(incident.policy, ())
            if revision.from_us <= at_us + early_us and revision.to_us >= at_us - READ_WITHIN_US - early_us
            for now_us in (at_us - early_us, at_us, at_us + early_us)
        }
        if said["state"] not in states:
            yield _wrong(
                "incident in a wrong state",
                incident,
                f"at {said['at']}: {said['state']}, not {sorted(filter(None, states))}",
            )


def _state(revision: GuardRevision, incident: SeenIncident, now_us: int) -> str | None:
    guard: Json | None = revision.guard_of(incident.cluster, incident.taint)
    if guard is None:
        return None
    answer = revision.answers.get(incident.id)
    if answer is not None and not answer.is_approval:
        return "Rejected"
    if answer is not None and now_us < answer.expires_us:
        return "Approved"
    return "Waiting" if now_us < released_us(incident, guard) else "Released"


def _wrong(rule: str, incident: SeenIncident, text: str) -> Violation:
    about = f"{incident.id} of {incident.policy} for {incident.taint} since {shown(incident.from_us)}"
    return Violation(rule, f"{about}: {text}", cluster=incident.cluster)
