"""Commands as the oracle sees them, and the rules that hold for their stream whatever the inputs were."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evictstream.kit.oracle.reading import place, to_us
from evictstream.kit.oracle.records import MessageRecord, Violation, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCommand:
    """A command. `at_us` is the broker's append time, `issued_at_us` the service's own."""

    record: MessageRecord
    at_us: int
    action: str
    eviction_id: str
    revision: int
    attempt: int
    cluster: str
    node: str
    pod: str
    pod_uid: str
    verdict: str
    taint: str
    window_us: int
    deadline_us: int
    issued_at_us: int

    def __str__(self) -> str:
        """Say it in one line."""
        return (
            f"{self.action} {self.eviction_id[:6]} revision {self.revision} attempt {self.attempt} ({self.verdict} by"
            f" {self.taint}) for {shown(self.deadline_us)}, issued at {shown(self.issued_at_us)}, appended at"
            f" {shown(self.at_us)}"
        )


def read_command(record: MessageRecord) -> SeenCommand:
    """Read a command."""
    value = json.loads(record.value)
    return SeenCommand(
        record=record,
        at_us=record.append_at_us,
        action=value["action"],
        eviction_id=value["evictionId"],
        revision=value["revision"],
        attempt=value["attempt"],
        cluster=value["cluster"],
        node=value["node"],
        pod=f"{value['namespace']}/{value['pod']}",
        pod_uid=value["podUid"],
        verdict=value["reason"]["verdict"],
        taint=value["reason"]["taint"]["key"],
        window_us=to_us(value["windowStart"]),
        deadline_us=to_us(value["deadline"]),
        issued_at_us=to_us(value["issuedAt"]),
    )


def check_stream(commands: Sequence[SeenCommand], partitions: int) -> Iterator[Violation]:
    """Check what needs no inputs: identity, order, numbers that grow. Commands of a partition are in log order."""
    names: set[tuple[object, ...]] = set()
    ended: set[tuple[str, str]] = set()
    newest: dict[tuple[str, str], SeenCommand] = {}
    for command in commands:
        name = (command.cluster, command.eviction_id, command.revision, command.attempt, command.action)
        eviction = (command.cluster, command.eviction_id)
        before = newest.get(eviction)
        if name in names:
            yield _wrong("sent twice", command, "comes again")
        names.add(name)
        key = command.cluster.encode()
        if command.record.key != key or place(key, partitions) != command.record.partition:
            yield _wrong("misplaced", command, f"key {command.record.key!r} in {command.record.partition}")
        if eviction in ended:
            yield _wrong("after the end", command, "comes after the Cancel of the same eviction")
        if before is not None:
            if before.pod_uid != command.pod_uid:
                yield _wrong("id used again", command, f"the same eviction was of {before.pod_uid}")
            if not _grows(before, command):
                yield _wrong("does not grow", command, f"comes after {before}")
        if command.action == "Evict" and command.issued_at_us < command.deadline_us:
            yield _wrong("early", command, "issued before its own deadline")
        newest[eviction] = command
        if command.action == "Cancel":
            ended.add(eviction)


def _grows(before: SeenCommand, after: SeenCommand) -> bool:
    """Tell whether revision and attempt go up as they have to: an `Evict` is a new attempt, a `Schedule` a revision."""
    if after.revision < before.revision:
        return False
    if after.action == "Schedule":
        return after.revision > before.revision and after.attempt == before.attempt
    return after.attempt == before.attempt + (after.action == "Evict")


def _wrong(rule: str, command: SeenCommand, text: str) -> Violation:
    return Violation(rule, f"{command}: {text}", cluster=command.cluster, node=command.node, pod_uid=command.pod_uid)


def check_names(messages: Sequence[MessageRecord]) -> Iterator[Violation]:
    """Check that no decision and no dead letter is there twice."""
    names: set[tuple[object, ...]] = set()
    for message in messages:
        if message.topic == "commands":
            continue
        name = (message.topic, *_name(message))
        if name in names:
            text = " ".join(map(str, name))
            yield Violation("sent twice", text, cluster=message.key.decode(errors="replace"))
        names.add(name)


def _name(message: MessageRecord) -> tuple[object, ...]:
    """Say which decision or dead letter it is. An attempt may be reported as failed, and later as done."""
    if message.topic == "dead-letters":
        return (message.headers["ce_id"],)
    value = json.loads(message.value)
    names = ("cluster", "evictionId", "revision", "attempt", "decision")
    return (*(value[name] for name in names), value.get("outcome"))
