"""Plays a recording into the present: each event at its own pace, its time of observation moved to now.

Pure: the caller has the clock and the topics. Tolerations are not scaled with the pace, so a recording that is played
twice as fast ends otherwise, and rightly so: what has to happen is worked out from what was played.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from evictstream.kit.demo.recording import Event
from evictstream.models.instants import instant_text, instant_us

HEARTBEAT_US = 5_000_000
"""Between heartbeats of the feed that the player stands for; the service waits when none came for 60 s."""


class Player:
    """Says which events are due, re-stamped.

    The time of observation is the planned one, so distances between events are as recorded, also when a busy machine
    hands some out a little late.

    Attributes:
        played: every event that was handed out, as it was handed out.
    """

    def __init__(self, events: Sequence[Event], *, start_us: int, speed: float = 1.0) -> None:
        """Play from `start_us` (microseconds since 1970) on, `speed` times as fast as recorded."""
        first_us = instant_us(events[0]["observedAt"])
        self._planned = [
            (start_us + int((instant_us(event["observedAt"]) - first_us) / speed), event) for event in events
        ]
        self.start_us = start_us
        self.end_us = self._planned[-1][0]
        self.played: list[Event] = []

    @property
    def finished(self) -> bool:
        """Whether all has been handed out."""
        return len(self.played) == len(self._planned)

    def next_us(self) -> int | None:
        """When the next event is due; `None` after the last."""
        return None if self.finished else self._planned[len(self.played)][0]

    def due(self, now_us: int) -> Iterator[Event]:
        """Hand out what is due."""
        while not self.finished and self._planned[len(self.played)][0] <= now_us:
            event = self._restamped(len(self.played))
            self.played.append(event)
            yield event

    def planned(self) -> list[Event]:
        """Return the whole recording as it will be handed out."""
        return [self._restamped(index) for index in range(len(self._planned))]

    def _restamped(self, index: int) -> Event:
        at_us, event = self._planned[index]
        return event | {"observedAt": instant_text(at_us)}


@dataclasses.dataclass(slots=True)
class Heartbeats:
    """The feed's sign of life, each 5 s from the start."""

    next_us: int

    def due(self, now_us: int) -> bool:
        """Whether one has to be sent now; asks for the next one from now on."""
        if now_us < self.next_us:
            return False
        self.next_us = now_us + HEARTBEAT_US
        return True
