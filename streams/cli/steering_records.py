"""What the commands about brakes and policies share: records that are read back, and who gives the command."""

from __future__ import annotations

import contextlib
import getpass
import math
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

from evictstream.models.instants import MILLISECOND_US
from evictstream.models.steering.holds import key_of
from evictstream.streams.broker.admin import readable_partitions
from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.broker.steering_readers import SteeringReader
from evictstream.streams.errors import BrokerUnreachableError, WrongUseError
from evictstream.streams.settings import Settings

LONGEST_WHY: Final = 500
"""Characters: results have it in their reason, of at most 1,000."""

LONGEST_BY: Final = 200
"""Characters of `user@host`."""

REMEMBERED_SECONDS: Final = 30 * 86_400
"""How long the record of what is over is kept, for those who ask later who it was. Commands that write remove older
ones, so the topics stay small."""

RECORD_DELIVERY_SECONDS: Final = 30.0
"""For a record to be taken. Whoever waits longer at night had better try another way."""

_LOOK_SECONDS: Final = 0.02

_Reader = TypeVar("_Reader", bound=SteeringReader[Any])


@contextlib.contextmanager
def open_records(settings: Settings, topic: str, reader_of: Callable[[Settings], _Reader]) -> Iterator[_Reader]:
    """Read all records of a topic; they are followed meanwhile.

    Raises:
        BrokerError: the topic cannot be read.
    """
    readable_partitions(settings, topic)  # says what is wrong; the reader would wait
    with reader_of(settings) as reader:
        wait_until(settings, topic, lambda: math.isfinite(reader.age_seconds()))
        yield reader


def wait_until(
    settings: Settings, topic: str, is_so: Callable[[], bool], patience_seconds: float | None = None
) -> None:
    """Wait until a reader has read something, by default for as long as for an answer.

    Raises:
        BrokerUnreachableError: it has not in time.
    """
    seconds = settings.request_timeout_seconds if patience_seconds is None else patience_seconds
    give_up_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > give_up_at:
            raise BrokerUnreachableError(
                settings.required_bootstrap_servers(),
                waited_seconds=seconds,
                reason=f"{topic} was not read to its end",
            )
        time.sleep(_LOOK_SECONDS)


class ReadBack(NamedTuple):
    """A record that Kafka has taken and that was read back.

    Attributes:
        before: what stood just before it, also if others wrote meanwhile.
        at_us: its append time: Kafka's clock.
    """

    before: Any
    at_us: int


class SteeringWriter:
    """Writes records of one topic; each is durable, and has been read back, when a method returns."""

    def __init__(self, settings: Settings, topic: str, producer: Any, reader: SteeringReader[Any]) -> None:
        self._settings = settings
        self._topic = topic
        self._producer = producer
        self._reader = reader

    def append(self, key: str, value: bytes) -> ReadBack:
        """Write a record.

        Raises:
            BrokerError: Kafka does not take it.
        """
        return self._write(key, value)

    def remove(self, key: str) -> ReadBack:
        """Remove the record with a key.

        Raises:
            BrokerError: Kafka does not take it.
        """
        return self._write(key, None)

    def now_us(self) -> int:
        """Return what Kafka's clock shows now, microseconds since 1970: the clock of this machine may be hours off.

        Only what Kafka writes tells it. Before the first record of this writer that is a removal of what nothing has.

        Raises:
            BrokerError: Kafka does not take it.
        """
        kafka_time = self._reader.kafka_time
        least_us = kafka_time.least_us() if kafka_time.is_near else None
        return self.remove(f"-{secrets.token_hex(8)}").at_us if least_us is None else least_us

    def _write(self, key: str, value: bytes | None) -> ReadBack:
        with our_errors(self._settings, f"write {self._topic}"):
            sent = self._producer.send(self._topic, key=key_of(key), value=value)
            taken = sent.get(RECORD_DELIVERY_SECONDS)
        self._reader.kafka_time.note_answer(taken.timestamp)
        wait_until(self._settings, self._topic, lambda: self._reader.before(taken.offset) is not None)
        return ReadBack(self._reader.before(taken.offset), taken.timestamp * MILLISECOND_US)


@contextlib.contextmanager
def open_writer(settings: Settings, topic: str, reader: SteeringReader[Any]) -> Iterator[SteeringWriter]:
    """Open what writes records of a topic that is read.

    Raises:
        BrokerError: Kafka does not answer, or refuses.
    """
    with open_producer(settings, delivery_seconds=RECORD_DELIVERY_SECONDS) as producer:
        yield SteeringWriter(settings, topic, producer, reader)


def who() -> str:
    """Name who gives the command: `user@host`."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # in a container the number may have no name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"[:LONGEST_BY]


def check_why(why: str) -> str:
    """Return the value of `--why`.

    Raises:
        WrongUseError: it is empty, or too long.
    """
    if not why.strip():
        raise WrongUseError("--why is empty", next_step="say it in a few words: others find their evictions held")
    if len(why) > LONGEST_WHY:
        raise WrongUseError(f"--why has more than {LONGEST_WHY} characters")
    return why
