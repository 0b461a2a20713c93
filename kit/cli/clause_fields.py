"""What the clauses of files of policies have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evictstream.models.messages.policy_clauses import LONGEST_CLAUSE_SECONDS, LONGEST_POLICY_SPREAD_SECONDS
from evictstream.streams.cli.durations import read_length


def seconds_of(value: object) -> int:
    """Read a length of time as people write it.

    Raises:
        ValueError: it is none.
    """
    seconds = read_length(value) if isinstance(value, str) else None
    if seconds is None:
        message = "is not a length of time: write 30s, 5m, 2h or 1d"
        raise ValueError(message)
    return seconds


Length = Annotated[int, BeforeValidator(seconds_of), Field(ge=1, le=LONGEST_CLAUSE_SECONDS)]
"""A length of time of a clause, in seconds."""

SpreadLength = Annotated[int, BeforeValidator(seconds_of), Field(ge=0, le=LONGEST_POLICY_SPREAD_SECONDS)]
"""Over how long something is spread, in seconds."""


class StrictFields(BaseModel):
    """Fields of which no other may be there, and of which none has another type."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)
