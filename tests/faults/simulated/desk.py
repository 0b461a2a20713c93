"""Where people of a simulation write to the topic of policies, and read the topic of incidents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evictstream.kit.oracle import KeyedRecord
from tests.faults.people import INCIDENTS
from tests.faults.simulated.broker import Broker
from tests.faults.simulated.log import MILLISECOND_US, Entry
from tests.faults.simulated.world import World


class SimulatedDesk:
    """Implements `people.Desk`: each record stands there at once, as soon as the brokers take it."""

    def __init__(self, world: World, broker: Broker, publish: Callable[[KeyedRecord], None]) -> None:
        self._world = world
        self._broker = broker
        self._publish = publish
        self._read: dict[int, int] = {}

    @property
    def now_us(self) -> int:
        """The brokers' clock."""
        return self._world.now_us

    def at(self, at_us: int, write: Callable[[], None]) -> None:
        """Let somebody write at an instant, or as soon after it as the brokers take it."""

        def soon() -> None:
            if self._broker.down_until_us > self._world.now_us:
                self._world.at(self._broker.down_until_us, soon)
            else:
                write()

        self._world.at(at_us, soon)

    def append(self, key: bytes, value: bytes) -> None:
        """Write a record."""
        append_at_us = self._world.now_us // MILLISECOND_US * MILLISECOND_US
        self._publish(KeyedRecord(append_at_us=append_at_us, key=key, value=value))

    def new_incidents(self, partition: int) -> Sequence[Entry]:
        """Read on in the topic of incidents."""
        fetched = self._broker.log(INCIDENTS, partition).read(self._read.get(partition, 0), 1000, "read_committed")
        self._read[partition] = fetched.position
        return fetched.records
