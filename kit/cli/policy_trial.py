"""What `evictstream policy test` prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from evictstream.kit.cli.differences import count_rows, difference_json
from evictstream.kit.cli.incident_table import nodes_words
from evictstream.kit.replay.comparison import RunDifference
from evictstream.kit.replay.evictions import EvictionsOfRun
from evictstream.kit.replay.policy_trial import PolicyTrial
from evictstream.models.instants import instant_text
from evictstream.models.messages.policy import Policy
from evictstream.models.messages.policy_clauses import GuardMeasure
from evictstream.models.steering.incidents import OpenIncident
from evictstream.streams.cli.output import print_long_json, print_table, say

_MOST_LISTED: Final = 20
"""Differences in the table for people; `-o json` has all."""

_WORDS: Final = {
    "Earlier": "earlier with them",
    "Later": "later with them",
    "OnlyHere": "only with them",
    "OnlyThere": "only without them",
}


def print_trial(trial: PolicyTrial) -> None:
    """Print it for people."""
    if trial.first_us is not None:
        span = f"{instant_text(trial.first_us)} to {instant_text(trial.last_us)}"
        say(f"{trial.records} records, {span}")
    before, after = _counts(trial.without, trial.end_us), _counts(trial.governed, trial.end_us)
    print_table(
        ["evictions", "without", "with policies"],
        [[name, str(before.get(name, 0)), str(after.get(name, 0))] for name in dict.fromkeys((*before, *after))],
    )
    say()
    if clauses := list(_clause_rows(trial)):
        print_table(["policy", "clause", "let wait", "half within", "longest", "held at the end"], clauses)
    else:
        say("no eviction that was issued had to wait, and none waits at the end")
    say()
    for cluster, incident, stands in trial.incidents:
        word = "would wait for a person" if stands else "would have waited for a person, until its taints went"
        say(
            f"from {instant_text(incident.opened_us)} an incident of {cluster} {word}:"
            f" {_excess(incident)} ({incident.policy})"
        )
    if trial.incidents:
        say()
    rows = [["the same", str(trial.same), ""]]
    rows += [[words, count, reason] for words, count, _, reason in count_rows(trial.differences, _WORDS)]
    print_table(["issued", "evictions", "reason"], rows)
    if trial.differences:
        say()
        print_table(["pod", "node", "with", "without", "seconds"], _lines(trial.differences[:_MOST_LISTED]))
    if len(trial.differences) > _MOST_LISTED:
        say(f"and {len(trial.differences) - _MOST_LISTED:,} more; -o json has all")


def _excess(incident: OpenIncident) -> str:
    where = nodes_words(incident.known, incident.zone, incident.node)
    if incident.of == GuardMeasure.PODS:
        return f"more than {incident.limit} pods have to leave {where} for {incident.taint}"
    if incident.of == GuardMeasure.OWNERS_LOSING_ALL:
        return f"more than {incident.limit} owners lose all of their pods for {incident.taint}, on {where}"
    return f"{incident.taint} on more than {incident.limit} of {where}"


def _counts(evictions: EvictionsOfRun, end_us: int) -> dict[str, int]:
    cancelled = Counter(str(one.cancelled_for) for one in evictions if one.cancelled_for and one.issued_at_us is None)
    return {
        "issued": sum(one.issued_at_us is not None for one in evictions),
        **{f"cancelled, {verdict}": count for verdict, count in sorted(cancelled.items())},
        "not due at the end": sum(one.is_open and one.deadline_us > end_us for one in evictions),
    }


def _clause_rows(trial: PolicyTrial) -> Iterator[list[str]]:
    told = set()
    for one in trial.clauses:
        held = "" if one.policy in told else str(trial.held_at_end.get(one.policy, 0))
        told.add(one.policy)
        times = [f"{seconds:.1f} s" for seconds in (one.median_seconds, one.longest_seconds)]
        yield [one.policy, one.clause, str(one.delayed), *times, held]
    for name, count in trial.held_at_end.items():
        if name not in told:
            yield [name, "", "0", "", "", str(count)]


def _lines(differences: Iterable[RunDifference]) -> Iterator[list[str]]:
    for one in differences:
        times = [instant_text(side.at_us) if side else "-" for side in (one.here, one.there)]
        yield [one.first.name, one.first.node, *times, "" if one.seconds is None else f"{one.seconds:+.1f}"]


def print_trial_json(trial: PolicyTrial, policies: Iterable[Policy]) -> None:
    """Print it for programs, with all differences."""
    head: dict[str, Any] = {
        "policies": [msgspec.to_builtins(policy) for policy in policies],
        "records": trial.records,
        "firstAt": None if trial.first_us is None else instant_text(trial.first_us),
        "lastAt": None if trial.first_us is None else instant_text(trial.last_us),
        "without": _summary(trial.without, trial.end_us),
        "with": _summary(trial.governed, trial.end_us),
        "spared": trial.spared,
        "clauses": [
            {
                "policy": one.policy,
                "clause": one.clause,
                "delayed": one.delayed,
                "medianSeconds": one.median_seconds,
                "longestSeconds": one.longest_seconds,
            }
            for one in trial.clauses
        ],
        "heldAtEnd": trial.held_at_end,
        "incidents": [
            {
                "cluster": cluster,
                "policy": incident.policy,
                "taint": incident.taint,
                **({} if incident.zone is None else {"zone": incident.zone}),
                **({} if incident.node is None else {"node": incident.node}),
                "of": incident.of,
                "since": instant_text(incident.from_us),
                "openedAt": instant_text(incident.opened_us),
                "openedWith": incident.nodes,
                "allowed": incident.limit,
                "known": incident.known,
                "stands": stands,
            }
            for cluster, incident, stands in trial.incidents
        ],
        "same": trial.same,
    }
    rows = (difference_json(one, kind=one.kind, here="with", there="without") for one in trial.differences)
    print_long_json(head, "differences", rows)


def _summary(evictions: EvictionsOfRun, end_us: int) -> dict[str, int]:
    return {
        "issued": sum(one.issued_at_us is not None for one in evictions),
        "cancelled": sum(one.cancelled_at_us is not None and one.issued_at_us is None for one in evictions),
        "notDue": sum(one.is_open and one.deadline_us > end_us for one in evictions),
    }
