"""A `read_committed` reader of the commands, in a process of its own so that nothing else delays its clock."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from evictstream.models.instants import microseconds
from evictstream.models.kubernetes.objects import Moment
from evictstream.streams.settings import Settings
from tests.bench.figures import WrongResultError, require
from tests.bench.fleet import now_us

POLL_MS = 50
START_SECONDS = 60.0
ANSWER_SECONDS = 10.0  # what the reader needs for decoding, beyond the time it was given for reading
SETTLE_SECONDS = 0.3  # for commands that nobody is owed


class Seen(NamedTuple):
    """One command.

    Attributes:
        action: `Schedule`, `Evict` or `Cancel`.
        pod: name of the pod.
        deadline_us: deadline in it.
        stamped_us: when the worker built it, by the worker's clock (milliseconds, in microseconds).
        seen_us: when the reader's poll returned with it.
    """

    action: str
    pod: str
    deadline_us: int
    stamped_us: int
    seen_us: int


class _Command(msgspec.Struct):
    action: str
    pod: str
    deadline: Moment


class CommandWatch:
    """Reads all commands from now on, and hands over as many as are expected."""

    def __init__(self, settings: Settings) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, self._theirs = context.Pipe()
        arguments = (self._theirs, settings.required_bootstrap_servers(), settings.commands_topic, settings.partitions)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._seconds = 0.0

    def __enter__(self) -> Self:
        self._process.start()
        self._theirs.close()  # so that its end is seen here
        self._receive(START_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()

    def expect(self, count: int, *, seconds: float) -> None:
        """Start to read until that many commands have arrived, or time is up."""
        self._seconds = seconds
        self._pipe.send((count, seconds))

    async def seen(self, *, action: str, pods: Sequence[str]) -> list[Seen]:
        """Wait for what was expected: exactly one command of that action for each of these pods."""
        answer = await asyncio.to_thread(self._receive, self._seconds + ANSWER_SECONDS)
        found = [Seen(*values) for values in answer]
        other = [seen for seen in found if seen.action != action]
        require(not other, f"{len(other)} commands that are not {action}, such as {other[:1]}")
        require(len(found) == len(pods), f"{len(found)} of {len(pods)} {action} came within {self._seconds:g} s")
        require({seen.pod for seen in found} == set(pods), f"some {action} are for other pods, or came twice")
        return found

    def _receive(self, seconds: float) -> Any:
        require(self._pipe.poll(seconds), "the reader of commands does not answer")
        try:
            return self._pipe.recv()
        except EOFError as error:
            problem = "the reader of commands has ended"
            raise WrongResultError(problem) from error


def _serve(pipe: Connection, servers: str, topic: str, partitions: int) -> None:
    asyncio.run(_answer(pipe, servers, topic, partitions))


async def _answer(pipe: Connection, servers: str, topic: str, partitions: int) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        isolation_level="read_committed",
        enable_auto_commit=False,
        max_partition_fetch_bytes=4_194_304,
    )
    consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
    await consumer.start()
    await consumer.seek_to_end()
    for number in range(partitions):
        await consumer.position(TopicPartition(topic, number))
    gc.freeze()
    gc.disable()  # a collection would count as lateness of the worker
    pipe.send("ready")
    decoder = msgspec.json.Decoder(_Command)
    while True:
        count, seconds = await asyncio.to_thread(pipe.recv)
        records = await _read(consumer, count, seconds)
        pipe.send([_seen(decoder, record, seen_us) for record, seen_us in records])


async def _read(consumer: Any, count: int, seconds: float) -> list[tuple[Any, int]]:
    found: list[tuple[Any, int]] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        fetched = await consumer.getmany(timeout_ms=POLL_MS)
        at_us = now_us()
        before = len(found)
        for records in fetched.values():
            found.extend((record, at_us) for record in records)
        if before < count <= len(found):
            until = min(until, time.monotonic() + SETTLE_SECONDS)
    return found


def _seen(decoder: msgspec.json.Decoder[_Command], record: Any, seen_us: int) -> tuple[str, str, int, int, int]:
    command = decoder.decode(record.value)
    return command.action, command.pod, microseconds(command.deadline), record.timestamp * 1000, seen_us
