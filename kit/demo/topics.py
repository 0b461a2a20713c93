"""What a feed and an executor would write, and what a reader of the topics sees."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from kafka import TopicPartition

from evictstream.kit.demo.recording import Event
from evictstream.kit.oracle import InputRecord, MessageRecord
from evictstream.kit.oracle.records import InputTopic, OutputTopic
from evictstream.models.instants import MILLISECOND_US, instant_text
from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.consumers import BoundedConsumer, open_consumer
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.settings import Settings

POLL_MS: Final = 200
"""How long one poll waits for records of topics that are read to their ends."""


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """A command, and when a `read_committed` reader had it, microseconds since 1970."""

    at_us: int
    command: dict[str, Any]


class Log(NamedTuple):
    """What stands on a run's topics: all inputs as appended, all outputs as committed."""

    inputs: list[InputRecord]
    messages: list[MessageRecord]


def send_change(publisher: Publisher, settings: Settings, event: Event) -> None:
    """Send the watch event of a node or a pod."""
    topic = settings.nodes_topic if event["object"]["kind"] == "Node" else settings.pods_topic
    publisher.send(topic, record_key(event), encode(event))


def send_heartbeat(publisher: Publisher, settings: Settings, cluster: str, now_us: int) -> None:
    """Send a heartbeat on both topics."""
    value = encode({"cluster": cluster, "type": "HEARTBEAT", "observedAt": instant_text(now_us)})
    for topic in (settings.nodes_topic, settings.pods_topic):
        publisher.send(topic, cluster.encode(), value)


def record_key(event: Event) -> bytes:
    """Give the key of a watch event: its cluster's."""
    return str(event["cluster"]).encode()


def encode(value: Event) -> bytes:
    """Give the value of a record: compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def reader_of(settings: Settings, topics: Sequence[str]) -> BoundedConsumer:
    """Make a `read_committed` consumer of whole topics from their start, without a group."""
    consumer = open_consumer(settings, group_id=None, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, number) for topic in topics for number in range(settings.partitions)])
    return consumer


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
            common = {
                "partition": record.partition,
                "offset": record.offset,
                "append_at_us": record.timestamp * MILLISECOND_US,
                "key": record.key,
                "value": record.value,
            }
            if record.topic in inputs:
                log.inputs.append(InputRecord(topic=inputs[record.topic], **common))
            else:
                headers = dict(record.headers)
                log.messages.append(MessageRecord(topic=outputs[record.topic], headers=headers, **common))
    return log


def _whole(settings: Settings, topics: Sequence[str]) -> Iterator[Any]:
    """Yield every record up to the end that the topics have now."""
    consumer = reader_of(settings, topics)
    try:
        ends = consumer.end_offsets(sorted(consumer.assignment()))
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for records in consumer.poll(timeout_ms=POLL_MS).values():
                yield from records
    finally:
        consumer.close()
