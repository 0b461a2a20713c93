"""What stands on the topics of a schedule, for the oracle: inputs and brakes as appended, outputs as committed."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from kafka import KafkaConsumer, TopicPartition

from evictstream.kit.oracle.records import InputRecord, InputTopic, KeyedRecord, MessageRecord, OutputTopic
from evictstream.streams.settings import Settings
from tests.faults.braking import as_policy

INPUTS: tuple[InputTopic, ...] = ("nodes", "pods", "results")
OUTPUTS: tuple[OutputTopic, ...] = ("commands", "decisions", "dead-letters")
STEERING = ("brakes", "policies", "incidents")
ONE_PARTITION = ("brakes", "policies")
NOTHING_KNOWN: Mapping[tuple[str, int], int] = {}
POLL_MS = 200
READ_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Log:
    """What stands on the topics, each partition's records by offset."""

    inputs: Sequence[InputRecord] = ()
    messages: Sequence[MessageRecord] = ()
    brakes: Sequence[KeyedRecord] = ()
    policies: Sequence[KeyedRecord] = ()
    incidents: Sequence[KeyedRecord] = ()


class UnreadableTopicError(AssertionError):
    """The end of a topic cannot be reached: a transaction that nobody ends hides it."""


def new_consumer(settings: Settings, topics: Sequence[str], isolation: str = "read_committed") -> KafkaConsumer:
    """Make a reader of whole topics from their start, without a group."""
    consumer = KafkaConsumer(
        bootstrap_servers=settings.bootstrap_servers,
        isolation_level=isolation,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        group_id=None,
        fetch_max_wait_ms=50,
    )
    whole = {f"{settings.topic_prefix}{topic}" for topic in ONE_PARTITION}
    places = [
        TopicPartition(topic, number)
        for topic in topics
        for number in range(1 if topic in whole else settings.partitions)
    ]
    consumer.assign(places)
    return consumer


def read_all(settings: Settings, topics: Sequence[str]) -> dict[str, list[Any]]:
    """Read topics from start to end as a `read_committed` reader; records by topic, each partition's by offset.

    Raises:
        UnreadableTopicError: a `read_committed` reader cannot get as far as one that reads everything.
    """
    everything = new_consumer(settings, topics, "read_uncommitted")
    ends = everything.end_offsets(everything.assignment())
    everything.close()
    consumer = new_consumer(settings, topics)
    found: dict[str, list[Any]] = {topic: [] for topic in topics}
    until = time.monotonic() + READ_SECONDS
    try:
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            if time.monotonic() > until:
                behind = [str(partition) for partition, end in ends.items() if consumer.position(partition) < end]
                raise UnreadableTopicError(f"no end in {READ_SECONDS:g} s: {', '.join(behind)}")
            for partition, records in consumer.poll(timeout_ms=POLL_MS).items():
                found[partition.topic] += records
    finally:
        consumer.close()
    return found


def read_log(
    settings: Settings, brakes: Sequence[KeyedRecord] = (), known_us: Mapping[tuple[str, int], int] = NOTHING_KNOWN
) -> Log:
    """Read everything. Raises `UnreadableTopicError`.

    Args:
        settings: of the service.
        brakes: those of the plan. A policy that was written for one is given as this brake, as the oracle asks for.
        known_us: when the writer of a brake or a policy heard that it stands there, by topic and offset.
    """
    names = {f"{settings.topic_prefix}{topic}": topic for topic in (*INPUTS, *OUTPUTS, *STEERING)}
    inputs: list[InputRecord] = []
    messages: list[MessageRecord] = []
    steering: dict[str, list[KeyedRecord]] = {topic: [] for topic in STEERING}
    for name, records in read_all(settings, list(names)).items():
        topic = names[name]
        for record in records:
            at_us, key = record.timestamp * 1000, record.key
            if topic in INPUTS:
                heard = InputRecord(
                    topic=topic,
                    partition=record.partition,
                    offset=record.offset,
                    append_at_us=at_us,
                    key=key,
                    value=record.value,
                )
                inputs.append(heard)
            elif topic in STEERING:
                known_at_us = known_us.get((name, record.offset), 0) if topic in ONE_PARTITION else 0
                steering[topic].append(
                    KeyedRecord(append_at_us=at_us, known_at_us=known_at_us, key=key, value=record.value)
                )
            else:
                told = MessageRecord(
                    topic=cast("OutputTopic", topic),
                    partition=record.partition,
                    offset=record.offset,
                    append_at_us=at_us,
                    key=key,
                    headers=dict(record.headers),
                    value=record.value,
                )
                messages.append(told)
    standing_for, guarding = split_policies(steering["policies"], brakes)
    return Log(inputs, messages, [*steering["brakes"], *standing_for], guarding, steering["incidents"])


def split_policies(
    policies: Iterable[KeyedRecord], brakes: Iterable[KeyedRecord]
) -> tuple[list[KeyedRecord], list[KeyedRecord]]:
    """Give those that were written for a brake as this brake, and the others, which guard."""
    stood_for = {policy.value: brake.value for brake in brakes if (policy := as_policy(brake)) is not None}
    standing_for, guarding = [], []
    for record in policies:
        if record.value in stood_for:
            standing_for.append(dataclasses.replace(record, value=stood_for[record.value]))
        else:
            guarding.append(record)
    return standing_for, guarding
