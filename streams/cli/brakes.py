"""What the commands about brakes share: the brakes as a process that acts reads them, and records of them."""

from __future__ import annotations

import contextlib
import getpass
import math
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from evictstream.models.instants import SECOND_US
from evictstream.models.messages.brake import Brake
from evictstream.models.messages.codec import encode
from evictstream.models.steering.brakes import Brakes, StandingBrake
from evictstream.streams.broker.admin import readable_partitions
from evictstream.streams.broker.brakes_reader import BrakesReader
from evictstream.streams.broker.clients import our_errors
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.errors import BrokerUnreachableError, WrongUseError
from evictstream.streams.settings import Settings

REMEMBERED_SECONDS: Final = 30 * 86_400
"""How long the record of a brake that is over is kept, for those who ask later who it was. `hold` and `release` remove
older ones, so the topic stays small."""

MOST_BRAKES_REMEMBERED: Final = 200
"""Brakes that are over whose records are kept: they count for the limit of a thousand."""

LONGEST_WHY: Final = 500
"""Characters: results have it in their reason, of at most 1,000."""

LONGEST_BY: Final = 200
"""Characters of `user@host`."""

_LOOK_SECONDS: Final = 0.02

_DELIVERY_SECONDS: Final = 30.0
"""For a record to be taken. Whoever waits longer at night had better try another way."""


@contextlib.contextmanager
def open_brakes(settings: Settings) -> Iterator[BrakesReader]:
    """Read all brakes; they are followed meanwhile.

    Raises:
        BrokerError: the topic cannot be read.
    """
    readable_partitions(settings, settings.brakes_topic)  # says what is wrong; the reader would wait
    with BrakesReader(settings) as reader:
        wait_until(settings, lambda: math.isfinite(reader.age_seconds()))
        yield reader


def wait_until(settings: Settings, is_so: Callable[[], bool], patience_seconds: float | None = None) -> None:
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
                reason=f"{settings.brakes_topic} was not read to its end",
            )
        time.sleep(_LOOK_SECONDS)


class BrakesWriter:
    """Writes records of brakes; each is durable, and has been read back, when a method returns."""

    def __init__(self, settings: Settings, producer: Any, reader: BrakesReader) -> None:
        self._settings = settings
        self._producer = producer
        self._reader = reader

    @property
    def brakes(self) -> Brakes:
        """The newest brakes."""
        return self._reader.brakes

    def write(self, brake: Brake) -> StandingBrake:
        """Write a brake; returns it as it was read back, with its append time.

        Raises:
            BrokerError: Kafka does not take it.
        """
        appended_us = self._send(brake.id, encode(brake))
        wait_until(self._settings, lambda: self._appended_us(brake.id) >= appended_us)
        return self._reader.brakes.standing[brake.id]

    def remove(self, key: str) -> None:
        """Remove the record with a key.

        Raises:
            BrokerError: Kafka does not take it.
        """
        self._send(key, None)
        wait_until(self._settings, lambda: key not in {**self.brakes.standing, **self.brakes.unreadable})

    def remove_old(self, now_us: int) -> None:
        """Remove the records of brakes that have been over for `REMEMBERED_SECONDS`, and of all but the newest ones."""
        over = [one for one in self.brakes.standing.values() if one.is_over(now_us)]
        over.sort(key=lambda one: one.appended_us, reverse=True)
        for number, standing in enumerate(over):
            if number >= MOST_BRAKES_REMEMBERED or standing.is_over(now_us - REMEMBERED_SECONDS * SECOND_US):
                self.remove(standing.brake.id)

    def _appended_us(self, brake_id: str) -> int:
        found = self.brakes.standing.get(brake_id)
        return 0 if found is None else found.appended_us

    def _send(self, key: str, value: bytes | None) -> int:
        topic = self._settings.brakes_topic
        with our_errors(self._settings, f"write {topic}"):
            sent = self._producer.send(topic, key=key.encode(), value=value)
            appended_ms: int = sent.get(_DELIVERY_SECONDS).timestamp
        return appended_ms * 1_000


@contextlib.contextmanager
def open_writer(settings: Settings) -> Iterator[BrakesWriter]:
    """Open what writes brakes.

    Raises:
        BrokerError: Kafka does not answer, or refuses.
    """
    with open_brakes(settings) as reader, open_producer(settings, delivery_seconds=_DELIVERY_SECONDS) as producer:
        yield BrakesWriter(settings, producer, reader)


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
