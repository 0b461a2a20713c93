"""Watches the member that acts, while this one stands by or starts, and removes it from the group if it is dead.

The group then gives the partition to one that lives, without waiting for the end of a session. `streams.member_beats`
decides who is dead; `group_commits.py` writes what is read here.
"""

from __future__ import annotations

import time
from typing import Final, Self

import structlog
from kafka.errors import KafkaError

from evictstream.streams.broker.group_membership import GroupConsumer, join_again
from evictstream.streams.broker.group_requests import GroupMembers, GroupRequests
from evictstream.streams.machine_clock import clock_name
from evictstream.streams.member_beats import (
    BEAT_LOOK_SECONDS,
    COME_BACK_SECONDS,
    NO_BEAT_SECONDS,
    SilenceWatch,
    read_beat,
)

log = structlog.get_logger(__name__)

_TAKES_NO_COMMITS: Final = "CompletingRebalance"
"""The state of a group between the last join and the leader's assignment: it refuses commits of all members."""


class GroupWatch:
    """Looks at the group four times a second, in the consumer's thread for input and output. Use as a context manager.

    The consumer need not have joined.

    Attributes:
        is_acting: whether this member acts; then it looks at nothing. The consumer's own thread sets it.
    """

    def __init__(self, consumer: GroupConsumer, requests: GroupRequests) -> None:
        self.is_acting = False
        self._consumer = consumer
        self._requests = requests
        self._silence = SilenceWatch(clock_name())
        self._has_looked = False
        self._judges_from = 0.0
        self._idle: tuple[str, str, frozenset[str]] | None = None  # a group in which nobody acts, at the last look
        self._is_stopped = False

    def __enter__(self) -> Self:
        """Begin."""
        self._requests.start(self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        """End, before the consumer is closed."""
        self._is_stopped = True

    async def _watch(self) -> None:
        while not self._is_stopped:
            if not self.is_acting:
                try:
                    await self._look()
                    self._has_looked = True
                except KafkaError:
                    if self._has_looked:  # before that its own coordinator was not known
                        self._judges_from = time.monotonic() + COME_BACK_SECONDS
            await self._requests.pause(BEAT_LOOK_SECONDS)

    async def _look(self) -> None:
        asked_at = time.monotonic()
        beats = [beat for text in await self._requests.committed_texts() if (beat := read_beat(text)[1]) is not None]
        silent = self._silence.look(beats, asked_at=asked_at, answered_at=time.monotonic())
        if asked_at >= self._judges_from:
            for member_id in silent:
                await self._end(member_id)

    async def _end(self, silent_id: str) -> None:
        """Remove a silent member, unless that would be useless or wrong."""
        group = await self._requests.members()
        dead = self._dead(silent_id, group)
        if dead and len(dead) == len(group.partitions):
            return  # the next look does it, when this one has joined: a group that was empty waits for 3 s
        self._silence.restart()
        for member_id in dead:
            if await self._requests.remove(member_id, f"no commit for {NO_BEAT_SECONDS:g} s"):
                log.warning("silent member removed from its group", group=self._requests.group, member=member_id)
        if dead:
            join_again(self._consumer)

    def _dead(self, silent_id: str, group: GroupMembers) -> set[str]:
        """Return who keeps others from acting.

        If the silent one is not in the group, nobody acts. If that lasts, who has got the partition died before its
        first commit; and a group that is not stable waits for somebody, which it does not tell. Then all others leave
        it, and those that live join again.
        """
        own_id = self._consumer.group_metadata().member_id
        if silent_id in group.partitions:
            return {silent_id} - {own_id} if group.state != _TAKES_NO_COMMITS else set()
        owners = frozenset(member_id for member_id, partitions in group.partitions.items() if partitions)
        before, self._idle = self._idle, (silent_id, group.state, owners)
        if self._idle != before or own_id not in group.partitions:
            return set()
        return set(owners or group.partitions) - {own_id}
