"""The enums of messages, rows and rules. Their spelling is part of the contract (semantics.md 12.6, 12.9)."""

import enum
from typing import Final, TypeVar

API_VERSION: Final = "evictstream.io/v1"


class EventType(enum.StrEnum):
    """What a Kubernetes watch says has happened to an object; the object itself is what counts (level, not edge)."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class WatchEventType(enum.StrEnum):
    """The `type` of a watch event: `EventType`, Kubernetes' bookmark, and the signals of feeds and operators."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    LISTED = "LISTED"
    HEARTBEAT = "HEARTBEAT"
    FORGET = "FORGET"
    ACCEPT_GAP = "ACCEPT_GAP"


class Action(enum.StrEnum):
    """What an executor has to do."""

    SCHEDULE = "Schedule"
    """The pod will be evicted at `deadline` unless cancelled. Withdraws every `Evict` of a lower revision."""
    EVICT = "Evict"
    """Do it now, with the UID as precondition."""
    CANCEL = "Cancel"
    """What was scheduled or issued is withdrawn; this `evictionId` is never used again."""


class Verdict(enum.StrEnum):
    """Why a pod has to leave, or why it need not any more."""

    UNTOLERATED = "Untolerated"
    """No toleration covers one of the taints."""
    TOLERATION_EXPIRES = "TolerationExpires"
    """All taints are tolerated, at least one of them for a while."""
    TAINT_REMOVED = "TaintRemoved"
    """The taint that was the reason is gone, and all taints that are left are tolerated forever."""
    TOLERATED = "Tolerated"
    """The taint is still there, but the pod tolerates it forever now."""
    POD_GONE = "PodGone"
    """The pod is deleted."""
    POD_REPLACED = "PodReplaced"
    """Another pod, with another UID, has its name."""
    POD_FINISHED = "PodFinished"
    """Its phase is `Succeeded` or `Failed`."""
    POD_TERMINATING = "PodTerminating"
    """Its deletion timestamp is set."""
    POD_MIRROR = "PodMirror"
    """It is a mirror pod; only its kubelet can end the static pod."""
    NODE_GONE = "NodeGone"
    """The node is deleted, or another one was registered under its name."""
    CLUSTER_FORGOTTEN = "ClusterForgotten"
    """An operator has taken the whole cluster out of the service."""
    UNDECIDABLE = "Undecidable"
    """The pod's tolerations, or the node's taints, are beyond a limit: the pod is left alone."""
    BUILT_IN = "BuiltIn"
    """The pod has to leave, and Kubernetes' own controller is on there and does it as early (semantics.md 12.12)."""


class EvictionState(enum.StrEnum):
    """Where an eviction is in its life (semantics.md 12.2)."""

    SCHEDULED = "scheduled"
    """A deadline is set, no attempt is outstanding."""
    ISSUED = "issued"
    """The first attempt since it was scheduled is outstanding."""
    RETRYING = "retrying"
    """An attempt failed or was not answered; owed until the pod or the reason is gone."""
    DONE = "done"
    """The eviction has ended with success; nothing happens for this pod any more."""


class Outcome(enum.StrEnum):
    """What an executor did with an attempt. No outcome ends an eviction: only what happens to pod and node does."""

    ACCEPTED = "Accepted"
    """The executor has queued it and will do it; another outcome follows."""
    SUCCEEDED = "Succeeded"
    """The API server has accepted the delete."""
    GONE = "Gone"
    """There was no pod with this UID any more."""
    FAILED = "Failed"
    """The attempt did not work."""
    OBSOLETE = "Obsolete"
    """The executor knew of a newer command or of a change that makes this one pointless."""
    REFUSED = "Refused"
    """The executor may not, or does not want to, evict this pod."""
    OBSERVED = "Observed"
    """The executor only watches (trial run)."""
    HELD = "Held"
    """A brake holds it. Messages and rows say `Accepted` with the brake's id: readers that know no brakes wait too."""


_Outcome = TypeVar("_Outcome", Outcome, Outcome | None)


def written_outcome(outcome: _Outcome) -> _Outcome:
    """Return what messages and rows say of an outcome: `Accepted` for `Held`, beside the id of the brake."""
    return Outcome.ACCEPTED if outcome is Outcome.HELD else outcome


def meant_outcome(written: _Outcome, held_by: str | None) -> _Outcome:
    """Return the outcome that a message or row means: `Accepted` with the id of a brake is `Held`."""
    return Outcome.HELD if written is Outcome.ACCEPTED and held_by is not None else written


class DecisionKind(enum.StrEnum):
    """What was decided about a pod."""

    SCHEDULED = "Scheduled"
    """A deadline ahead was set."""
    DUE = "Due"
    """The pod has to leave at once; the eviction is issued as soon as the gates allow."""
    MOVED = "Moved"
    """The deadline of a scheduled eviction was moved."""
    ISSUED = "Issued"
    """The first `Evict` since the eviction was scheduled."""
    RETRIED = "Retried"
    """A further `Evict`."""
    REPORTED = "Reported"
    """The result of the current attempt was counted; the next attempt is set."""
    WITHDRAWN = "Withdrawn"
    """Issued, but an edit moved the deadline ahead: scheduled again."""
    CANCELLED = "Cancelled"
    """Nothing is due any more."""
    COMPLETED = "Completed"
    """Issued, and the pod is gone, replaced, terminating or finished: success."""


class CauseKind(enum.StrEnum):
    """Which input led to a decision."""

    NODE = "Node"
    POD = "Pod"
    RESULT = "Result"
    TIMER = "Timer"
    CATCH_UP = "CatchUp"
    FORGET = "Forget"


class DecisionWarning(enum.StrEnum):
    """What people should look at when they read a decision."""

    LATER_TOLERATION_DIFFERS = "LaterTolerationDiffers"
    """A later toleration of the pod matches the same taint with another time (semantics.md 13 row 23)."""
