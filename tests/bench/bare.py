"""A bare aiokafka consumer in a process of its own: what the worker's rates are compared with."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection

from aiokafka import AIOKafkaConsumer, TopicPartition

from evictstream.streams.settings import Settings
from tests.bench.figures import WrongResultError, require

TIMEOUT_SECONDS = 60.0

Offsets = Mapping[int, int]


async def bare_rate(settings: Settings, topic: str, first: Offsets, end: Offsets) -> float:
    """Read a stretch of a topic and count; returns records per second, from the first answer on."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    arguments = (
        theirs,
        settings.required_bootstrap_servers(),
        topic,
        dict(first),
        dict(end),
        settings.max_fetch_bytes,
        settings.max_poll_records,
    )
    process = context.Process(target=_serve, args=arguments, daemon=True)
    process.start()
    theirs.close()  # so that its end is seen here
    try:
        require(await asyncio.to_thread(ours.poll, TIMEOUT_SECONDS), "the bare consumer did not answer")
        return float(ours.recv())
    except EOFError as error:
        problem = "the bare consumer ended without an answer"
        raise WrongResultError(problem) from error
    finally:
        process.kill()
        process.join()


def _serve(
    pipe: Connection,
    servers: str,
    topic: str,
    first: Offsets,
    end: Offsets,
    fetch_bytes: int,
    most_records: int,
) -> None:
    pipe.send(asyncio.run(_read(servers, topic, first, end, fetch_bytes, most_records)))


async def _read(servers: str, topic: str, first: Offsets, end: Offsets, fetch_bytes: int, most_records: int) -> float:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        # As the worker's own, so that only its work makes the difference.
        isolation_level="read_committed",
        enable_auto_commit=False,
        max_partition_fetch_bytes=fetch_bytes,
    )
    consumer.assign([TopicPartition(topic, number) for number in first])
    await consumer.start()
    try:
        for number, offset in first.items():
            consumer.seek(TopicPartition(topic, number), offset)
        wanted = sum(end.values()) - sum(first.values())
        count, started_at = 0, 0.0
        while wanted > 0:
            fetched = await consumer.getmany(timeout_ms=200, max_records=most_records)
            came = sum(len(records) for records in fetched.values())
            wanted -= came
            if started_at:
                count += came
            elif came:
                started_at = time.perf_counter()
        return count / (time.perf_counter() - started_at)
    finally:
        await consumer.stop()
