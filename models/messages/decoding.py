"""From records of the input topics to events: one function per topic, on the hot path.

A record is decoded once, into structs that skip unused and unknown fields. Key and value must name the same cluster. A
record that cannot be read raises `Unreadable` and becomes a dead letter.
"""

from typing import Final, TypeVar

import msgspec

from evictstream.models.instants import microseconds
from evictstream.models.kubernetes.objects import (
    FieldTimeError,
    MissingFieldError,
    Moment,
    ObjectError,
    WrongKindError,
    read_node,
    read_pod,
)
from evictstream.models.kubernetes.shapes import NULL, NodeObject, PodObject
from evictstream.models.messages.envelope import (
    DECODE_ERRORS,
    DEFAULT_LIMITS,
    InputLimits,
    check_node_name,
    cluster_of,
    event_at_us,
    refused_value,
    unreadable,
)
from evictstream.models.messages.events import NodeEvent, Origin, PodEvent, ResultEvent
from evictstream.models.messages.executor_report import decode_report, is_report
from evictstream.models.messages.fields import Epoch
from evictstream.models.messages.fleet import (
    LONGEST_CLUSTER_MANAGER,
    LONGEST_LABEL_KEY,
    LONGEST_LABEL_VALUE,
    LONGEST_PROFILE_NAME,
    LONGEST_PROFILE_NAMESPACE,
    MOST_CLUSTER_LABELS,
    ProfileRef,
)
from evictstream.models.messages.object_limits import (
    LARGEST_LIST,
    LONGEST_CLUSTER_UID,
    LONGEST_NAMES,
    LONGEST_TEXT,
    LONGEST_VERSION,
    entries_with,
    has_long_text,
    is_too_long,
)
from evictstream.models.messages.result import decode_result_except_outcome, read_outcome
from evictstream.models.messages.signals import (
    AcceptGap,
    Bookmark,
    Forget,
    Heartbeat,
    Listed,
    QueueReport,
    Signal,
    Unbound,
)
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason
from evictstream.models.messages.vocabulary import EventType
from evictstream.models.messages.watch_event import Listing

_CHANGES: Final[dict[str | None, EventType]] = {str(event_type): event_type for event_type in EventType}


class _Watch(msgspec.Struct, rename="camel", gc=False):
    """A `WatchEvent` with every field optional: the functions below check, and give each fault its own reason."""

    cluster: str | None = None
    type: str | None = None
    observed_at: Moment | None = None
    epoch: Epoch = 0
    listed_at: Moment | None = None
    cluster_uid: str | None = None
    cluster_labels: dict[str, str] | None = None
    cluster_profile: ProfileRef | None = None
    listing: Listing | None = None


class _NodeWatch(_Watch, gc=False):
    object: NodeObject | None = None


class PodWatch(_Watch, gc=False):
    """A watch event of the pods topic in the shape of its JSON; nothing is checked yet."""

    object: PodObject | None = None


_WatchT = TypeVar("_WatchT", bound=_Watch)

_node_decoder: Final = msgspec.json.Decoder(_NodeWatch)
_pod_decoder: Final = msgspec.json.Decoder(PodWatch)


def read_node_record(
    key: bytes | None, value: bytes | None, append_at_us: int, origin: Origin, limits: InputLimits = DEFAULT_LIMITS
) -> NodeEvent | Signal:
    """Read a record of the nodes topic.

    Args:
        key: the cluster's name.
        value: a watch event.
        append_at_us: append time of the record, microseconds since 1970.
        origin: place of the record.
        limits: size and delay. Of a node or a pod only what decides is limited, and each part of that by itself.

    Raises:
        Unreadable: the record is a dead letter.
    """
    if value is None:
        raise refused_value(value, limits)
    cluster = cluster_of(key)
    try:
        watch = _decoded(_node_decoder, value, limits)
        event_type = _CHANGES.get(watch.type)
        if event_type is None:
            return _read_signal(watch, cluster, append_at_us, origin, limits)
        _check_cluster(watch.cluster, cluster)
        if watch.object is None:
            raise Unreadable(UnreadableReason.MISSING_FIELD, "object")
        is_undecidable = len(value) > LARGEST_LIST and _drop_long_node_lists(watch.object)
        node = read_node(watch.object)
        if len(value) > LONGEST_TEXT and has_long_text(node.taints):
            node, is_undecidable = msgspec.structs.replace(node, taints=()), True
    except ObjectError as error:
        raise _unreadable_object(error) from error
    except DECODE_ERRORS as error:
        raise unreadable(error) from error
    check_node_name(node.name, "object.metadata.name")
    _check_names(len(node.uid), node.resource_version)
    return NodeEvent(
        type=event_type,
        node=node,
        at_us=event_at_us(watch.observed_at, append_at_us, limits),
        origin=origin,
        epoch=watch.epoch,
        is_undecidable=is_undecidable,
    )


