"""A writer and partitions as gates and freshness see them, without a broker."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from evictstream.models.steering.brakes import NO_BRAKES, Brakes
from evictstream.models.steering.policies import NO_POLICIES, Policies
from evictstream.streams.engine.core.ports import Committed, Place


@dataclasses.dataclass
class FakeLogic:
    """A logic with one timer."""

    due_at_us: int | None = None
    gap: str | None = None

    def next_due_at_us(self) -> int | None:
        return self.due_at_us

    def clock_objection(self) -> str | None:
        return None

    def objection(self) -> str | None:
        return self.gap


@dataclasses.dataclass
class FakeWriter:
    """A live writer."""

    partition: int = 0
    positions: dict[str, int] = dataclasses.field(default_factory=dict)
    caught_up: bool = True
    ends_asked_at: float = float("-inf")
    live: bool = True
    has_room: bool = True
    last_commit: Committed | None = None
    logic: FakeLogic = dataclasses.field(default_factory=FakeLogic)
    fired: list[int] = dataclasses.field(default_factory=list)
    probes: int = 0

    @property
    def committer(self) -> Self:
        """What gates and timers need of one is here."""
        return self

    def probe(self) -> None:
        self.probes += 1

    def fire(self, now_us: int, limit: int) -> int:
        assert limit > 0
        self.fired.append(now_us)
        self.logic.due_at_us = None
        return 1


@dataclasses.dataclass
class _FakeView:
    """A topic that has just been read, or not."""

    age: float = 0.0
    problem: str | None = None

    def age_seconds(self) -> float:
        return self.age

    def objection(self) -> str | None:
        return self.problem


@dataclasses.dataclass
class FakeBrakes(_FakeView):
    """The brakes."""

    brakes: Brakes = NO_BRAKES


@dataclasses.dataclass
class FakePolicies(_FakeView):
    """The policies."""

    policies: Policies = NO_POLICIES


class FakePartitions:
    """Partitions with these writers."""

    def __init__(self, *writers: FakeWriter) -> None:
        self.writers = writers

    def live(self) -> Iterator[FakeWriter]:
        return iter(self.writers)


class FakeGroup:
    """A membership in which inputs end where a test says."""

    def __init__(self, ends: Mapping[Place, int]) -> None:
        self.is_rebalancing = False
        self.ends = dict(ends)

    async def end_offsets(self, places: Sequence[Place]) -> dict[Place, int]:
        return {place: self.ends[place] for place in places}

    async def seek(self, positions: Mapping[Place, int]) -> dict[Place, int]:
        return dict.fromkeys(positions, 0)

    def leave(self) -> None:
        """Nothing: no test leaves."""
