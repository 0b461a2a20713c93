"""Holds what a replay says against the oracle: what it plays, and what it makes of recorded results."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, get_args

from evictstream.kit.oracle import InputRecord, MessageRecord, Promptness, Violation, judge
from evictstream.kit.oracle.reading import to_us
from evictstream.kit.oracle.records import InputTopic, OutputTopic, shown
from evictstream.kit.recordings.record import RecordedRecord
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.virtual_partition import ReplayedMessage
from evictstream.streams.settings import Settings
from tests.faults.numbers import NUMBERS
from tests.faults.objects import OUTCOMES, result
from tests.faults.replayed.life import SHAPE, Life, draw_life
from tests.kit.oracle.plan import Course, plan

AFTER_SECONDS: Final = 15.0
"""Longer than any window, and than the longest wait for the next attempt."""
SETTINGS: Final = Settings.model_validate({"partitions": SHAPE.partitions, **NUMBERS.settings()})
LIMITS: Final = replace(NUMBERS.limits(), slack_us=0)
AT_ONCE: Final = Promptness(late_us=0, view_us=0)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one life came to: what was wrong, and how much happened."""

    seed: int
    violations: tuple[Violation, ...]
    seen: Counter[str]


def check_life(seed: int) -> Outcome:
    """Replay the life of a seed in both ways."""
    life, seen = draw_life(seed), Counter[str]()
    found = [*check_played(life, seen), *check_recorded(life, seen)]
    return Outcome(seed, tuple(found), seen)


def check_played(life: Life, seen: Counter[str]) -> Iterator[Violation]:
    """Compare each pod's commands with its plan: nothing fails, so it leaves once, in the instant in which it has to.

    The plan knows nothing of what was played: what an eviction causes is no news about other pods.
    """
    messages = _replayed(life.records, plays_executor=True)
    commands: defaultdict[tuple[str, str], list[Json]] = defaultdict(list)
    for message in messages:
        if message.topic == "commands":
            command = json.loads(message.value)
            commands[command["cluster"], command["podUid"]].append(command | {"atUs": message.at_us})
        elif message.topic == "dead-letters":
            yield Violation("dead letter", message.value.decode(errors="replace"))
        else:
            yield from _wrongly_late(json.loads(message.value))
    end_us = _end_us(life.records)
    for cluster in life.clusters:
        inputs = [one for one in inputs_of(life.records) if one.key == cluster.encode()]
        for uid, pod in plan(inputs, LIMITS, SHAPE.partitions).items():
            wanted, found = pod.course(), commands.pop((cluster, uid), [])
            evicted_us = [] if wanted.evicted_us is None or wanted.evicted_us > end_us else [wanted.evicted_us]
            seen["evictions played"] += len(evicted_us)
            if wrong := _differs(wanted, evicted_us, found):
                yield Violation("played", wrong, cluster=cluster, node=pod.node, pod_uid=uid)
    for cluster, uid in commands:
        yield Violation("played", "no record is about this pod", cluster=cluster, pod_uid=uid)


def check_recorded(life: Life, seen: Counter[str]) -> Iterator[Violation]:
    """Let recorded results answer some attempts, and judge the whole log; what nobody answers is repeated."""
    chance = random.Random(life.seed)
    attempts = [message for message in _replayed(life.records, plays_executor=False) if message.topic == "commands"]
    records = sorted([*life.records, *_results(chance, attempts)], key=lambda one: one.timestamp)
    messages = _replayed(records, plays_executor=False)
    log = _log(messages)
    seen["commands beside recorded results"] += sum(one.topic == "commands" for one in log)
    yield from judge(
        inputs_of(records),
        log,
        ended_at_us=_end_us(records),
        partitions=SHAPE.partitions,
        limits=LIMITS,
        early_us=0,
        promptness=AT_ONCE,
    )


def _replayed(records: Sequence[RecordedRecord], *, plays_executor: bool) -> list[ReplayedMessage]:
    run = Replay(SETTINGS, partitions=SHAPE.partitions, plays_executor=plays_executor)
    return sorted([*run.run(records), *run.run_on(AFTER_SECONDS)])


def _end_us(records: Sequence[RecordedRecord]) -> int:
    return records[-1].timestamp * 1_000 + int(AFTER_SECONDS * 1_000_000)


def _wrongly_late(decision: Json) -> Iterator[Violation]:
    """Nothing keeps a replay from its time: no attempt comes after it was owed, by its own account."""
    owed = decision.get("knownAt") or decision["deadline"]
    if decision["decision"] == "Issued" and to_us(decision["cause"]["at"]) > to_us(owed):
        text = f"issued at {decision['cause']['at']}, owed from {owed} on"
        yield Violation("called late", text, cluster=decision["cluster"], pod_uid=decision["podUid"])


def _differs(wanted: Course, evicted_us: Sequence[int], commands: Sequence[Json]) -> str:
    """Say how a pod's commands differ from its course, with both; empty if in nothing."""
    scheduled, moved, announced = list[int](), list[int](), set[str]()
    for one in commands:
        if one["action"] == "Schedule":
            (moved if one["evictionId"] in announced else scheduled).append(to_us(one["deadline"]))
            announced.add(one["evictionId"])
    cancels = [one["reason"]["verdict"] for one in commands if one["action"] == "Cancel"]
    evicts = [one["atUs"] for one in commands if one["action"] == "Evict"]
    is_same = (
        (tuple(scheduled), tuple(moved)) == (wanted.scheduled, wanted.moved)
        and len(cancels) == len(wanted.cancelled)
        and all(verdict in allowed for verdict, allowed in zip(cancels, wanted.cancelled, strict=True))
        and evicts == evicted_us
    )
    if is_same:
        return ""
    return f"wanted {wanted}, found {[(one['action'], one['deadline'], shown(one['atUs'])) for one in commands]}"


def _results(chance: random.Random, attempts: Sequence[ReplayedMessage]) -> Iterator[RecordedRecord]:
    """Let an executor answer some of these attempts, once or twice, soon or late."""
    offsets = Counter[int]()
    for message in attempts:
        command = json.loads(message.value)
        for _ in range(chance.choice([0, 1, 1, 2]) if command["action"] == "Evict" else 0):
            at_ms = -(-message.at_us // 1_000) + chance.randrange(1, 4_000)
            value = result(command, chance.choice(OUTCOMES), at_ms * 1_000)
            offsets[message.partition] += 1
            yield RecordedRecord(
                topic="results",
                partition=message.partition,
                offset=offsets[message.partition] - 1,
                timestamp=at_ms,
                key=message.key,
                value=value,
            )


def inputs_of(records: Sequence[RecordedRecord]) -> list[InputRecord]:
    """Give the inputs among records as the oracle takes them."""
    return [
        InputRecord(
            topic=topic,
            partition=one.partition,
            offset=one.offset,
            append_at_us=one.appended_us,
            key=one.key or b"",
            value=one.value,
        )
        for one in records
        for topic in get_args(InputTopic)
        if topic == one.topic
    ]


def _log(messages: Sequence[ReplayedMessage]) -> list[MessageRecord]:
    offsets = Counter[tuple[str, int]]()
    found = []
    for one in messages:
        for topic in get_args(OutputTopic):
            if topic == one.topic:
                offset = offsets[topic, one.partition]
                offsets[topic, one.partition] += 1
                found.append(
                    MessageRecord(
                        topic=topic,
                        partition=one.partition,
                        offset=offset,
                        append_at_us=one.at_us,
                        key=one.key,
                        headers={},
                        value=one.value,
                    )
                )
    return found
