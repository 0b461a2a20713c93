"""Partitions that publish together: none waits for the whole turn of another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from evictstream.streams.worker.fleet_publisher import FleetPublisher


class Writer:
    """A partition whose turn has some slices; the last of them may fail."""

    def __init__(self, name: str, slices: int, ran: list[str], *, fails: bool = False) -> None:
        self.live, self.failed, self.fails = True, 0, fails
        self.name, self.slices, self.ran = name, slices, ran
        self.committer = SimpleNamespace(outbox=None, has_room=True, wake=lambda: None)
        self.logic = SimpleNamespace(published=self)

    def turn(self, now_us: int, outbox: Any) -> Iterator[None]:
        assert (now_us, outbox) == (7, None)
        for number in range(self.slices):
            if self.fails and number:
                raise ValueError
            self.ran.append(self.name)
            yield

    def fail(self, error: Exception) -> None:
        assert isinstance(error, ValueError)
        self.live, self.failed = False, self.failed + 1


def publish(*writers: Writer) -> None:
    partitions: Any = SimpleNamespace(live=lambda: writers)
    clock: Any = SimpleNamespace(now_us=lambda: 7)
    asyncio.run(FleetPublisher(partitions, clock)._turn())


def test_partitions_publish_slice_by_slice_in_turn() -> None:
    ran: list[str] = []
    writers = Writer("long", 5, ran), Writer("short", 2, ran), Writer("bad", 9, ran, fails=True)
    publish(*writers)
    assert ran == ["long", "short", "bad", "long", "short", "long", "long", "long"]
    assert [one.failed for one in writers] == [0, 0, 1]


def test_a_full_outbox_waits_for_the_next_turn() -> None:
    ran: list[str] = []
    full, other = Writer("full", 5, ran), Writer("other", 2, ran)
    full.committer.has_room = False
    publish(full, other)
    assert ran == ["full", "other", "other"]
