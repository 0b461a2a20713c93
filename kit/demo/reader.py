"""Reads topics as others than the service would: commands as they come, and at the end everything that was logged."""

from __future__ import annotations

import dataclasses
import json
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

from kafka import TopicPartition

from evictstream.kit.oracle import InputRecord, MessageRecord
from evictstream.kit.oracle.records import InputTopic, OutputTopic
from evictstream.models.instants import MILLISECOND_US
from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.consumers import open_consumer
from evictstream.streams.settings import Settings

POLL_MS = 200
"""How long one poll waits for a record; only bounds how soon the thread sees that it has to end."""

JOIN_SECONDS = 10.0
"""For the thread to end; a poll and a goodbye to the broker."""


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """A command, and when a `read_committed` reader had it, microseconds since 1970."""

    at_us: int
    command: dict[str, Any]


class Arrival(NamedTuple):
    """A command as it was seen, and the number of the partition that it came from, which is its node's."""

    seen: Seen
    partition: int


class CommandReader:
    """A `read_committed` consumer in a thread of its own, so that nothing else delays the time it notes."""

    def __init__(self, settings: Settings) -> None:
        """Prepare to read the whole topic from its start, without a group."""
        self._settings = settings
        self._queue: queue.SimpleQueue[Arrival | Exception] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="commands", daemon=True)

    def next(self, timeout_seconds: float) -> Arrival | None:
        """Return the next command; `None` if none arrives in time.

        Raises:
            BrokerError: the topic cannot be read.
        """
        try:
            found = self._queue.get(timeout=max(0.0, timeout_seconds))
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def __enter__(self) -> Self:
        """Start to read."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        try:
            with our_errors(self._settings, f"hand out {self._settings.commands_topic}"):
                self._read()
        except Exception as error:  # noqa: BLE001 - raised again where commands are waited for
            self._queue.put(error)

    def _read(self) -> None:
        consumer = _consumer(self._settings, [self._settings.commands_topic])
        try:
            while not self._stop.is_set():
                for records in consumer.poll(timeout_ms=POLL_MS).values():
                    now_us = time.time_ns() // 1000
                    for record in records:
                        self._queue.put(Arrival(Seen(now_us, json.loads(record.value)), record.partition))
        finally:
            consumer.close()


class Log(NamedTuple):
    """What stands on a run's topics: all inputs as appended, all outputs as committed."""

    inputs: list[InputRecord]
    messages: list[MessageRecord]


def read_log(settings: Settings) -> Log:
    """Read inputs and outputs from start to end.

    Raises:
        BrokerError: the topics cannot be read.
    """
    inputs: dict[str, InputTopic] = {
        settings.nodes_topic: "nodes",
        settings.pods_topic: "pods",
        settings.results_topic: "results",
    }
    outputs: dict[str, OutputTopic] = {
        settings.commands_topic: "commands",
        settings.decisions_topic: "decisions",
        settings.dead_letters_topic: "dead-letters",
    }
    log = Log([], [])
    with our_errors(settings, "hand out what was written"):
        for record in _whole(settings, [*inputs, *outputs]):
            append_at_us = record.timestamp * MILLISECOND_US
            if record.topic in inputs:
                heard = InputRecord(
                    topic=inputs[record.topic],
                    partition=record.partition,
                    offset=record.offset,
                    append_at_us=append_at_us,
                    key=record.key,
                    value=record.value,
                )
                log.inputs.append(heard)
            else:
                said = MessageRecord(
                    topic=outputs[record.topic],
                    partition=record.partition,
                    offset=record.offset,
                    append_at_us=append_at_us,
                    key=record.key,
                    headers=dict(record.headers),
                    value=record.value,
                )
                log.messages.append(said)
    return log


def _whole(settings: Settings, topics: Sequence[str]) -> Iterator[Any]:
    """Yield every record up to the end that the topics have now."""
    consumer = _consumer(settings, topics)
    try:
        ends = consumer.end_offsets(sorted(consumer.assignment()))
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for records in consumer.poll(timeout_ms=POLL_MS).values():
                yield from records
    finally:
        consumer.close()


def _consumer(settings: Settings, topics: Sequence[str]) -> Any:
    consumer = open_consumer(settings, group_id=None, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, number) for topic in topics for number in range(settings.partitions)])
    return consumer
