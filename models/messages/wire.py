"""Commands and decision records as they are written, 45,000 per second: the fast twins of `command` and `decision`.

Instants are text already (`models.instants.instant_text`), names become camelCase, absent parts are left out where the
contract allows it. `Taint` and `Toleration` are encoded as Kubernetes spells them.
"""

from typing import Final, TypeAlias

import msgspec

from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.messages.vocabulary import (
    Action,
    CauseKind,
    DecisionKind,
    DecisionWarning,
    EvictionState,
    Outcome,
    Verdict,
)

COMMAND_KIND: Final = "EvictionCommand"
DECISION_KIND: Final = "EvictionDecision"


class Reason(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Why a command was sent.

    Attributes:
        verdict: why the pod has to leave, or for a `Cancel` why not any more.
        taint: the taint that decided; without `timeAdded`.
        toleration: the toleration in use for it; None if it was untolerated.
    """

    verdict: Verdict
    taint: Taint
    toleration: Toleration | None = None


class EvictionCommand(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One command to the executors; `evictstream.models.messages.command` says what each field means."""

    api_version: str
    kind: str
    action: Action
    eviction_id: str
    revision: int
    attempt: int
    cluster: str
    namespace: str
    pod: str
    pod_uid: str
    node: str
    node_uid: str
    reason: Reason
    window_start: str
    deadline: str
    issued_at: str


class Cause(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The input behind a decision: a record, which has a place on a topic, or a timer, which has none.

    Attributes:
        kind: which input.
        at: the instant of the input, event time for records (docs/messages.md#the-time-that-counts).
        topic: topic of the record.
        partition: its partition.
        offset: its offset.
    """

    kind: CauseKind
    at: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


class Previous(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The eviction as it was before the decision."""

    state: EvictionState
    deadline: str
    revision: int
    attempt: int


class DecisionRecord(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One decision with its reasons; `evictstream.models.messages.decision` says what each field means."""

    api_version: str
    kind: str
    decision: DecisionKind
    verdict: Verdict
    eviction_id: str
    revision: int
    attempt: int
    cluster: str
    namespace: str
    pod: str
    pod_uid: str
    node: str
    cause: Cause
    taint: Taint
    window_start: str
    deadline: str
    node_uid: str | None = None
    toleration: Toleration | None = None
    outage_start: str | None = None
    next_attempt_at: str | None = None
    outcome: Outcome | None = None
    outcome_reason: str | None = None
    previous: Previous | None = None
    warnings: tuple[DecisionWarning, ...] = ()


Message: TypeAlias = EvictionCommand | DecisionRecord

_encoder: Final = msgspec.json.Encoder()


def encode(message: Message) -> bytes:
    """Write a command or a decision record as the JSON that its contract describes."""
    return _encoder.encode(message)
