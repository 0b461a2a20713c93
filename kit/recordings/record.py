"""One record of a recording: what a consumer was handed, and from which topic."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from evictstream.models.instants import MILLISECOND_US

Role: TypeAlias = Literal["nodes", "pods", "results", "commands", "decisions", "brakes", "policies"]
"""What a topic is for; its name has the prefix of the service that was recorded."""

INPUT_ROLES: Final[tuple[Role, ...]] = ("nodes", "pods", "results")

STEERING_ROLES: Final[tuple[Role, ...]] = ("brakes", "policies")
"""Their keys name no cluster: they may be about all."""


class RecordedRecord(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A record as it was consumed; the service's logic takes it as it is.

    Attributes:
        timestamp: append time, milliseconds since 1970.
        key: as it came.
        value: as it came.
    """

    topic: Role
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def appended_us(self) -> int:
        """The append time, microseconds since 1970."""
        return self.timestamp * MILLISECOND_US

    @property
    def cluster(self) -> str:
        """Its key; one that is no text still names something."""
        return (self.key or b"").decode(errors="replace")
