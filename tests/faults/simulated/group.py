"""The simulated group coordinator: members, sessions, generations, an eager rebalance, a mostly sticky assignment."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from tests.faults.simulated.world import SECOND_US, World

Joined = Callable[[int, frozenset[int]], None]
"""Called with the generation and the partition numbers."""

REBALANCE_TIMEOUT_US = 4 * SECOND_US


@dataclasses.dataclass(slots=True)
class Member:
    """A member; `joined` is set while it waits for the next generation."""

    heard_at_us: int
    joined: Joined | None = None
    numbers: frozenset[int] = frozenset()


class Group:
    """The one consumer group."""

    def __init__(self, world: World, partitions: int, session_timeout_us: int) -> None:
        self.generation = 0
        self._world = world
        self._partitions = partitions
        self._session_timeout_us = session_timeout_us
        self._members: dict[str, Member] = {}
        self._began_at_us: int | None = None

    def join(self, name: str, joined: Joined) -> None:
        """Join, or join again; calls `joined` when the generation is complete."""
        self._members.setdefault(name, Member(self._world.now_us)).joined = joined
        self._members[name].heard_at_us = self._world.now_us
        self._watch(name)
        self._begin()

    def leave(self, name: str) -> None:
        """Leave."""
        if self._members.pop(name, None) is not None:
            self._begin()

    def heartbeat(self, name: str, generation: int) -> str:
        """Answer `ok`, `rebalance` or `unknown`."""
        member = self._members.get(name)
        if member is None:
            return "unknown"
        member.heard_at_us = self._world.now_us
        if self._began_at_us is not None:
            return "rebalance"
        return "ok" if generation == self.generation else "unknown"

    def may_commit(self, name: str, generation: int) -> bool:
        """Whether the group accepts offsets of this member."""
        return self.heartbeat(name, generation) != "unknown" and generation == self.generation

    def _watch(self, name: str) -> None:
        def look() -> None:
            member = self._members.get(name)
            if member is None:
                return
            silent_us = self._world.now_us - member.heard_at_us
            if silent_us >= self._session_timeout_us and member.joined is None:
                self.leave(name)
            else:
                self._world.at(self._world.now_us + max(SECOND_US // 4, self._session_timeout_us - silent_us), look)

        self._world.at(self._world.now_us + self._session_timeout_us, look)

    def _begin(self) -> None:
        if self._began_at_us is None:
            self._began_at_us = self._world.now_us
            began_at_us = self._began_at_us
            self._world.at(began_at_us + REBALANCE_TIMEOUT_US, lambda: self._close(began_at_us))
        if all(member.joined is not None for member in self._members.values()):
            # A moment for others to come, as `group.initial.rebalance.delay.ms` gives it.
            began_at_us = self._began_at_us
            self._world.at(self._world.now_us + SECOND_US // 10, lambda: self._close_if_complete(began_at_us))

    def _close_if_complete(self, began_at_us: int) -> None:
        if all(member.joined is not None for member in self._members.values()):
            self._close(began_at_us)

    def _close(self, began_at_us: int) -> None:
        """End the rebalance that began then, without members that have not joined again."""
        if self._began_at_us != began_at_us:
            return
        self._began_at_us = None
        self._members = {name: member for name, member in self._members.items() if member.joined is not None}
        if not self._members:
            return
        self.generation += 1
        self._assign()
        for member in self._members.values():
            joined, member.joined = member.joined, None
            member.heard_at_us = self._world.now_us
            assert joined is not None
            joined(self.generation, member.numbers)

    def _assign(self) -> None:
        """Share the partitions evenly; a member keeps what it may."""
        names = sorted(self._members)
        most = -(-self._partitions // len(names))
        taken: dict[int, str] = {}
        for name in names:
            for number in sorted(self._members[name].numbers)[:most]:
                taken.setdefault(number, name)
        for number in range(self._partitions):
            if number not in taken:
                taken[number] = min(names, key=lambda name: (list(taken.values()).count(name), name))
        for name in names:
            self._members[name].numbers = frozenset(number for number, owner in taken.items() if owner == name)
