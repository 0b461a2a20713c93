"""Reads the two topics that a fleet publishes, to their end, and goes on following them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator

from evictstream.kit.see.fleet import FleetView
from evictstream.streams.broker.admin import readable_partitions
from evictstream.streams.broker.follow import FollowedRecord, follow
from evictstream.streams.settings import Settings


class FleetReader:
    """Reads both topics into a view.

    Attributes:
        view: what was read.
    """

    def __init__(self, settings: Settings, on_problem: Callable[[str], None]) -> None:
        """`on_problem` is told of each record that cannot be read."""
        self.view = FleetView()
        self._settings = settings
        self._on_problem = on_problem
        self._take = {settings.clusters_topic: self.view.take_cluster, settings.fleet_topic: self.view.take_level}
        self._behind: dict[str, dict[int, int]] = {topic: {} for topic in self._take}

    def read(self) -> None:
        """Read to the ends of this moment.

        Raises:
            BrokerError: a topic cannot be read, or is missing.
        """
        for topic in self._take:
            newest: dict[bytes, FollowedRecord] = {}
            with follow(self._settings, topic, "beginning", is_stopped=lambda: False, idle_seconds=0.0) as batches:
                for batch in batches:
                    newest |= {record.key or b"": record for record in self._in_order(topic, batch)}
            for record in newest.values():
                self._take_in(topic, record)

    def follow(self, is_stopped: Callable[[], bool]) -> Iterator[None]:
        """Take later records in as they come, until stopped; yields after each look.

        Raises:
            BrokerError: Kafka refused. While it does not answer, the follower waits.
        """
        with contextlib.ExitStack() as stack:
            streams = {}
            for topic, behind in self._behind.items():
                places = {number: behind.get(number, 0) for number in readable_partitions(self._settings, topic)}
                opened = follow(self._settings, topic, places, is_stopped=is_stopped, tells_idle=True)
                streams[topic] = stack.enter_context(opened)
            while True:
                for topic, batches in streams.items():
                    batch = next(batches, None)
                    if batch is None:
                        return
                    for record in self._in_order(topic, batch):
                        self._take_in(topic, record)
                yield

    def _in_order(self, topic: str, batch: Iterable[FollowedRecord]) -> list[FollowedRecord]:
        """Sort by offset, as a new leader's clock may be behind; all records of a key are in one partition."""
        records = sorted(batch, key=lambda one: (one.partition, one.offset))
        self._behind[topic] |= {record.partition: record.offset + 1 for record in records}
        return records

    def _take_in(self, topic: str, record: FollowedRecord) -> None:
        problem = self._take[topic](record.key or b"", record.value)
        if problem is not None:
            self._on_problem(f"{topic}, {record.place} cannot be read: {problem}")
