"""EvictionRequests of Kubernetes: what the executor asks for with one, and what follows from its state.

An EvictionRequest (`lifecycle.k8s.io/v1alpha1`) asks whoever acts on such requests in the cluster to evict a pod. The
API server only stores it: it compares neither name nor UID with a pod, and nothing removes it. Its status is a claim of
whoever may write it, so only the pod itself shows that it leaves.
"""

from __future__ import annotations

import enum
import hashlib
from typing import Final, NamedTuple

import msgspec

from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.last_look import SeenPod
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.models.shallow_json import decode_any_depth

REQUESTS_VERSION: Final = "lifecycle.k8s.io/v1alpha1"
REQUESTS_PLURAL: Final = "evictionrequests"
REQUESTS_KIND: Final = "EvictionRequest"
REQUESTS_GATE: Final = "EvictionRequestAPI"

REQUESTER: Final = "evictstream.io/executor"
CLUSTER_MARK: Final = "evictstream.io/cluster"
"""Label and annotation of each request: the label has a hash of the cluster's name, the annotation has the name."""

WITHDRAWN_MARK: Final = "evictstream.io/withdrawn"
"""Annotation of a request that an executor has withdrawn. Without it somebody else has."""

EVICTION: Final = "Eviction"
WITHDRAWN: Final = "Withdrawn"

NOTICED_SECONDS: Final = 60.0
"""How long a request may go without `observedGeneration`. A controller sets it when it first sees the request."""

WITHDRAWAL_SECONDS: Final = 10.0
"""How long a withdrawn request is kept for a controller to see that it was withdrawn. Its deletion says the same."""

_LONGEST_MESSAGE: Final = 500
"""Characters of a condition's message that are kept; the API server takes 32,768."""

_LABEL_DIGITS: Final = 32


class RequestKey(NamedTuple):
    """What a request is found by. Whoever may create requests in another namespace may choose any name there."""

    namespace: str
    name: str