def read_pod_record(
    key: bytes | None, value: bytes | None, append_at_us: int, origin: Origin, limits: InputLimits = DEFAULT_LIMITS
) -> PodEvent | Signal:
    """Read a record of the pods topic; arguments and errors as for `read_node_record`.

    For a pod that is not bound it returns `Unbound`.
    """
    return read_decoded_pod(decode_pod_record(value, limits), key, append_at_us, origin, limits)


def decode_pod_record(value: bytes | None, limits: InputLimits = DEFAULT_LIMITS) -> PodWatch:
    """Decode a record of the pods topic and check nothing yet; the first half of `read_pod_record`.

    Raises:
        Unreadable: no value, not JSON, a wrong type, or too large and not about one pod.
    """
    if value is None:
        raise refused_value(value, limits)
    try:
        return _decoded(_pod_decoder, value, limits)
    except DECODE_ERRORS as error:
        raise unreadable(error) from error


def _decoded(decoder: msgspec.json.Decoder[_WatchT], value: bytes, limits: InputLimits) -> _WatchT:
    """Decode a watch event, and refuse a value beyond the limit unless it is about one object.

    What decides nothing about an object, such as a pod's affinity, is most of a large one, and is passed over.
    """
    if len(value) <= limits.largest_value_bytes:
        return decoder.decode(value)
    try:
        record = decoder.decode(value)
    except DECODE_ERRORS as error:
        raise refused_value(value, limits) from error
    if record.type not in _CHANGES:
        raise refused_value(value, limits)
    return record


def read_decoded_pod(
    watch: PodWatch, key: bytes | None, append_at_us: int, origin: Origin, limits: InputLimits = DEFAULT_LIMITS
) -> PodEvent | Signal:
    """Read what `decode_pod_record` has decoded; the second half of `read_pod_record`.

    Raises:
        Unreadable: the record is a dead letter.
    """
    cluster = cluster_of(key)
    try:
        event_type = _CHANGES.get(watch.type)
        if event_type is None:
            return _read_signal(watch, cluster, append_at_us, origin, limits)
        if watch.cluster != cluster:
            _check_cluster(watch.cluster, cluster)
        if watch.object is None:
            raise Unreadable(UnreadableReason.MISSING_FIELD, "object")
        spec = watch.object.spec
        is_long = spec is not None and len(bytes(spec.tolerations)) > LARGEST_LIST  # if not, it is within all limits
        is_undecidable = is_long and _drop_long_tolerations(watch.object)
        pod = read_pod(watch.object)
        if is_long and has_long_text(pod.tolerations):
            pod, is_undecidable = msgspec.structs.replace(pod, tolerations=()), True
    except ObjectError as error:
        raise _unreadable_object(error) from error
    except DECODE_ERRORS as error:
        raise unreadable(error) from error
    if not pod.node_name:
        return Unbound(cluster)
    check_node_name(pod.node_name, "object.spec.nodeName")
    _check_names(len(pod.namespace) + len(pod.name) + len(pod.uid), pod.resource_version)
    return PodEvent(
        type=event_type,
        pod=pod,
        at_us=event_at_us(watch.observed_at, append_at_us, limits),
        origin=origin,
        epoch=watch.epoch,
        is_undecidable=is_undecidable,
    )


def read_result_record(
    key: bytes | None, value: bytes | None, append_at_us: int, origin: Origin, limits: InputLimits = DEFAULT_LIMITS
) -> ResultEvent | QueueReport:
    """Read a record of the results topic; arguments and errors as for `read_node_record`."""
    if value is None or len(value) > limits.largest_value_bytes:
        raise refused_value(value, limits)
    cluster = cluster_of(key)
    if is_report(value):
        report = decode_report(value)
        _check_cluster(report.cluster, cluster)
        return QueueReport(cluster=cluster, read_to_us=microseconds(report.read_to))
    result = decode_result_except_outcome(value)
    _check_cluster(result.cluster, cluster)
    check_node_name(result.node, "node")
    return ResultEvent(
        node=result.node,
        eviction_id=result.eviction_id,
        attempt=result.attempt,
        pod_uid=result.pod_uid,
        outcome=read_outcome(result),
        reason=result.reason,
        at_us=event_at_us(result.observed_at, append_at_us, limits),
        origin=origin,
        held_by=result.held_by,
    )


