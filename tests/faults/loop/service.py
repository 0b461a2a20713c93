"""The service's logic over model topics of one partition: it reads, fires, commits or is taken over."""

from __future__ import annotations

from typing import NamedTuple, get_args

from evictstream.kit.oracle.records import InputRecord, InputTopic, KeyedRecord, MessageRecord, OutputTopic
from evictstream.models.steering.brakes import NO_BRAKES
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.settings import Settings
from evictstream.streams.worker.service_config import partition_config

RECORD_LIMIT_BYTES = 1_000_000
FIRE_LIMIT = 1_000_000


class LogRecord(NamedTuple):
    """A record, as the engine hands it to the logic."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class Topics:
    """Input topics and commands.

    Attributes:
        messages: everything that the service has committed, as the oracle reads it.
        brakes: the records of the brakes, as the oracle reads them.
        known: the brakes that they make; everybody knows them at once.
    """

    def __init__(self) -> None:
        self.brakes: list[KeyedRecord] = []
        self.known = NO_BRAKES
        self.logs: dict[str, list[LogRecord]] = {}
        self.messages: list[MessageRecord] = []
        self.now_us = 0

    def send(self, topic: str, key: bytes, value: bytes) -> None:
        """Append."""
        log = self.logs.setdefault(topic, [])
        log.append(LogRecord(len(log), self.now_us // 1_000, key, value))

    def brake(self, key: bytes, value: bytes | None) -> None:
        """Append a record of a brake."""
        self.brakes.append(KeyedRecord(append_at_us=self.now_us // 1_000 * 1_000, key=key, value=value))
        self.known = self.known.with_record(key, value, self.now_us // 1_000)

    def read(self, topic: str, position: int, most: int) -> list[LogRecord]:
        """Return records from a position on."""
        return self.logs.get(topic, [])[position : position + most]

    def inputs(self) -> list[InputRecord]:
        """Return what the service was given, as the oracle reads it."""
        return [
            InputRecord(
                topic=topic,
                partition=0,
                offset=record.offset,
                append_at_us=record.timestamp * 1_000,
                key=record.key or b"",
                value=record.value,
            )
            for topic in get_args(InputTopic)
            for record in self.logs.get(topic, ())
        ]


class ModelPartition:
    """The partition of the service in which the cluster lives."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        settings = Settings.model_validate({"topic_prefix": "", "partitions": 1})
        self._config = partition_config(settings, RECORD_LIMIT_BYTES)
        self._config = self._config.__class__(
            **{name: getattr(self._config, name) for name in self._config.__dataclass_fields__}
            | {"now_us": lambda: topics.now_us, "brakes": lambda: topics.known}
        )
        self._rows: dict[bytes, bytes] = {}
        self._durable = dict.fromkeys(settings.input_topics, 0)
        self.take_over()

    def take_over(self) -> None:
        """Begin from what was committed; what was applied since is forgotten."""
        self.logic = EvictionPartition(0, self._config)
        for key, value in self._rows.items():
            self.logic.load(key, value)
        self.logic.loaded()
        self._positions = dict(self._durable)
        self._ends = {topic: len(self._topics.logs.get(topic, ())) for topic in self._positions}
        self._is_caught_up = False
        self._outbox = Outbox()

    def apply(self, topic: str, most: int) -> bool:
        """Apply some records of an input; returns whether there were any."""
        records = self._topics.read(topic, self._positions[topic], most)
        if records:
            for _ in self.logic.apply(topic, records, self._outbox):
                pass
            self._positions[topic] = records[-1].offset + 1
        if not self._is_caught_up and all(self._positions[name] >= end for name, end in self._ends.items()):
            for _ in self.logic.caught_up(self._topics.now_us, self._outbox):
                pass
            self._is_caught_up = True
        return bool(records)

    @property
    def topics(self) -> tuple[str, ...]:
        """Its inputs."""
        return tuple(self._positions)

    def fire(self) -> None:
        """Let due timers fire, if the view is fresh: everything in the log is applied."""
        is_fresh = all(self._positions[topic] >= len(self._topics.logs.get(topic, ())) for topic in self._positions)
        if self._is_caught_up and is_fresh:
            self.logic.fire(self._topics.now_us, FIRE_LIMIT, self._outbox)

    def commit(self) -> None:
        """End the transaction: rows, messages and positions together."""
        taken = self._outbox.take()
        for key, value in taken.rows.items():
            if value is None:
                self._rows.pop(key, None)
            else:
                self._rows[key] = value
        for topic in get_args(OutputTopic):
            for message in taken.messages.get(topic, ()):
                told = MessageRecord(
                    topic=topic,
                    partition=0,
                    offset=len(self._topics.messages),
                    append_at_us=self._topics.now_us,
                    key=message.key,
                    headers=dict(message.headers),
                    value=message.value,
                )
                self._topics.messages.append(told)
                if topic == "commands":
                    self._topics.send(topic, message.key, message.value)
        self._durable = dict(self._positions)

    def table(self) -> tuple[dict[str, str], dict[str, set[str]]]:
        """Return UIDs of nodes and of pods by node, as the service knows them."""
        nodes, pods = dict[str, str](), dict[str, set[str]]()
        for found in self.logic.known_nodes():
            if found.node is not None:
                nodes[found.name] = found.node.uid
            if found.pods:
                pods[found.name] = set(found.pods)
        return nodes, pods
