"""What tests of transactions write, and how they read what a `read_committed` reader sees of it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.engine.core.config import EngineConfig
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.engine.kafka.log_reader import KafkaLogReader
from evictstream.streams.settings import Settings

SETTLED_SECONDS = 0.5  # after which markers, and what should not have been sent, are in the log
POSITIONS = {b"\x00positions": b"{}"}
WITHOUT_KIP_890 = {"transaction.version": 1}


def declared(broker: EmbeddedBroker, **more: object) -> Settings:
    """Settings on a broker of the test's own, topics declared."""
    ours = {"bootstrap_servers": broker.bootstrap_servers, "application_id": "own", "partitions": 1}
    settings = Settings.model_validate(ours | more)
    declare_topics(settings).raise_if_breaking()
    return settings


def rows_and_message(settings: Settings, name: bytes, rows: int = 3) -> Outbox:
    outbox = Outbox()
    for number in range(rows):
        outbox.put(b"%b-%d" % (name, number), b"value")
    outbox.send(settings.commands_topic, b"key", name, [("ce_id", name)])
    return outbox


@contextlib.asynccontextmanager
async def settled_reader(config: EngineConfig, topic: str, partition: int = 0) -> AsyncIterator[KafkaLogReader]:
    """A `read_committed` reader that sees all of a partition: a commit is answered before its markers are written."""
    place = (topic, partition)
    async with KafkaLogReader(config) as reader:
        async with KafkaLogReader(config, isolation="read_uncommitted") as everything:
            while await reader.ends([place]) != await everything.ends([place]):  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.02)
        yield reader


async def read(config: EngineConfig, topic: str, partition: int = 0) -> dict[bytes, bytes | None]:
    """What a `settled_reader` finds in a partition, by key for rows and by value for messages."""
    found: dict[bytes, bytes | None] = {}

    def sink(key: bytes, value: bytes | None) -> None:
        found[key if topic == config.changelog else value or b""] = value

    async with settled_reader(dataclasses.replace(config, changelog=topic), topic, partition) as reader:
        await reader.read_rows({partition: sink})
    return found
