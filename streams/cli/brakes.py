"""What the commands about brakes share: the brakes as a process that acts reads them, and records of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from evictstream.models.instants import SECOND_US
from evictstream.models.messages.brake import Brake
from evictstream.models.messages.codec import encode
from evictstream.models.steering.brakes import Brakes, StandingBrake
from evictstream.streams.broker.steering_readers import BrakesReader
from evictstream.streams.cli.steering_records import REMEMBERED_SECONDS, SteeringWriter, open_records, open_writer
from evictstream.streams.settings import Settings

MOST_BRAKES_REMEMBERED: Final = 200
"""Brakes that are over whose records are kept, for people who ask what was held."""


@contextlib.contextmanager
def open_brakes(settings: Settings) -> Iterator[BrakesReader]:
    """Read all brakes; they are followed meanwhile.

    Raises:
        BrokerError: the topic cannot be read.
    """
    with open_records(settings, settings.brakes_topic, BrakesReader) as reader:
        yield reader


class BrakesWriter:
    """Writes records of brakes; each is durable, and has been read back, when a method returns."""

    def __init__(self, records: SteeringWriter, reader: BrakesReader) -> None:
        self._records = records
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
        self._records.append(brake.id, encode(brake))
        return self.brakes.standing[brake.id]

    def remove(self, key: str) -> None:
        """Remove the record with a key.

        Raises:
            BrokerError: Kafka does not take it.
        """
        self._records.remove(key)

    def remove_old(self, now_us: int) -> None:
        """Remove the records of brakes that have been over for `REMEMBERED_SECONDS`, and of all but the newest ones."""
        over = [one for one in self.brakes.all.values() if one.is_over(now_us)]
        over.sort(key=lambda one: one.appended_us, reverse=True)
        for number, standing in enumerate(over):
            if number >= MOST_BRAKES_REMEMBERED or standing.is_over(now_us - REMEMBERED_SECONDS * SECOND_US):
                self.remove(standing.brake.id)


@contextlib.contextmanager
def open_brakes_writer(settings: Settings) -> Iterator[BrakesWriter]:
    """Open what writes brakes.

    Raises:
        BrokerError: Kafka does not answer, or refuses.
    """
    with open_brakes(settings) as reader, open_writer(settings, settings.brakes_topic, reader) as records:
        yield BrakesWriter(records, reader)
