"""The decisions topic: one record for each decision, with its reasons. Key: the cluster's name.

The records are for people, and explain later why a pod was evicted; the service does not read them.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from evictstream.models.kubernetes.taints import BareTaint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages import codec
from evictstream.models.messages.brake import BrakeId
from evictstream.models.messages.fields import (
    ApiVersion,
    Count,
    EvictionIdText,
    InstantText,
    NonEmptyText,
    Revision,
)
from evictstream.models.messages.vocabulary import (
    CauseKind,
    DecisionKind,
    DecisionWarning,
    EvictionState,
    Outcome,
    Verdict,
    meant_outcome,
)

DECISION_KIND: Final = "EvictionDecision"


class DecisionCause(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename="camel",
    omit_defaults=True,
    kw_only=True,
):
    """The input behind a decision."""

    kind: Annotated[CauseKind, Meta(description="Which input; for a timer, topic, partition and offset are absent.")]
    at: Annotated[InstantText, Meta(description="Its instant: event time of a record, the clock for a timer.")]
    topic: Annotated[str | None, Meta(description="Topic of the record.")] = None
    partition: Annotated[Count | None, Meta(description="Partition of the record.")] = None
    offset: Annotated[Count | None, Meta(description="Offset of the record.")] = None


class PreviousDecision(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True):
    """The eviction as it was before."""

    state: Annotated[EvictionState, Meta(description="State of the eviction.")]
    deadline: Annotated[InstantText, Meta(description="Its deadline.")]
    revision: Annotated[Revision, Meta(description="Its revision.")]
    attempt: Annotated[Count, Meta(description="Attempts issued.")]


class PolicyClause(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What of a policy has held an eviction."""

    name: Annotated[str, Meta(description="Of the policy.")]
    revision: Annotated[Revision, Meta(description="Of the policy.")]
    clause: Annotated[
        str,
        Meta(description="`observe`, `settle`, `hold`, `limit`; or `spread`, for what an earlier revision had held."),
    ]


class DecisionRecord(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename="camel",
    omit_defaults=True,
    kw_only=True,
):
    """One decision about one pod."""

    api_version: ApiVersion
    kind: Annotated[str, Meta(extra_json_schema={"const": DECISION_KIND})]
    decision: Annotated[
        DecisionKind,
        Meta(
            description="`Scheduled`: a deadline ahead was set. `Due`: has to leave at once. `Moved`: other deadline."
            " `Issued`: first attempt. `Retried`: further attempt. `Reported`: result counted. `Withdrawn`: issued,"
            " then the deadline was moved ahead. `Cancelled`: nothing is due any more. `Completed`: issued, and the"
            " pod leaves."
        ),
    ]
    verdict: Annotated[Verdict, Meta(description="Why.")]
    eviction_id: Annotated[EvictionIdText, Meta(description="As in the commands.")]
    revision: Annotated[Revision, Meta(description="After the decision.")]
    attempt: Annotated[Count, Meta(description="After the decision.")]
    cluster: Annotated[NonEmptyText, Meta(description="Cluster of the pod.")]
    namespace: Annotated[str, Meta(description="Namespace of the pod.")]
    pod: Annotated[str, Meta(description="Name of the pod.")]
    pod_uid: Annotated[NonEmptyText, Meta(description="UID of the pod.")]
    node: Annotated[NonEmptyText, Meta(description="Name of the node.")]
    cause: Annotated[DecisionCause, Meta(description="The input that led to the decision.")]
    taint: Annotated[BareTaint, Meta(description="The taint that decides, or decided.")]
    window_start: Annotated[
        InstantText,
        Meta(description="Since when pod and taint are together, with this value if the toleration hangs on it."),
    ]
    deadline: Annotated[InstantText, Meta(description="When the pod has to leave.")]
    node_uid: Annotated[str | None, Meta(description="UID of the node; absent if it is not known.")] = None
    toleration: Annotated[
        Toleration | None,
        Meta(description="The toleration in use for that taint; absent if it is not tolerated."),
    ] = None
    outage_start: Annotated[
        InstantText | None,
        Meta(description="Start of the node's outage, if that and not the window decides the deadline."),
    ] = None
    known_at: Annotated[
        InstantText | None,
        Meta(
            description="When the deadline was known, if only after it, as an edit of tolerations may have it: nothing"
            " could have been earlier, and lateness counts from here. Absent if it was known by then."
        ),
    ] = None
    built_in_at: Annotated[
        InstantText | None,
        Meta(
            description="When Kubernetes' own controller evicts the pod, if it still stands then. Absent where that"
            " controller is off, and where it never does."
        ),
    ] = None
    next_attempt_at: Annotated[InstantText | None, Meta(description="When the next attempt is owed.")] = None
    heard_at: Annotated[
        InstantText | None,
        Meta(
            description="Of `Issued` and `Retried`: when the cluster's feed was last heard, the older of its newest"
            " heartbeats on nodes and pods. The decision rests on what was so then, or later. Absent where no"
            " heartbeat has come."
        ),
    ] = None
    outcome: Annotated[Outcome | None, Meta(description="Result that was counted for the current attempt.")] = None
    held_by: Annotated[
        BrakeId | None,
        Meta(
            description="With the outcome `Accepted`: id of the brake for which the executor holds it (`Held`). Of"
            " `Issued` and `Retried`: of the brake that has held it until now."
        ),
    ] = None
    policy: Annotated[
        PolicyClause | None, Meta(description="Of `Issued` and `Retried`: what of a policy has held it until now.")
    ] = None
    outcome_reason: Annotated[str | None, Meta(description="The executor's explanation of it.")] = None
    previous: Annotated[PreviousDecision | None, Meta(description="The eviction before; absent for a new one.")] = None
    due_cause: Annotated[
        DecisionCause | None,
        Meta(
            description="Of an `Issued` whose `Due` is in the same transaction: the input that made the pod due. There"
            " is no record of that `Due`: all else that it would say is here."
        ),
    ] = None
    warnings: Annotated[
        tuple[DecisionWarning, ...],
        Meta(
            description="`LaterTolerationDiffers`: a later toleration of the pod matches the same taint with another"
            " time; the first one decides."
        ),
    ] = ()

    @property
    def result(self) -> Outcome | None:
        """The outcome, `Held` told from other `Accepted`."""
        return meant_outcome(self.outcome, self.held_by)


_decoder: Final = msgspec.json.Decoder(DecisionRecord)


def decode_decision(text: bytes | str) -> DecisionRecord:
    """Read a decision, and refuse what its JSON Schema refuses.

    Raises:
        Unreadable: it is not a decision.
    """
    decision = codec.decode(_decoder, text)
    codec.check_kind(decision.api_version, decision.kind, DECISION_KIND)
    codec.check_instants(
        windowStart=decision.window_start,
        deadline=decision.deadline,
        outageStart=decision.outage_start,
        knownAt=decision.known_at,
        builtInAt=decision.built_in_at,
        nextAttemptAt=decision.next_attempt_at,
        heardAt=decision.heard_at,
    )
    previous = decision.previous
    due_cause = decision.due_cause
    codec.check_instants(dueCause=None if due_cause is None else due_cause.at)
    codec.check_instants(at=decision.cause.at, deadline=None if previous is None else previous.deadline)
    return decision
