"""The steps of upstream's controller: timers, requests to the API server, Events.

Every outcome has its instant (`at_us`, microseconds since 1970, virtual) and the address of the pod
(`<namespace>/<name>`). Timers and skipped additions are not visible in a cluster; deletions and Events are.
"""

import enum
from typing import Final, TypeAlias

import msgspec

EVENT_TYPE: Final = "Normal"
EVENT_REASON: Final = "TaintManagerEviction"
"""Type and reason of both Events (semantics.md 6.11); their object is `v1 Pod <namespace>/<name>`, without UID."""

CONDITION_TYPE: Final = "DisruptionTarget"
CONDITION_STATUS: Final = "True"
CONDITION_REASON: Final = "DeletionByTaintManager"
CONDITION_MESSAGE: Final = "Taint manager: deleting due to NoExecute taint"
"""The pod condition that is written before a deletion (semantics.md 6.9)."""


class Request(enum.StrEnum):
    """The requests of one attempt, in their order."""

    READ = "read"
    WRITE_CONDITION = "write condition"
    DELETE = "delete"


class TimerSet(msgspec.Struct, frozen=True, gc=False):
    """A timer was started: the pod leaves at `fire_at_us`, unless it is cancelled."""

    at_us: int
    address: str
    fire_at_us: int


class TimerKept(msgspec.Struct, frozen=True, gc=False):
    """The pod was checked and may stay for `stay_us` from now, but its old timer stays unchanged.

    Attributes:
        at_us: when.
        address: the pod.
        fire_at_us: when the old timer fires, or has fired if its eviction still runs.
        stay_us: the time that a new timer would have given it.
    """

    at_us: int
    address: str
    fire_at_us: int
    stay_us: int


class TimerCancelled(msgspec.Struct, frozen=True, gc=False):
    """A timer was removed from the queue.

    Attributes:
        at_us: when.
        address: the pod.
        fire_at_us: when it would have fired.
        is_too_late: it had fired; its eviction continues although the Event says that it was cancelled.
    """

    at_us: int
    address: str
    fire_at_us: int
    is_too_late: bool = False


class AdditionSkipped(msgspec.Struct, frozen=True, gc=False):
    """The pod has to leave, but a running eviction has its key: nothing is queued (#107543)."""

    at_us: int
    address: str


class EventEmitted(msgspec.Struct, frozen=True, gc=False):
    """A Kubernetes Event about the pod; see `EVENT_TYPE` and `EVENT_REASON`."""

    at_us: int
    address: str
    message: str


class AttemptFailed(msgspec.Struct, frozen=True, gc=False):
    """One of five attempts failed at `request`; later requests were not sent. Attempts count from 1."""

    at_us: int
    address: str
    attempt: int
    request: Request


class PodDeleted(msgspec.Struct, frozen=True, gc=False):
    """The API server deleted the pod that has the address now.

    Attributes:
        at_us: when.
        address: the pod.
        uid: UID of the deleted pod, which may differ from that of the timer.
        node_name: the node of that pod; it may be another node, and healthy.
        attempt: number of the attempt that succeeded, from 1.
        fire_at_us: when the eviction was meant to start.
        wrote_condition: whether the condition was written; otherwise the pod had it already.
    """

    at_us: int
    address: str
    uid: str
    node_name: str
    attempt: int
    fire_at_us: int
    wrote_condition: bool


class EvictionForgotten(msgspec.Struct, frozen=True, gc=False):
    """Five attempts failed; nothing happens until another change queues the pod."""

    at_us: int
    address: str


ControllerOutcome: TypeAlias = (
    TimerSet
    | TimerKept
    | TimerCancelled
    | AdditionSkipped
    | EventEmitted
    | AttemptFailed
    | PodDeleted
    | EvictionForgotten
)


def marking(at_us: int, address: str) -> EventEmitted:
    """Make the Event that precedes the first attempt, whether or not one succeeds."""
    return EventEmitted(at_us, address, f"Marking for deletion Pod {address}")


def cancelling(at_us: int, address: str) -> EventEmitted:
    """Make the Event that follows the removal of a timer."""
    return EventEmitted(at_us, address, f"Cancelling deletion of Pod {address}")
