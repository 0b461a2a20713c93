"""Decision records against commands: each command has the record that explains it, and no record makes one up.

What belongs together agrees in partition, key, pod, eviction, revision, attempt, verdict, taint, window and deadline.

| command | its decision |
|---|---|
| `Schedule` | `Scheduled`, `Moved` or `Withdrawn` |
| `Evict` | `Issued` or `Retried` |
| `Cancel` | `Cancelled` |

Two decisions need not have a command: `Moved` to an eviction due at once, and `Cancelled` when executors never heard of
the eviction. `Due`, `Reported` and `Completed` never have one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evictstream.kit.oracle.commands import SeenCommand
from evictstream.kit.oracle.reading import Json, to_us
from evictstream.kit.oracle.records import MessageRecord, Violation

ACTIONS = {
    "Scheduled": "Schedule",
    "Moved": "Schedule",
    "Withdrawn": "Schedule",
    "Issued": "Evict",
    "Retried": "Evict",
    "Cancelled": "Cancel",
}


class CommandFacts(NamedTuple):
    """What a command and its decision have in common."""

    action: str
    cluster: str
    node: str
    pod: str
    pod_uid: str
    eviction_id: str
    revision: int
    attempt: int
    verdict: str
    taint: str
    window_us: int
    deadline_us: int
    partition: int
    key: bytes


def check_decisions(commands: Sequence[SeenCommand], messages: Sequence[MessageRecord]) -> Iterator[Violation]:
    """Find commands without a decision and decisions without a command."""
    ordered = Counter(_of_command(command) for command in commands)
    known = {(command.cluster, command.eviction_id) for command in commands}
    decided: Counter[CommandFacts] = Counter()
    optional: set[CommandFacts] = set()
    for message in messages:
        if message.topic != "decisions":
            continue
        found = json.loads(message.value)
        if found["decision"] not in ACTIONS:
            continue
        told = _of_decision(message, found)
        decided[told] += 1
        was_told = (told.cluster, told.eviction_id) in known
        if (found["decision"] == "Moved" and _is_due_at_once(told, found)) or (
            told.action == "Cancel" and not was_told
        ):
            optional.add(told)
    for told in ordered - decided:
        yield _wrong("no decision", told, "a command, but no decision that belongs to it")
    for told in decided - ordered:
        if told not in optional:
            yield _wrong("needless decision", told, "a decision, but no command that belongs to it")


def _is_due_at_once(told: CommandFacts, found: Json) -> bool:
    return told.verdict == "Untolerated" or told.deadline_us <= to_us(found["cause"]["at"])


def _of_command(command: SeenCommand) -> CommandFacts:
    return CommandFacts(
        action=command.action,
        cluster=command.cluster,
        node=command.node,
        pod=command.pod,
        pod_uid=command.pod_uid,
        eviction_id=command.eviction_id,
        revision=command.revision,
        attempt=command.attempt,
        verdict=command.verdict,
        taint=command.taint,
        window_us=command.window_us,
        deadline_us=command.deadline_us,
        partition=command.record.partition,
        key=command.record.key,
    )


def _of_decision(message: MessageRecord, found: Json) -> CommandFacts:
    return CommandFacts(
        action=ACTIONS[found["decision"]],
        cluster=found["cluster"],
        node=found["node"],
        pod=f"{found['namespace']}/{found['pod']}",
        pod_uid=found["podUid"],
        eviction_id=found["evictionId"],
        revision=found["revision"],
        attempt=found["attempt"],
        verdict=found["verdict"],
        taint=found["taint"]["key"],
        window_us=to_us(found["windowStart"]),
        deadline_us=to_us(found["deadline"]),
        partition=message.partition,
        key=message.key,
    )


def _wrong(rule: str, told: CommandFacts, text: str) -> Violation:
    about = f"{told.action} {told.eviction_id[:6]} revision {told.revision} attempt {told.attempt}"
    whole = f"{about} ({told.verdict} by {told.taint}): {text}"
    return Violation(rule, whole, cluster=told.cluster, node=told.node, pod_uid=told.pod_uid)
