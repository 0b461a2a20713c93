"""Commands and results about the sample pod as they stand on the topics, each command with its decision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from evictstream.kit.demo.judgement import oracle_limits
from evictstream.kit.oracle import InputRecord, MessageRecord
from evictstream.models.instants import instant_us
from evictstream.streams.settings import Settings
from tests.kit.demo.samples import Event, at, command, us
from tests.kit.oracle.plan import PodPlan, plan

DECISIONS = {"Schedule": "Scheduled", "Evict": "Issued", "Cancel": "Cancelled"}
NOT_IN_RESULTS = {"action", "revision", "nodeUid", "reason", "windowStart", "deadline", "issuedAt"}

encode = msgspec.json.encode


class Seen(NamedTuple):
    """A command, and when it was committed, microseconds since 1970."""

    at_us: int
    command: Event


def records_of(events: Iterable[Event]) -> list[InputRecord]:
    """Watch events that are appended to one partition, each when it is observed."""
    return [
        InputRecord(
            topic="nodes" if event["object"]["kind"] == "Node" else "pods",
            partition=0,
            offset=offset,
            append_at_us=instant_us(event["observedAt"]),
            key=event["cluster"].encode(),
            value=encode(event),
        )
        for offset, event in enumerate(events)
    ]


def plan_of(events: Iterable[Event]) -> dict[str, PodPlan]:
    """What they lead to, by UID of the pod."""
    return plan(records_of(events), oracle_limits(Settings()), partitions=1)


def seen(seconds: float, action: str, deadline: float = 30, **more: Any) -> Seen:
    more = {"windowStart": at(10), "issuedAt": at(seconds)} | more
    return Seen(us(seconds), command(action, deadline, **more))


def answer(seconds: float, outcome: str, attempt: int = 1) -> InputRecord:
    """A result about the first eviction."""
    same = {name: value for name, value in command("Evict", 30).items() if name not in NOT_IN_RESULTS}
    value = encode({**same, "kind": "EvictionResult", "attempt": attempt, "outcome": outcome})
    return InputRecord(topic="results", partition=0, offset=0, append_at_us=us(seconds), key=b"lab", value=value)


def told(commands: Sequence[Seen]) -> list[MessageRecord]:
    """Write commands, each with the decision that belongs to it."""
    found: list[MessageRecord] = []
    for number, one in enumerate(sorted(commands, key=lambda one: one.at_us)):
        value = {**one.command, **one.command["reason"], "decision": DECISIONS[one.command["action"]]}
        decision = {**value, "cause": {"at": value["issuedAt"]}}
        common = {"partition": 0, "offset": number, "append_at_us": one.at_us}
        found.append(MessageRecord(topic="commands", key=b"lab", headers={}, value=encode(one.command), **common))
        found.append(MessageRecord(topic="decisions", key=b"lab", headers={}, value=encode(decision), **common))
    return found
