"""The clause `limit` of a file of policies: a rate, or how many may be in flight at once."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BeforeValidator, Field, field_validator, model_validator

from evictstream.kit.cli.clause_fields import Length, StrictFields
from evictstream.kit.cli.policy_holds import read_percent
from evictstream.kit.see.policies import length_text, rate_text, scope_text
from evictstream.models.messages.policy_clauses import (
    HIGHEST_RATE,
    LONGEST_RATE_LABEL,
    LONGEST_RATE_SECONDS,
    MOST_COUNTED,
    InFlightUnit,
    LimitScope,
    PolicyInFlight,
    PolicyLimit,
)
from evictstream.streams.cli.durations import read_length


def _rate(value: object) -> tuple[int, int]:
    count, _, length = value.partition("/") if isinstance(value, str) else ("", "", "")
    seconds = read_length(length if length[:1].isdigit() else f"1{length}")
    if seconds is None or not re.fullmatch("[0-9]{1,9}", count):
        message = "is not a rate: write 10/s, 10/m or 5/10m"
        raise ValueError(message)
    if not (1 <= int(count) <= HIGHEST_RATE and 1 <= seconds <= LONGEST_RATE_SECONDS):
        message = f"is out of range: 1 to {HIGHEST_RATE} in up to {LONGEST_RATE_SECONDS // 3_600}h"
        raise ValueError(message)
    return int(count), seconds


class _AtMost(StrictFields):
    count: Annotated[int | None, Field(ge=1, le=MOST_COUNTED)] = None
    share: Annotated[int | None, BeforeValidator(read_percent)] = None

    @model_validator(mode="after")
    def _has_a_number(self) -> _AtMost:
        if self.count is None and self.share is None:
            message = "needs a count or a share"
            raise ValueError(message)
        return self


class FileLimit(StrictFields):
    """The clause, as a file has it."""

    rate: Annotated[tuple[int, int] | None, BeforeValidator(_rate)] = None
    burst: Annotated[int | None, Field(ge=1, le=HIGHEST_RATE)] = None
    at_most: Annotated[_AtMost | None, Field(alias="atMost")] = None
    of: Literal["pods", "nodes", "groups"] | None = None
    until: Literal["gone"] | None = None
    stuck_after: Annotated[Length | None, Field(alias="stuckAfter")] = None
    per: str = "cluster"

    @field_validator("per")
    @classmethod
    def _known(cls, per: str) -> str:
        scope, _, label = per.partition("/")
        if (
            scope not in tuple(map(str, LimitScope))
            or (scope == LimitScope.LABEL) != bool(label)
            or len(label) > LONGEST_RATE_LABEL
        ):
            message = "is none of cluster, zone, label/KEY, namespace, group, owner and node"
            raise ValueError(message)
        return per

    @model_validator(mode="after")
    def _is_one(self) -> FileLimit:
        of_slots = (self.of, self.until, self.stuck_after)
        if (self.rate is None) == (self.at_most is None):
            message = "needs either rate or atMost"
        elif self.at_most is None and any(one is not None for one in of_slots):
            message = "is a rate: of, until and stuckAfter belong to atMost"
        elif self.at_most is not None and self.burst is not None:
            message = "has a burst, which belongs to a rate"
        elif self.at_most is not None and self.at_most.share is not None and not self._is_of_nodes():
            message = "has a share, which is of nodes, per cluster or zone"
        else:
            return self
        raise ValueError(message)

    def _is_of_nodes(self) -> bool:
        return self.of == "nodes" and self.per in {"cluster", "zone"}

    def limit(self) -> PolicyLimit | None:
        """Return the rate as a record has it; None if it is none."""
        if self.rate is None:
            return None
        evictions, in_seconds = self.rate
        scope, _, label = self.per.partition("/")
        return PolicyLimit(
            evictions=evictions, in_seconds=in_seconds, burst=self.burst or 1, per=LimitScope(scope), label=label
        )

    def in_flight(self) -> PolicyInFlight | None:
        """Return how many may be in flight as a record has it; None if it is a rate."""
        if self.at_most is None:
            return None
        scope, _, label = self.per.partition("/")
        limit = PolicyInFlight(
            count=self.at_most.count,
            share_percent=self.at_most.share,
            of=InFlightUnit(self.of or "pods"),
            per=LimitScope(scope),
            label=label,
        )
        stuck_after = limit.counts_seconds if self.stuck_after is None else self.stuck_after
        return msgspec.structs.replace(limit, counts_seconds=stuck_after)


def rate_fields(limit: PolicyLimit) -> dict[str, Any]:
    """Return a rate as a file has it."""
    return {"rate": rate_text(limit), "burst": limit.burst, "per": scope_text(limit)}


def in_flight_fields(limit: PolicyInFlight) -> dict[str, Any]:
    """Return what may be in flight as a file has it."""
    most: dict[str, Any] = {} if limit.count is None else {"count": limit.count}
    if limit.share_percent is not None:
        most["share"] = f"{limit.share_percent}%"
    return {
        "atMost": most,
        "of": str(limit.of),
        "per": scope_text(limit),
        "until": "gone",
        "stuckAfter": length_text(limit.counts_seconds),
    }
