"""The contract of the decisions topic: one record per decision, with its reasons. Key: `<cluster>/<node>`.

For people and for whoever has to explain later why a pod was evicted; nothing of the service reads it.
"""

from typing import Literal

from pydantic import Field

from evictstream.models.messages.parts import Contract, Instant, TaintPart, TolerationPart
from evictstream.models.messages.vocabulary import (
    CauseKind,
    DecisionKind,
    DecisionWarning,
    EvictionState,
    Outcome,
    Verdict,
)


class DecisionCause(Contract):
    """The input behind a decision."""

    kind: CauseKind = Field(description="Which input; a timer has no place on a topic.")
    at: Instant = Field(description="Its instant: event time of a record, the clock for a timer.")
    topic: str | None = Field(default=None, description="Topic of the record.")
    partition: int | None = Field(default=None, ge=0, description="Partition of the record.")
    offset: int | None = Field(default=None, ge=0, description="Offset of the record.")


class PreviousDecision(Contract):
    """The eviction as it was before."""

    state: EvictionState = Field(description="State of the eviction.")
    deadline: Instant = Field(description="Its deadline.")
    revision: int = Field(ge=1, description="Its revision.")
    attempt: int = Field(ge=0, description="Attempts issued.")


class DecisionContract(Contract):
    """One decision about one pod."""

    api_version: Literal["evictstream.io/v1"]
    kind: Literal["EvictionDecision"]
    decision: DecisionKind = Field(
        description="`Scheduled`: a deadline ahead was set. `Due`: has to leave at once. `Moved`: other deadline."
        " `Issued`: first attempt. `Retried`: further attempt. `Reported`: result taken in. `Withdrawn`: issued, then"
        " the deadline was moved ahead. `Cancelled`: nothing is due any more. `Completed`: issued, and the pod leaves."
    )
    verdict: Verdict = Field(description="Why.")
    eviction_id: str = Field(pattern="^[0-9a-f]{32}$", description="As in the commands.")
    revision: int = Field(ge=1, description="After the decision.")
    attempt: int = Field(ge=0, description="After the decision.")
    cluster: str = Field(min_length=1, description="Cluster of the pod.")
    namespace: str = Field(description="Namespace of the pod.")
    pod: str = Field(description="Name of the pod.")
    pod_uid: str = Field(min_length=1, description="UID of the pod.")
    node: str = Field(min_length=1, description="Name of the node.")
    node_uid: str | None = Field(default=None, description="UID of the node; absent if it is not known.")
    cause: DecisionCause = Field(description="The input that led to the decision.")
    taint: TaintPart = Field(description="The taint that decides, or did.")
    toleration: TolerationPart | None = Field(
        default=None, description="The toleration in use for that taint; absent if it is not tolerated."
    )
    window_start: Instant = Field(description="Since when pod and taint are together.")
    deadline: Instant = Field(description="When the pod has to leave.")
    outage_start: Instant | None = Field(
        default=None, description="Start of the node's outage, if that and not the window decides the deadline."
    )
    next_attempt_at: Instant | None = Field(default=None, description="When the next attempt is owed.")
    outcome: Outcome | None = Field(default=None, description="Result that was counted for the current attempt.")
    outcome_reason: str | None = Field(default=None, description="The executor's explanation of it.")
    previous: PreviousDecision | None = Field(default=None, description="The eviction before; absent for a new one.")
    warnings: tuple[DecisionWarning, ...] = Field(
        default=(),
        strict=False,
        description="`LaterTolerationDiffers`: a later toleration of the pod matches the same taint with another time;"
        " the first one decides.",
    )
