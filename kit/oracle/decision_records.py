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
    evictions = {(command.cluster, command.eviction_id) for command in commands}
    decided: Counter[CommandFacts] = Counter()
    optional: set[CommandFacts] = set()
    for message in messages:
        if message.topic != "decisions":
            continue
        value = json.loads(message.value)
        if value["decision"] not in ACTIONS:
            continue
        facts = _of_decision(message, value)
        decided[facts] += 1
        has_command = (facts.cluster, facts.eviction_id) in evictions
        if (value["decision"] == "Moved" and _is_due_at_once(facts, value)) or (
            facts.action == "Cancel" and not has_command
        ):
            optional.add(facts)
    for facts in ordered - decided:
        yield _wrong("no decision", facts, "a command, but no decision that belongs to it")
    for facts in decided - ordered:
        if facts not in optional:
            yield _wrong("needless decision", facts, "a decision, but no command that belongs to it")


def _is_due_at_once(facts: CommandFacts, value: Json) -> bool:
    return facts.verdict == "Untolerated" or facts.deadline_us <= to_us(value["cause"]["at"])


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


def _of_decision(message: MessageRecord, value: Json) -> CommandFacts:
    return CommandFacts(
        action=ACTIONS[value["decision"]],
        cluster=value["cluster"],
        node=value["node"],
        pod=f"{value['namespace']}/{value['pod']}",
        pod_uid=value["podUid"],
        eviction_id=value["evictionId"],
        revision=value["revision"],
        attempt=value["attempt"],
        verdict=value["verdict"],
        taint=value["taint"]["key"],
        window_us=to_us(value["windowStart"]),
        deadline_us=to_us(value["deadline"]),
        partition=message.partition,
        key=message.key,
    )


def _wrong(rule: str, facts: CommandFacts, text: str) -> Violation:
    about = f"{facts.action} {facts.eviction_id[:6]} revision {facts.revision} attempt {facts.attempt}"
    whole = f"{about} ({facts.verdict} by {facts.taint}): {text}"
    return Violation(rule, whole, cluster=facts.cluster, node=facts.node, pod_uid=facts.pod_uid)
