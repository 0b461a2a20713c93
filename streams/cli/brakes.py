"""What the commands about brakes share: the brakes as a process that acts reads them, and records of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from evictstream.models.instants import MILLISECOND_US, SECOND_US, moment_at
from evictstream.models.messages.brake import Brake
from evictstream.models.messages.codec import encode
from evictstream.models.steering.brakes import Brakes, StandingBrake
from evictstream.streams.broker.steering_readers import BrakesReader
from evictstream.streams.cli.steering_records import REMEMBERED_SECONDS, SteeringWriter, open_records, open_writer
from evictstream.streams.errors import FoundProblemError
from evictstream.streams.settings import Settings

MOST_BRAKES_REMEMBERED: Final = 200
"""Brakes that are over whose records are kept, for people who ask what was held."""

_MOST_TRIES: Final = 5
"""Of what others change at the same time."""


@contextlib.contextmanager
def open_brakes(settings: Settings) -> Iterator[BrakesReader]:
    """Read all brakes; they are followed meanwhile.

    Raises:
        BrokerError: the topic cannot be read.
    """
    with open_records(settings, settings.brakes_topic, BrakesReader) as reader:
        yield reader


class WrittenBrake(NamedTuple):
    """A brake that was written.

    Attributes:
        standing: as it was read back.
        before: what had its id just before, also if others wrote meanwhile.
    """

    standing: StandingBrake
    before: StandingBrake | None


class BrakesWriter:
    """Writes records of brakes; each is durable, and has been read back, when a method returns."""

    def __init__(self, records: SteeringWriter, reader: BrakesReader) -> None:
        self._records = records
        self._reader = reader

    @property
    def brakes(self) -> Brakes:
        """The newest brakes."""
        return self._reader.brakes

    def now_us(self) -> int:
        """Return what Kafka's clock shows now: by it brakes end.

        Raises:
            BrokerError: Kafka does not answer.
        """
        return self._records.now_us()

    def write(self, brake: Brake) -> WrittenBrake:
        """Write a brake.

        Raises:
            FoundProblemError: it would be one too many; its record is removed again.
            BrokerError: Kafka does not take it.
        """
        value = encode(brake)
        before, at_us = self._records.append(brake.id, value)
        after = before.with_record(brake.id.encode(), value, at_us // MILLISECOND_US)
        if (problem := after.unreadable.get(brake.id)) is not None:
            self.remove(brake.id)
            raise FoundProblemError(
                f"brake {brake.id} does not hold: {problem}",
                next_step="release some, or write the names into one brake, and give the command again",
            )
        return WrittenBrake(after.standing[brake.id], before.all.get(brake.id))

    def put_back(self, written: WrittenBrake) -> None:
        """Write again what a brake has replaced, unless others have replaced that one meanwhile.

        Raises:
            BrokerError: Kafka does not take it.
        """
        for _ in range(_MOST_TRIES):
            own, earlier = written
            if earlier is None or self.brakes.all.get(own.brake.id) != own:
                return
            written = self.write(_as_it_ends(earlier))
            if written.before == own:
                return

    def remove(self, key: str) -> int:
        """Remove the record with a key; returns when, by Kafka's clock.

        Raises:
            BrokerError: Kafka does not take it.
        """
        return self._records.remove(key).at_us

    def remove_old(self, now_us: int) -> None:
        """Remove the records of brakes that have been over for `REMEMBERED_SECONDS`, and of all but the newest ones.

        A brake that somebody sets under an old id meanwhile stays.

        Args:
            now_us: by Kafka's clock.

        Raises:
            BrokerError: Kafka does not take it.
        """
        over = [one for one in self.brakes.all.values() if one.is_over(now_us)]
        over.sort(key=lambda one: one.appended_us, reverse=True)
        for number, standing in enumerate(over):
            name = standing.brake.id
            is_old = number >= MOST_BRAKES_REMEMBERED or standing.is_over(now_us - REMEMBERED_SECONDS * SECOND_US)
            if not is_old or self.brakes.all.get(name) != standing:
                continue
            removed = self._records.remove(name).before.all.get(name)
            if removed is not None and removed != standing:
                self.write(_as_it_ends(removed))


def _as_it_ends(standing: StandingBrake) -> Brake:
    """Return a brake that ends when it did before, whenever it is appended."""
    if not standing.brake.is_released or standing.end_us is None:
        return standing.brake
    return msgspec.structs.replace(standing.brake, ends_at=moment_at(standing.end_us))


@contextlib.contextmanager
def open_brakes_writer(settings: Settings) -> Iterator[BrakesWriter]:
    """Open what writes brakes.

    Raises:
        BrokerError: Kafka does not answer, or refuses.
    """
    with open_brakes(settings) as reader, open_writer(settings, settings.brakes_topic, reader) as records:
        yield BrakesWriter(records, reader)