class RequestState(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An EvictionRequest as the API server has it.

    Attributes:
        version: the resource version; 0 if it is no number.
        generation: grows with each change of the spec.
        observed_generation: the newest generation that a controller has seen; None before it has seen one.
        failure: reason and message of the condition `Failed` while it is true for this generation.
        is_evicted: whether the condition `TargetEvicted` is true, which is only a claim.
        requester: who asks.
        cluster_label: the value of the label with a hash of the cluster's name; empty without.
        is_withdrawn_here: whether an executor has withdrawn it.
        is_deleting: whether it is being deleted.
    """

    name: str
    namespace: str
    uid: str
    version: int
    generation: int
    pod: str
    pod_uid: str
    intent: str
    observed_generation: int | None = None
    failure: str | None = None
    is_evicted: bool = False
    requester: str = REQUESTER
    cluster_label: str = ""
    is_withdrawn_here: bool = False
    is_deleting: bool = False

    @property
    def key(self) -> RequestKey:
        """What it is found by."""
        return RequestKey(self.namespace, self.name)

    @property
    def is_noticed(self) -> bool:
        """Whether a controller has seen it."""
        return bool(self.observed_generation)


class CleanUp(enum.Enum):
    """What to do next with a request that is of no use any more."""

    WITHDRAW = enum.auto()
    """Change its intent, so that whoever acts on it stops."""
    WAIT = enum.auto()
    """It is withdrawn: a controller should see that before it is deleted."""
    DELETE = enum.auto()


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    generation: int = 1
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _PodReference(msgspec.Struct):
    name: str = ""
    uid: str = ""


class _Target(msgspec.Struct):
    pod: _PodReference | None = None


class _Spec(msgspec.Struct):
    target: _Target
    requester: str = ""
    intent: str = ""


class _Condition(msgspec.Struct, rename="camel"):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int | None = None


class _Status(msgspec.Struct, rename="camel"):
    observed_generation: int | None = None
    conditions: list[_Condition] | None = None


class _RequestObject(msgspec.Struct):
    metadata: _Meta
    spec: _Spec
    status: _Status = msgspec.field(default_factory=_Status)


_requests: Final = msgspec.json.Decoder(_RequestObject)


def read_eviction_request(text: bytes) -> RequestState:
    """Read an EvictionRequest.

    Raises:
        msgspec.DecodeError: it is none.
    """
    read = decode_any_depth(_requests, text)
    meta, spec, conditions = read.metadata, read.spec, read.status.conditions or ()
    pod = spec.target.pod or _PodReference()
    true = {one.type: one for one in conditions if one.status == "True" and _counts(one, meta.generation)}
    failed = true.get("Failed")
    return RequestState(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        version=int(meta.resource_version) if meta.resource_version.isdecimal() else 0,
        generation=meta.generation,
        pod=pod.name,
        pod_uid=pod.uid,
        intent=spec.intent,
        observed_generation=read.status.observed_generation,
        failure=None if failed is None else f"{failed.reason}: {failed.message}"[:_LONGEST_MESSAGE].rstrip(": "),
        is_evicted="TargetEvicted" in true,
        requester=spec.requester,
        cluster_label=(meta.labels or {}).get(CLUSTER_MARK, ""),
        is_withdrawn_here=WITHDRAWN_MARK in (meta.annotations or {}),
        is_deleting=meta.deletion_timestamp is not None,
    )


def _counts(condition: _Condition, generation: int) -> bool:
    """Whether a condition is about this generation of the spec, as far as it says."""
    return condition.observed_generation is None or condition.observed_generation >= generation


def cluster_label(cluster: str) -> str:
    """Return the label value that requests for evictions of a cluster of this name have."""
    return hashlib.sha256(cluster.encode()).hexdigest()[:_LABEL_DIGITS]


def request_key(command: EvictionCommand) -> RequestKey:
    """Return what the EvictionRequest for a command is found by: its name is the eviction's id."""
    return RequestKey(command.namespace, command.eviction_id)


def request_body(command: EvictionCommand) -> dict[str, object]:
    """Return the EvictionRequest for a command: its name is the eviction's id, its owner the pod."""
    pod = {"name": command.pod, "uid": command.pod_uid}
    return {
        "apiVersion": REQUESTS_VERSION,
        "kind": REQUESTS_KIND,
        "metadata": {
            "name": command.eviction_id,
            "namespace": command.namespace,
            "labels": {CLUSTER_MARK: cluster_label(command.cluster)},
            "annotations": {CLUSTER_MARK: command.cluster},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", **pod}],
        },
        "spec": {"target": {"pod": pod}, "requester": REQUESTER, "intent": EVICTION},
    }


def withdrawal_body(state: RequestState) -> dict[str, object]:
    """Return the merge patch that withdraws a request, if it is still in this version."""
    return {
        "metadata": {
            "uid": state.uid,
            "resourceVersion": str(state.version),
            "annotations": {WITHDRAWN_MARK: "true"},
        },
        "spec": {"intent": WITHDRAWN},
    }


def is_for(state: RequestState, command: EvictionCommand) -> bool:
    """Whether a request with the name of the command's eviction asks for it, in the namespace of its pod."""
    asked = (state.namespace, state.requester, state.cluster_label, state.pod, state.pod_uid)
    return asked == (command.namespace, REQUESTER, cluster_label(command.cluster), command.pod, command.pod_uid)


def is_leaving(pod: SeenPod | None, command: EvictionCommand) -> bool:
    """Whether the command's pod is terminating or gone: then the request for it has succeeded."""
    return pod is None or pod.uid != command.pod_uid or pod.is_terminating


def is_ignored(state: RequestState | None, seconds: float) -> bool:
    """Whether no controller has seen a request that was made that many seconds ago."""
    return state is not None and not state.is_noticed and seconds >= NOTICED_SECONDS


def requested_answer(state: RequestState | None, uid: str, *, seconds: float, is_patient: bool) -> CommandAnswer | None:
    """Return how a request for a pod that stays has ended; None while it lasts.

    Args:
        state: of the request; None if there is none any more.
        uid: of the request that was made.
        seconds: since it was made.
        is_patient: whether the pod is deleted after a time in any case, so that a request that no controller has seen
            is no failure yet.
    """
    if state is None or state.uid != uid or state.is_deleting:
        return CommandAnswer(Outcome.REFUSED, "somebody else has deleted its EvictionRequest")
    if state.intent != EVICTION:
        return CommandAnswer(Outcome.REFUSED, "somebody else has withdrawn its EvictionRequest")
    if state.failure is not None:
        return CommandAnswer(Outcome.FAILED, f"its EvictionRequest has failed: {state.failure}")
    if is_ignored(state, seconds) and not is_patient:
        return CommandAnswer(
            Outcome.FAILED, f"nobody acts on EvictionRequests: no observedGeneration within {NOTICED_SECONDS:g} s"
        )
    return None


def clean_up(state: RequestState, withdrawn_seconds: float | None, *, has_left: bool = False) -> CleanUp:
    """Return what to do next with a request whose eviction is not wanted, or has ended.

    Args:
        state: of the request.
        withdrawn_seconds: since it was first seen to be withdrawn; None if it was not.
        has_left: whether the pod has left, so that nothing is to be withdrawn.
    """
    if state.is_deleting:
        return CleanUp.WAIT
    if has_left or state.is_evicted or state.failure is not None:
        return CleanUp.DELETE
    if state.intent == EVICTION:
        return CleanUp.WITHDRAW
    is_seen = (state.observed_generation or 0) >= state.generation
    is_late = withdrawn_seconds is not None and withdrawn_seconds >= WITHDRAWAL_SECONDS
    return CleanUp.DELETE if is_seen or is_late else CleanUp.WAIT