def _read_signal(watch: _Watch, cluster: str, append_at_us: int, origin: Origin, limits: InputLimits) -> Signal:
    _check_cluster(watch.cluster, cluster)
    if len(watch.cluster_uid or "") > LONGEST_CLUSTER_UID:
        raise Unreadable(UnreadableReason.OVERSIZED, "clusterUid")
    at_us = event_at_us(watch.observed_at, append_at_us, limits)
    match watch.type:
        case "HEARTBEAT":
            listed_at_us = None if watch.listed_at is None else microseconds(watch.listed_at)
            return Heartbeat(
                cluster=cluster,
                at_us=at_us,
                listed_at_us=listed_at_us,
                epoch=watch.epoch,
                cluster_uid=watch.cluster_uid or "",
                cluster_labels=_read_labels(watch.cluster_labels or {}),
                cluster_profile=_read_profile(watch.cluster_profile),
            )
        case "LISTED":
            return _read_listing(watch, cluster, at_us, origin)
        case "BOOKMARK":
            return Bookmark(cluster)
        case "FORGET":
            return Forget(cluster, at_us)
        case "ACCEPT_GAP":
            return AcceptGap(cluster, at_us)
        case None | "":
            raise Unreadable(UnreadableReason.MISSING_FIELD, "type")
        case _:
            raise Unreadable(UnreadableReason.UNKNOWN_EVENT_TYPE, "type")


def _read_labels(labels: dict[str, str]) -> dict[str, str]:
    """Refuse labels that would make a cluster's row large."""
    is_long = any(len(key) > LONGEST_LABEL_KEY or len(value) > LONGEST_LABEL_VALUE for key, value in labels.items())
    if is_long or len(labels) > MOST_CLUSTER_LABELS:
        raise Unreadable(UnreadableReason.OVERSIZED, "clusterLabels")
    return labels


def _read_profile(profile: ProfileRef | None) -> ProfileRef | None:
    """Refuse one that would make a cluster's row large."""
    if profile is not None and (
        len(profile.namespace) > LONGEST_PROFILE_NAMESPACE
        or len(profile.name) > LONGEST_PROFILE_NAME
        or len(profile.manager) > LONGEST_CLUSTER_MANAGER
    ):
        raise Unreadable(UnreadableReason.OVERSIZED, "clusterProfile")
    return profile


def _read_listing(watch: _Watch, cluster: str, at_us: int, origin: Origin) -> Listed:
    listing = watch.listing
    if listing is None:
        raise Unreadable(UnreadableReason.MISSING_FIELD, "listing")
    if len(listing.resource_version) > LONGEST_VERSION:
        raise Unreadable(UnreadableReason.OVERSIZED, "listing.resourceVersion")
    return Listed(
        cluster=cluster,
        at_us=at_us,
        origin=origin,
        epoch=watch.epoch,
        cluster_uid=watch.cluster_uid or "",
        resource_version=listing.resource_version,
        after=listing.after,
        through=listing.through,
        uids=listing.uids,
        uid_after=listing.uid_after,
        uid_through=listing.uid_through,
    )


def _drop_long_tolerations(pod: PodObject) -> bool:
    """Empty a list of tolerations that is too long to be decided about; return whether it was."""
    spec = pod.spec
    if spec is None or not is_too_long(bytes(spec.tolerations)):
        return False
    spec.tolerations = NULL
    return True


def _check_names(names: int, version: str) -> None:
    if names > LONGEST_NAMES:
        raise Unreadable(UnreadableReason.OVERSIZED, "object.metadata: name, namespace or uid")
    if len(version) > LONGEST_VERSION:
        raise Unreadable(UnreadableReason.OVERSIZED, "object.metadata.resourceVersion")


def _drop_long_node_lists(node: NodeObject) -> bool:
    """Empty a list of taints that is too long to be decided about; return whether it was.

    Of a long list of conditions, which a node's kubelet may write, only `Ready` is left: no other one decides anything.
    """
    spec, status = node.spec, node.status
    if status is not None and is_too_long(bytes(status.conditions)):
        status.conditions = msgspec.Raw(entries_with(bytes(status.conditions), b'"Ready"'))
    if spec is None or not is_too_long(bytes(spec.taints)):
        return False
    spec.taints = NULL
    return True


def _check_cluster(named: str | None, cluster: str) -> None:
    if not named:
        raise Unreadable(UnreadableReason.MISSING_FIELD, "cluster")
    if named != cluster:
        raise Unreadable(UnreadableReason.FOREIGN_CLUSTER, "cluster differs from the key")


def _unreadable_object(error: ObjectError) -> Unreadable:
    if isinstance(error, MissingFieldError):
        reason = UnreadableReason.MISSING_FIELD
    elif isinstance(error, WrongKindError):
        reason = UnreadableReason.WRONG_KIND
    elif isinstance(error, FieldTimeError):
        reason = UnreadableReason.BAD_TIME
    else:
        reason = UnreadableReason.WRONG_TYPE
    return Unreadable(reason, f"object.{error.field}")
