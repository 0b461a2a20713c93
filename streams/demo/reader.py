"""Reads topics as others than the service would: commands as they come, and the inputs as they were logged."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

from kafka import KafkaConsumer, TopicPartition

from evictstream.streams.broker.clients import client_arguments, our_errors
from evictstream.streams.demo.oracle import Seen
from evictstream.streams.demo.oracle.rules import to_us
from evictstream.streams.settings import Settings

POLL_MS = 200
"""How long one poll waits for a record; only bounds how soon the thread sees that it has to end."""

JOIN_SECONDS = 10.0
"""For the thread to end; a poll and a goodbye to the broker."""


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


def logged_times(settings: Settings) -> dict[tuple[str, str], int]:
    """Return for each watch event on the inputs the instant that counts, by UID and resource version.

    That is the time of observation, or of the append if the broker's clock is behind ours, which it tells in
    milliseconds. Microseconds since 1970.

    Raises:
        BrokerError: the topics cannot be read.
    """
    times: dict[tuple[str, str], int] = {}
    with our_errors(settings, "hand out what was played"):
        for record in _whole(settings, [settings.nodes_topic, settings.pods_topic]):
            event = json.loads(record.value)
            if "object" in event:
                meta = event["object"]["metadata"]
                counts_us = min(to_us(event["observedAt"]), record.timestamp * 1000)
                times.setdefault((meta["uid"], meta["resourceVersion"]), counts_us)
    return times


def count_records(settings: Settings, topic: str) -> int:
    """Count what a topic holds."""
    with our_errors(settings, f"hand out {topic}"):
        return sum(1 for _ in _whole(settings, [topic]))


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
    consumer = KafkaConsumer(
        **client_arguments(settings),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    consumer.assign([TopicPartition(topic, number) for topic in topics for number in range(settings.partitions)])
    return consumer
