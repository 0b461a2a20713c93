"""Which member of a consumer group is dead or frozen, long before its session ends.

A broker keeps a dead member until its session ends, which takes 6 s or more by the broker's own setting, and a group
waits for it that long. So a member that acts commits twice a second, and the commit's metadata names the member and
counts. A member that stands by, or has just started, reads that: who may read a group's commits need not be in it. If
the count stands still, the member is removed, as it would be at the end of its session.

Used by executors, feeds and workers. No clock here: the caller hands in monotonic seconds of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

BEAT_SECONDS: Final = 0.5
"""Between two commits of a member that acts."""

BEAT_LOOK_SECONDS: Final = 0.25
"""Between two looks of a member that watches."""

NO_BEAT_SECONDS: Final = 1.5
"""A member whose count stands still for so long is dead or frozen: three commits are missing. One that only was slow
joins again, and another one has looked at the same pods meanwhile."""

UNSURE_SECONDS: Final = NO_BEAT_SECONDS - BEAT_SECONDS
"""A member that stood still for so long may have been removed from its group: its last commit may be a beat's time
older. It does nothing for its group before Kafka has taken its next commit."""

BEAT_GAP_SECONDS: Final = 0.75
"""If the last answer is longer ago, the watcher was frozen itself, or no broker answered. What it waited for could not
be heard, so all members have their time again. Three looks, so that a busy machine may be late."""

COME_BACK_SECONDS: Final = 3.0
"""After an outage of Kafka no member is removed for so long. Members connect again up to 1.2 s apart
(`streams.kafka_reach`), then have to find their coordinator, which may still load."""

LONGEST_MEMBER_ID: Final = 300
"""Characters of a member's id in a beat: the longest instance id (249) and a UUID. A longer id is left out, and its
session ends as if nobody watched."""

LONGEST_CLOCK: Final = 50
"""Characters of a clock's name: a UUID and a number."""

BEAT_CHARS: Final = LONGEST_MEMBER_ID + LONGEST_CLOCK + 26
"""The longest that `with_beat` adds to a text. A broker takes 4,096 for all (`offset.metadata.max.bytes`)."""

_MARK: Final = "|b1:"


class Beat(NamedTuple):
    """What a commit says of the member that made it.

    Attributes:
        member: its id in the group, which no other member has, not even the same process after it has joined anew.
        number: another one in each commit of the member, and rising.
        clock: names the clock if the number is when the commit was sent, in milliseconds; empty if it is a count.
            Another process may have the same clock, as those of one machine do.
    """

    member: str
    number: int
    clock: str = ""


def with_beat(metadata: str, beat: Beat) -> str:
    """Return the text of a commit: `metadata`, which must not contain `|`, and the beat."""
    if len(beat.member) > LONGEST_MEMBER_ID or len(beat.clock) > LONGEST_CLOCK:
        return metadata
    return f"{metadata}{_MARK}{beat.number}{'@' if beat.clock else ''}{beat.clock}:{beat.member}"


def read_beat(text: str) -> tuple[str, Beat | None]:
    """Return what `with_beat` was given. Without a beat, as in the commit of another program, it is None."""
    metadata, _, beat = text.partition(_MARK)
    sent, _, member = beat.partition(":")
    number, _, clock = sent.partition("@")
    if not member or not number.isascii() or not number.isdecimal() or len(number) > len(str(1 << 64)):
        return metadata, None
    return metadata, Beat(member, int(number), clock)


class SilenceWatch:
    """Says which members of a group are silent, from all that a watcher has read.

    Only time counts in which the watcher's own looks were made and answered: a watcher that was frozen, or whose broker
    is gone, finds nobody silent. A watcher that starts also knows since when members on its own machine are silent: a
    process that was killed and is back need not wait for what it was before.
    """

    def __init__(self, clock: str = "") -> None:
        """Take the name of the caller's clock; empty if it has none."""
        self._clock = clock
        self._answered_at = -math.inf
        self._since: dict[str, tuple[int, float]] = {}  # by member: its number, and when that was first read

    def look(self, beats: Iterable[Beat], *, asked_at: float, answered_at: float) -> frozenset[str]:
        """Take in what the group's commits say now, and return the members that are silent.

        Args:
            beats: all of them, one or more of a member; the highest number of a member is its newest. A member without
                one any more is forgotten.
            asked_at: when the watcher asked, monotonic seconds.
            answered_at: when it had the answer.
        """
        clock = self._clock if self._answered_at == -math.inf else ""
        if answered_at - self._answered_at > BEAT_GAP_SECONDS:
            self.restart()
        self._answered_at = answered_at
        newest: dict[str, Beat] = {}
        for beat in beats:
            newest[beat.member] = max(beat, newest.get(beat.member, beat))
        self._since = {
            member: known
            if (known := self._since.get(member)) and known[0] == beat.number
            else (beat.number, _heard_at(beat, clock, answered_at))
            for member, beat in newest.items()
        }
        # A beat may have come right after the answer was given: only the time between an answer and a later question
        # is sure to be without one.
        return frozenset(member for member, (_, since) in self._since.items() if asked_at - since >= NO_BEAT_SECONDS)

    def restart(self) -> None:
        """Give all members their time again: they were removed, or the group could not take their commits."""
        self._since.clear()


def _heard_at(beat: Beat, clock: str, answered_at: float) -> float:
    """Return when a beat is taken to be heard: when it was read; by its own clock, a beat's time after it was sent."""
    return min(beat.number / 1_000 + BEAT_SECONDS, answered_at) if clock and beat.clock == clock else answered_at
