"""Beats of a worker's member in its group, and its watch over the others: who is dead or frozen is removed at once.

The coordinator keeps a dead member until its session ends, and a rebalance waits for it. So each member that has
partitions commits a beat (`streams.member_beats`) beside their offsets, and each member reads all of them. One that is
silent, or got partitions and never beat, is removed as if it had left. It may still be alive, and write: that is why
the next owner of a partition fences the one before, however it came to its partition. A member that was removed joins
again with a new id.

All of it runs in the member's thread, as its heartbeats do, so a busy event loop does not look like a dead worker. It
goes on while the member waits to join: the coordinator takes commits of the generation before, and answers a JoinGroup
only when it has heard of everybody, the dead included. Requests have a connection of their own, since a broker answers
those of one connection in order.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import structlog
from aiokafka import errors as kafka_errors
from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest
from aiokafka.protocol.group import JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from evictstream.streams.member_beats import (
    BEAT_LOOK_SECONDS,
    BEAT_SECONDS,
    COME_BACK_SECONDS,
    NO_BEAT_SECONDS,
    Beat,
    SilenceWatch,
    read_beat,
    with_beat,
)

if TYPE_CHECKING:
    from evictstream.streams.engine.core.ports import Place

log = structlog.get_logger(__name__)

ASSIGN_SECONDS: Final = 2 * NO_BEAT_SECONDS
"""A leader that has not assigned after so long is dead or frozen: it only has to compute."""

_CONNECTION: Final = "beats"  # beside aiokafka's `ConnectionGroup`: part of the name of a connection

# The group is between two generations, or has a newer one than this member. None of it says anything about the others.
_REBALANCES = (
    kafka_errors.IllegalGenerationError,
    kafka_errors.UnknownMemberIdError,
    kafka_errors.RebalanceInProgressError,
)


class GroupBeats:
    """Beats and watch of one member of a group; every method is called in the member's thread."""

    def __init__(
        self,
        client: Any,
        coordinator: Any,
        places: Iterable[Place],
        *,
        clock: str,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Use aiokafka's client and coordinator of one consumer.

        Args:
            client: of the consumer.
            coordinator: of the consumer.
            places: hold the beats of the whole group.
            clock: names the clock that `monotonic` reads; empty if no other process has it.
            monotonic: seconds.
        """
        self._monotonic = monotonic
        self._clock = clock
        self._client = client
        self._coordinator = coordinator
        self._places = frozenset(places)
        self._asked: dict[str, list[int]] = {}
        for topic, number in sorted(self._places):
            self._asked.setdefault(topic, []).append(number)
        self._waits_for: type | None = None
        self._waits_since = 0.0
        self._leader = ""
        self._owned: list[Place] = []
        self._committed: dict[Place, int] = {}  # by this member, since the last assignment
        self._read: dict[Place, int] = {}
        self._last: dict[Place, str] = {}  # the member whose beat is there
        self._is_new_owner = False
        self._number = 0
        self._beaten_at = float("-inf")
        self._watch = SilenceWatch(clock)
        self._removed: frozenset[str] = frozenset()
        self._unheard: dict[str, float] = {}
        self._has_looked = False
        self._is_away = False
        self._judges_from = float("-inf")

    def assigned(self, places: Iterable[Place]) -> None:
        """Beat for these until the next assignment: during a rebalance the member still is one of the generation."""
        self._owned = sorted(self._places.intersection(places))
        self._committed.clear()
        self._is_new_owner = True

    def in_commit(self, positions: Mapping[Place, int]) -> dict[Place, tuple[int, str]]:
        """Add a beat to a commit of these positions, which otherwise would erase the last one."""
        self._committed.update((place, offset) for place, offset in positions.items() if place in self._places)
        text = self._text()
        return {place: (offset, text if place in self._places else "") for place, offset in positions.items()}

    def _text(self) -> str:
        # Each says when it was made: one that says less looks silent to a worker that starts on this machine.
        self._number = max(self._number + 1, int(self._monotonic() * 1_000))
        return with_beat("", Beat(self._coordinator.member_id, self._number, self._clock))

    async def noting(self, request: object, send: Callable[[object], Awaitable[Any]]) -> Any:
        """Send a request of aiokafka's, and know meanwhile whether the member waits for its group."""
        if not isinstance(request, JoinGroupRequest | SyncGroupRequest):
            return await send(request)
        self._waits_for, self._waits_since = type(request), self._monotonic()
        try:
            answer = await send(request)
        finally:
            self._waits_for = None
        self._leader = getattr(answer, "leader_id", self._leader)
        return answer

    @property
    def _is_joining(self) -> bool:
        """Whether the coordinator waits for others before it answers: it takes their beats, and knows this member."""
        return self._waits_for is JoinGroupRequest

    async def run(self) -> None:
        """Beat and look until cancelled."""
        while True:
            began_at = self._monotonic()
            await self.turn()
            await asyncio.sleep(max(0.0, began_at + BEAT_LOOK_SECONDS - self._monotonic()))

    async def turn(self) -> None:
        """Beat if it is time, look, and remove who is silent; call it every `BEAT_LOOK_SECONDS`."""
        now = self._monotonic()
        try:
            if now - self._beaten_at >= BEAT_SECONDS - BEAT_LOOK_SECONDS / 2 or self._is_new_owner:
                await self._beat()
                self._beaten_at = now
            await self._remove(self._judged(await self._look()))
        except _REBALANCES:
            self._give_time()
        except kafka_errors.KafkaError:
            self._give_time()
            self._is_away = self._has_looked

    def _give_time(self) -> None:
        """Let all members have their time again."""
        self._watch.restart()
        self._unheard.clear()

    def _judged(self, silent: frozenset[str]) -> frozenset[str]:
        """Return who is to be removed: who is silent, but nobody where that need not be their own fault."""
        now = self._monotonic()
        self._has_looked = True
        if self._is_away:
            self._is_away, self._judges_from = False, now + COME_BACK_SECONDS
        is_syncing = self._waits_for is SyncGroupRequest
        if now < self._judges_from or is_syncing:
            self._give_time()
        if now < self._judges_from:
            return frozenset()
        if is_syncing:  # the coordinator takes no commits until the leader has assigned
            is_late = now - self._waits_since >= ASSIGN_SECONDS
            return frozenset({self._leader} - {self._coordinator.member_id, ""}) if is_late else frozenset()
        return silent if self._is_joining or self._coordinator.generation >= 0 else frozenset()

    async def _beat(self) -> None:
        """Commit one for the first owned partition; a new owner for each, as the beats of those before it are there."""
        coordinator = self._coordinator
        offsets = {place: offset for place in self._owned if (offset := self._offset(place)) >= 0}
        if not offsets or coordinator.generation < 0:
            return
        text = self._text()
        topics: dict[str, list[tuple[int, int, str]]] = {}
        for (topic, number), offset in itertools.islice(offsets.items(), None if self._is_new_owner else 1):
            topics.setdefault(topic, []).append((number, offset, text))
        answer = await self._ask(
            OffsetCommitRequest(
                consumer_group=coordinator.group_id,
                consumer_group_generation_id=coordinator.generation,
                consumer_id=coordinator.member_id,
                retention_time=OffsetCommitRequest.DEFAULT_RETENTION_TIME,
                topics=list(topics.items()),
            )
        )
        for _, partitions in answer.topics:
            for _, code in partitions:
                _raise(code)
        self._is_new_owner = False

    def _offset(self, place: Place) -> int:
        """Return what the beat of a place repeats; -1 where nothing has been committed yet."""
        return self._committed.get(place, self._read.get(place, -1))

    async def _look(self) -> frozenset[str]:
        """Read all beats; returns the members that are silent."""
        asked_at = self._monotonic()
        answer = await self._ask(OffsetFetchRequest(self._coordinator.group_id, list(self._asked.items())))
        beats: list[Beat] = []
        for topic, partitions in answer.topics:
            for number, offset, text, code in partitions:
                _raise(code)
                place, beat = (topic, number), read_beat(text)[1]
                self._read[place], self._last[place] = offset, beat.member if beat is not None else ""
                if beat is not None and beat.member != self._coordinator.member_id:
                    beats.append(beat)
        return self._watch.look(beats, asked_at=asked_at, answered_at=self._monotonic())

    async def _remove(self, silent: frozenset[str]) -> None:
        """Remove members, each once, and who was to follow them and did not."""
        for member in silent - self._removed:
            await self._let_leave(member)
        gone, self._removed = silent & self._removed, silent
        await self._remove_unheard(gone)

    async def _remove_unheard(self, gone: frozenset[str]) -> None:
        """Remove owners of partitions that still have the beat of an owner before them.

        An owner marks its partitions at once. One that died before, perhaps while it joined, was never heard of.
        """
        me, owners = self._coordinator.member_id, set[str]()
        if places := {place for place, last in self._last.items() if self._is_outdated(place, last, gone)}:
            answer = await self._ask(DescribeGroupsRequest([self._coordinator.group_id]))
            [(code, _, state, _, _, members, *_)] = answer.groups
            _raise(code)
            for member, _, _, _, assignment in members if state == "Stable" else ():
                partitions = ConsumerProtocol.ASSIGNMENT.decode(assignment).partitions() if assignment else ()
                if member != me and any((tp.topic, tp.partition) in places for tp in partitions):
                    owners.add(member)
        now = self._monotonic()
        self._unheard = {member: self._unheard.get(member, now) for member in owners}
        for member, since in self._unheard.items():
            if now - since >= NO_BEAT_SECONDS:
                await self._let_leave(member)

    def _is_outdated(self, place: Place, last: str, gone: frozenset[str]) -> bool:
        """Whether the last beat of a place is of a member that has left, or of this one, which had it before."""
        return last in gone or (last == self._coordinator.member_id and place not in self._owned)

    async def _let_leave(self, member: str) -> None:
        """Let a member leave the group, and join again at once; a heartbeat would say so later."""
        answer = await self._ask(LeaveGroupRequest(self._coordinator.group_id, member))
        if answer.error_code == kafka_errors.UnknownMemberIdError.errno:  # it has left, or another has removed it
            return
        _raise(answer.error_code)
        log.warning("a silent worker was removed from the group", member=member)
        if not self._is_joining:
            self._coordinator.request_rejoin()

    async def _ask(self, request: object) -> Any:
        """Send a request to the coordinator that the member has found; raises `KafkaError`, also without one."""
        coordinator = self._coordinator.coordinator_id
        if coordinator is None:
            raise kafka_errors.GroupCoordinatorNotAvailableError
        return await self._client.send(coordinator, request, group=_CONNECTION)


def _raise(code: int) -> None:
    if code:
        raise kafka_errors.for_code(code)
