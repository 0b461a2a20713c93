"""Reads nodes with their conditions from v1 objects, as tolerantly as `models.kubernetes.objects`."""

import msgspec

from evictstream.kit.upstream.lifecycle.nodes import Condition, WatchedNode
from evictstream.models.kubernetes.objects import MissingFieldError, check_object_kind, read_instant, read_taints
from evictstream.models.kubernetes.shapes import TaintObject


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str | None = None
    uid: str | None = None
    labels: dict[str, str | None] | None = None  # Kubernetes reads null as an empty text
    creation_timestamp: str | None = None


class _Spec(msgspec.Struct, gc=False):
    unschedulable: bool | None = None
    taints: list[TaintObject] | None = None


class _ConditionObject(msgspec.Struct, rename="camel", gc=False):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_heartbeat_time: str | None = None
    last_transition_time: str | None = None


class _Status(msgspec.Struct, gc=False):
    conditions: list[_ConditionObject] | None = None


class WatchedNodeObject(msgspec.Struct, rename="camel", gc=False):
    """A v1 Node in the shape of its JSON, with the fields that decide about taints; `msgspec` decodes it."""

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
        FieldTimeError: a text is no instant.
    """
    check_object_kind(found.kind, found.api_version, "Node")
    metadata = found.metadata
    if metadata is None or not metadata.name:
        raise MissingFieldError("metadata.name" if metadata is not None else "metadata")
    spec = found.spec or _Spec()
    status = found.status or _Status()
    return WatchedNode(
        name=metadata.name,
        uid=metadata.uid or "",
        labels={key: value or "" for key, value in (metadata.labels or {}).items()},
        created_at_us=read_instant(metadata.creation_timestamp, "metadata.creationTimestamp") or 0,
        is_unschedulable=bool(spec.unschedulable),
        conditions=tuple(_read_condition(one, index) for index, one in enumerate(status.conditions or ())),
        taints=read_taints(spec.taints or ()),
    )


def _read_condition(found: _ConditionObject, index: int) -> Condition:
    path = f"status.conditions[{index}]"
    return Condition(
        type=found.type or "",
        status=found.status or "",
        reason=found.reason or "",
        message=found.message or "",
        heartbeat_at_us=read_instant(found.last_heartbeat_time, f"{path}.lastHeartbeatTime"),
        transition_at_us=read_instant(found.last_transition_time, f"{path}.lastTransitionTime"),
    )
