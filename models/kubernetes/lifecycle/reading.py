"""Reading nodes with their conditions from v1 objects, as tolerantly as `models.kubernetes.objects` does."""

import msgspec

from models.instants import microseconds
from models.kubernetes.lifecycle.nodes import Condition, WatchedNode
from models.kubernetes.objects import MissingFieldError, Moment, TaintObject, check_kind, read_taint


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str | None = None
    uid: str | None = None
    labels: dict[str, str | None] | None = None  # null is an empty text to Kubernetes
    creation_timestamp: Moment | None = None


class _Spec(msgspec.Struct, gc=False):
    unschedulable: bool | None = None
    taints: list[TaintObject] | None = None


class _ConditionObject(msgspec.Struct, rename="camel", gc=False):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_heartbeat_time: Moment | None = None
    last_transition_time: Moment | None = None


class _Status(msgspec.Struct, gc=False):
    conditions: list[_ConditionObject] | None = None


class WatchedNodeObject(msgspec.Struct, rename="camel", gc=False):
    """A v1 Node in the shape of its JSON, with what decides about taints; take it in with `msgspec`."""

    kind: str | None = None
    api_version: str | None = None
    metadata: _Metadata | None = None
    spec: _Spec | None = None
    status: _Status | None = None


def read_watched_node(found: WatchedNodeObject) -> WatchedNode:
    """Flatten a decoded node. Absent times stay absent; a node without a creation time counts as created in 1970.

    Raises:
        MissingFieldError: no kind or name.
        WrongKindError: not a v1 Node.
    """
    check_kind(found.kind, found.api_version, "Node")
    metadata = found.metadata
    if metadata is None or not metadata.name:
        raise MissingFieldError("metadata.name" if metadata is not None else "metadata")
    spec = found.spec or _Spec()
    status = found.status or _Status()
    return WatchedNode(
        name=metadata.name,
        uid=metadata.uid or "",
        labels={key: value or "" for key, value in (metadata.labels or {}).items()},
        created_at_us=_instant_us(metadata.creation_timestamp) or 0,
        is_unschedulable=bool(spec.unschedulable),
        conditions=tuple(_read_condition(one) for one in status.conditions or ()),
        taints=tuple(map(read_taint, spec.taints or ())),
    )


def _read_condition(found: _ConditionObject) -> Condition:
    return Condition(
        type=found.type or "",
        status=found.status or "",
        reason=found.reason or "",
        message=found.message or "",
        heartbeat_at_us=_instant_us(found.last_heartbeat_time),
        transition_at_us=_instant_us(found.last_transition_time),
    )


def _instant_us(moment: Moment | None) -> int | None:
    return None if moment is None else microseconds(moment)
