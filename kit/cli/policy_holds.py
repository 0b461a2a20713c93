"""The clause `hold` of a file of policies: windows, or outages of zones."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from evictstream.kit.cli.clause_fields import Length, SpreadLength, StrictFields
from evictstream.kit.see.policies import length_text
from evictstream.kit.see.window_texts import read_window, window_text
from evictstream.models.messages.policy_clauses import (
    MOST_COUNTED,
    MOST_WINDOWS,
    HoldCondition,
    PolicyHold,
    PolicyWindow,
    ZoneOutage,
)

_ALL_PERCENT: Final = 100


def read_percent(value: object) -> int:
    """Read a share, in percent.

    Raises:
        ValueError: it is none.
    """
    match = re.fullmatch("([0-9]{1,3})%", value) if isinstance(value, str) else None
    if match is None or not 1 <= int(match[1]) <= _ALL_PERCENT:
        message = "is not a share: write 1% to 100%"
        raise ValueError(message)
    return int(match[1])


def _windows(value: object) -> list[PolicyWindow]:
    return [read_window(str(text)) for text in (value if isinstance(value, list) else [value])]


class _Zone(StrictFields):
    unhealthy: Annotated[int, BeforeValidator(read_percent)]
    at_least: Annotated[int, Field(alias="atLeast", ge=1, le=MOST_COUNTED)] = 3


class _While(StrictFields):
    zone: _Zone | None = None
    zones: Literal["allFull"] | None = None

    @model_validator(mode="after")
    def _has_one(self) -> _While:
        if (self.zone is None) == (self.zones is None):
            message = "is one of two: zone: {unhealthy: 55%}, or zones: allFull"
            raise ValueError(message)
        return self

    def condition(self) -> HoldCondition:
        zone = self.zone
        return HoldCondition(
            zone=None if zone is None else ZoneOutage(unhealthy_percent=zone.unhealthy, at_least=zone.at_least),
            zones=self.zones,
        )


class FileHold(StrictFields):
    """The clause, as a file has it."""

    outside_of: Annotated[
        list[PolicyWindow] | None,
        BeforeValidator(_windows),
        Field(alias="outsideOf", min_length=1, max_length=MOST_WINDOWS),
    ] = None
    condition: Annotated[_While | None, Field(alias="while")] = None
    spread: SpreadLength = 60
    at_most: Annotated[Length | None, Field(alias="atMost")] = None

    @model_validator(mode="after")
    def _ends(self) -> FileHold:
        if (self.outside_of is None) == (self.condition is None):
            message = "needs either outsideOf or while"
            raise ValueError(message)
        if self.condition is not None and self.at_most is None:
            message = "needs atMost: an outage may have no end"
            raise ValueError(message)
        return self

    def hold(self) -> PolicyHold:
        """Return it as a record has it."""
        return PolicyHold(
            outside_of=tuple(self.outside_of or ()),
            condition=None if self.condition is None else self.condition.condition(),
            spread_seconds=self.spread,
            at_most_seconds=self.at_most,
        )


def hold_fields(hold: PolicyHold) -> dict[str, Any]:
    """Return the clause as a file has it."""
    fields: dict[str, Any] = {}
    if hold.outside_of:
        fields["outsideOf"] = [window_text(window) for window in hold.outside_of]
    if hold.condition is not None:
        fields["while"] = _condition_fields(hold.condition)
    fields["spread"] = length_text(hold.spread_seconds)
    if hold.at_most_seconds is not None:
        fields["atMost"] = length_text(hold.at_most_seconds)
    return fields


def _condition_fields(condition: HoldCondition) -> dict[str, Any]:
    if condition.zone is None:
        return {"zones": condition.zones}
    return {"zone": {"unhealthy": f"{condition.zone.unhealthy_percent}%", "atLeast": condition.zone.at_least}}
