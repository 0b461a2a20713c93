"""The contract of the results topic: what an executor did with a command. Key: that of the command.

Only a result of the current attempt counts. None ends an eviction: `Succeeded` and `Gone` stop repeats for a grace
time, everything else, and silence, leaves it owed with a next attempt.
"""

from typing import Literal

from pydantic import Field

from evictstream.models.messages.parts import Contract, Instant
from evictstream.models.messages.vocabulary import Outcome


class ResultContract(Contract):
    """What an executor did with one attempt."""

    api_version: Literal["evictstream.io/v1"]
    kind: Literal["EvictionResult"]
    eviction_id: str = Field(description="Of the command.")
    attempt: int = Field(ge=0, description="Of the command.")
    cluster: str = Field(min_length=1, description="Of the command.")
    namespace: str = Field(description="Of the command.")
    pod: str = Field(description="Of the command.")
    pod_uid: str = Field(min_length=1, description="Of the command.")
    node: str = Field(min_length=1, description="Of the command.")
    outcome: Outcome = Field(
        description="`Succeeded`: the delete was accepted. `Gone`: no pod with this UID. `Failed`: it did not work."
        " `Obsolete`: overtaken by what the executor knows. `Refused`: it may or will not. `Observed`: trial run."
    )
    reason: str = Field(default="", description="Explanation for people.")
    observed_at: Instant | None = Field(default=None, description="When; absent means when the record was appended.")
