"""Kafka's clock, for commands that show what is held: by it brakes and policies end. A laptop's may be hours off."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from evictstream.kit.cli.seeing import present_us
from evictstream.models.instants import MILLISECOND_US, SECOND_US
from evictstream.streams.broker.kafka_time import KafkaTime
from evictstream.streams.cli.output import warn
from evictstream.streams.errors import BrokerError

if TYPE_CHECKING:
    from evictstream.models.steering.brakes import Brakes
    from evictstream.streams.broker.steering_readers import SteeringReader
    from evictstream.streams.settings import Settings

_NEAR_US: Final = 60 * SECOND_US
"""A clock so little ahead of the newest heartbeat may be right: feeds send one every 10 s."""


class KafkaClock:
    """Says by which time brakes and policies end: this machine's, unless Kafka's may differ in what is over.

    Kafka's clock shows at least what it has given the newest record of brakes and policies, and the newest heartbeat of
    a feed. It is asked for that one once, and only where something can end.
    """

    def __init__(self, settings: Settings, *readers: SteeringReader[Any] | None) -> None:
        """Know what the records of some readers tell; nothing is asked yet."""
        self._settings = settings
        self._times = [reader.kafka_time for reader in readers if reader is not None]
        self._heard: KafkaTime | None = None
        self._is_doubted = False

    def look(self, brakes: Brakes, *, has_policies: bool = False) -> int:
        """Find out which time counts for these brakes, and for policies if there are any; returns `now_us`."""
        problem: BrokerError | None = None
        if self._heard is None and (has_policies or _ends_in(brakes, self._least_us() or 0, sys.maxsize)):
            self._heard = KafkaTime()
            self._times.append(self._heard)
            try:
                self._hear(self._heard)
            except BrokerError as error:
                problem = error
        least_us, local_us = self._least_us(), present_us()
        is_heard = self._heard is not None and self._heard.least_us() is not None
        self._is_doubted = least_us is not None and (
            (has_policies and is_heard and local_us - least_us > _NEAR_US) or _ends_in(brakes, least_us, local_us)
        )
        if problem is not None and self._is_doubted:
            warn(f"brakes that are over may be shown, since Kafka's clock is not known: {problem}")
        return self.now_us()

    def now_us(self) -> int:
        """Return the time that counts since the last look, microseconds since 1970."""
        least_us, local_us = self._least_us(), present_us()
        return local_us if least_us is None or (least_us <= local_us and not self._is_doubted) else least_us

    def _least_us(self) -> int | None:
        return max((known for one in self._times if (known := one.least_us()) is not None), default=None)

    def _hear(self, heard: KafkaTime) -> None:
        from evictstream.streams.broker.newest_times import newest_times_us

        places = [(self._settings.nodes_topic, number) for number in range(self._settings.partitions)]
        for at_us in newest_times_us(self._settings, places).values():
            heard.note_record(at_us // MILLISECOND_US)


def _ends_in(brakes: Brakes, after_us: int, until_us: int) -> bool:
    """Whether a brake, or its spread, ends between two instants."""
    return any(
        after_us < end_us <= until_us or after_us < end_us + one.brake.spread_seconds * SECOND_US <= until_us
        for one in brakes.standing.values()
        if (end_us := one.end_us) is not None
    )
