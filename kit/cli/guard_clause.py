"""The clause `guard` of files of policies."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from evictstream.kit.cli.clause_fields import Length, StrictFields
from evictstream.models.messages.policy_clauses import (
    LONGEST_CLAUSE_SECONDS,
    MOST_GUARDED,
    GuardMeasure,
    GuardScope,
    PolicyGuard,
)
from evictstream.streams.cli.durations import read_length


def _percent(value: object) -> int:
    match = re.fullmatch("([0-9]{1,3})%", value) if isinstance(value, str) else None
    if match is None or int(match[1]) > 100:  # noqa: PLR2004 - a hundred of a hundred
        message = "is not a share: write 10%"
        raise ValueError(message)
    return int(match[1])


class _MoreThan(StrictFields):
    count: Annotated[int | None, Field(ge=0, le=MOST_GUARDED)] = None
    share: Annotated[int | None, BeforeValidator(_percent)] = None


def _release(value: object) -> int | None:
    """Return after how many seconds an incident lets go; None for a person."""
    word, _, length = value.partition(" ") if isinstance(value, str) else ("", "", "")
    seconds = read_length(length) if word == "after" else None
    if value == "person" or (seconds is not None and 1 <= seconds <= LONGEST_CLAUSE_SECONDS):
        return seconds
    message = "is neither `person` nor `after` and a length of time, up to 7d: write after 2h"
    raise ValueError(message)


class GuardFields(StrictFields):
    """The clause `guard` as a file has it."""

    more_than: Annotated[_MoreThan, Field(alias="moreThan")]
    of: GuardMeasure = GuardMeasure.NODES
    within: Length
    by: GuardScope = GuardScope.TAINT_KEY
    release: Annotated[int | None, BeforeValidator(_release)] = None

    @field_validator("of", "by", mode="before")
    @classmethod
    def _text(cls, value: object, info: ValidationInfo) -> GuardMeasure | GuardScope:
        known: type[GuardMeasure | GuardScope] = GuardMeasure if info.field_name == "of" else GuardScope
        if value not in tuple(map(str, known)):
            message = f"is neither {' nor '.join(known)}"
            raise ValueError(message)
        return known(value)

    @model_validator(mode="after")
    def _can_count(self) -> GuardFields:
        self.guard()  # which says why not
        return self

    def guard(self) -> PolicyGuard:
        """Return the clause as a record has it."""
        return PolicyGuard(
            count=self.more_than.count,
            share_percent=self.more_than.share,
            of=self.of,
            within_seconds=self.within,
            by=self.by,
            release_after_seconds=self.release,
        )
