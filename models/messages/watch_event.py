"""The inputs: watch events on the nodes and the pods topic, as a feed has to write them. Key: the cluster's name.

A record is what the Kubernetes watch sends, plus the cluster and the time at which the feed received it. The line
format of `kubectl get pods -A -o json --watch --output-watch-events` lacks both, `cluster` and `observedAt`.

The service itself accepts more, and reads only what it uses: see `decoding` and `kubernetes.shapes`.
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from evictstream.models.kubernetes.objects import FieldTimeError, read_instant
from evictstream.models.kubernetes.shapes import (
    EXCLUDE_DISRUPTION_LABEL,
    MIRROR_ANNOTATION,
    POD_GROUP_LABEL,
    TOLERATIONS_ANNOTATION,
)
from evictstream.models.kubernetes.taints import BareTaint
from evictstream.models.kubernetes.tolerations import SpecToleration
from evictstream.models.messages import codec
from evictstream.models.messages.fields import Epoch, NonEmptyText, ReadInstant
from evictstream.models.messages.fleet import MOST_CLUSTER_LABELS, ProfileRef
from evictstream.models.messages.unreadable import Unreadable, UnreadableReason
from evictstream.models.messages.vocabulary import WatchEventType

_CHANGES: Final = frozenset({WatchEventType.ADDED, WatchEventType.MODIFIED, WatchEventType.DELETED})
_FROM_THE_FEED: Final = frozenset({WatchEventType.LISTED, WatchEventType.HEARTBEAT})

KubernetesInstant = Annotated[
    str, Meta(extra_json_schema={"format": "date-time", "examples": ["2026-11-21T02:15:53Z"]})
]
"""An instant as Kubernetes reads it, more leniently than `ReadInstant`: see `kubernetes.times`."""


class NodeMetadata(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The part of a node's metadata in use."""

    name: NonEmptyText
    uid: NonEmptyText
    resource_version: NonEmptyText
    labels: Annotated[
        dict[str, str | None] | None,
        Meta(
            description=f"For policies; of a pod only `{POD_GROUP_LABEL}` matters. A node with"
            f" `{EXCLUDE_DISRUPTION_LABEL}` does not count in outages."
        ),
    ] = None


class WatchedOwner(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An owner of a pod; only the controller matters, for policies."""

    kind: str
    name: str
    controller: bool | None = None


class PodMetadata(NodeMetadata, frozen=True, rename="camel", kw_only=True):
    """The part of a pod's metadata in use."""

    namespace: NonEmptyText
    deletion_timestamp: str | None = None
    annotations: Annotated[
        dict[str, str | None] | None,
        Meta(description=f"Only `{MIRROR_ANNOTATION}` and `{TOLERATIONS_ANNOTATION}` matter."),
    ] = None
    owner_references: tuple[WatchedOwner, ...] | None = None


class WatchedTaint(BareTaint, frozen=True, rename="camel", kw_only=True):
    """A taint as the API server sends it."""

    time_added: Annotated[
        KubernetesInstant | None, Meta(description="Optional; shows that a taint was removed and added again.")
    ] = None


class NodeSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a node's spec in use."""

    taints: tuple[WatchedTaint, ...] | None = None


class NodeCondition(msgspec.Struct, frozen=True, rename="camel"):
    """A condition of a node; only `Ready` matters."""

    type: str
    status: str


class NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a node's status in use."""

    conditions: tuple[NodeCondition, ...] | None = None


class WatchedSchedulingGroup(msgspec.Struct, frozen=True, rename="camel"):
    """The group with which a pod is scheduled."""

    pod_group_name: str | None = None


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a pod's spec in use."""

    node_name: str | None = None
    tolerations: tuple[SpecToleration, ...] | None = None
    priority: Annotated[int | None, Meta(description="For policies, as the next.")] = None
    scheduling_group: WatchedSchedulingGroup | None = None


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a pod's status in use."""

    phase: str | None = None


class NodeOfFeed(msgspec.Struct, frozen=True, rename="camel", kw_only=True, tag_field="kind", tag="Node"):
    """A v1 Node, whole or trimmed."""

    api_version: Literal["v1"] = "v1"
    metadata: NodeMetadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class PodOfFeed(msgspec.Struct, frozen=True, rename="camel", kw_only=True, tag_field="kind", tag="Pod"):
    """A v1 Pod, whole or trimmed."""

    api_version: Literal["v1"] = "v1"
    metadata: PodMetadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


_OBJECT: Final = {
    "anyOf": [
        {"$ref": "#/$defs/NodeOfFeed"},
        {"$ref": "#/$defs/PodOfFeed"},
        {"type": "object", "description": "The object of a bookmark: a kind and a resource version. Ignored."},
        {"type": "null"},
    ],
    "default": None,
}


class Listing(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What a complete listing holds in a range of node names: whatever else is known there is gone."""

    resource_version: Annotated[NonEmptyText, Meta(description="Of the list, as the API server gave it.")]
    after: Annotated[str, Meta(description="The range begins behind this node name; empty for the first.")] = ""
    through: Annotated[str | None, Meta(description="The last node name of the range; absent for no end.")] = None
    uids: Annotated[
        dict[str, tuple[str, ...]],
        Meta(
            description="By node name: on the nodes topic the UID of the node, on the pods topic those of its pods."
            " A node of the range that is not in it has none."
        ),
    ]
    uid_after: Annotated[
        str, Meta(description="Of these nodes, only UIDs behind this one are spoken of; empty for all from the first.")
    ] = ""
    uid_through: Annotated[str | None, Meta(description="The last UID that is spoken of; absent for no end.")] = None


class WatchEvent(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One record of the nodes or the pods topic."""

    cluster: Annotated[NonEmptyText, Meta(description="The cluster's id, as in the key.")]
    type: Annotated[
        WatchEventType,
        Meta(
            description="`ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` (ignored): as the watch sends them. `LISTED`:"
            " what a complete listing holds. `HEARTBEAT`: the feed is alive. `FORGET`: take the cluster out of the"
            " service. `ACCEPT_GAP`: go on although input expired unread."
        ),
    ]
    observed_at: Annotated[
        ReadInstant | None,
        Meta(
            description="When the feed received it. A time outside the minute before the append time is moved to the"
            " nearer end of that minute; absent means the append time."
        ),
    ] = None
    epoch: Annotated[
        Epoch,
        Meta(
            description="Resource versions of a cluster only grow within an epoch; its feed begins the next one when"
            " they have gone back."
        ),
    ] = 0
    cluster_uid: Annotated[
        NonEmptyText | None,
        Meta(description="Only on `LISTED` and `HEARTBEAT`: the UID of the cluster's namespace `kube-system`."),
    ] = None
    cluster_labels: Annotated[
        Annotated[dict[str, str], Meta(max_length=MOST_CLUSTER_LABELS)] | None,
        Meta(description="Only on `HEARTBEAT`: labels of the cluster, for the topic `evictstream.clusters`."),
    ] = None
    cluster_profile: Annotated[
        ProfileRef | None,
        Meta(description="Only on `HEARTBEAT`: where the cluster stands in an inventory, for the same topic."),
    ] = None
    listing: Annotated[Listing | None, Meta(description="Only on `LISTED`, and there always.")] = None
    listed_at: Annotated[
        ReadInstant | None,
        Meta(description="Only on `HEARTBEAT`: when the feed's last complete listing began."),
    ] = None
    # Its content depends on `type`; `decode_object` reads that of a change.
    object: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        Meta(description="The object, with `ADDED`, `MODIFIED` and `DELETED`.", extra_json_schema=_OBJECT),
    ] = msgspec.UNSET


_decoder: Final = msgspec.json.Decoder(WatchEvent)
_object_decoder: Final[msgspec.json.Decoder[NodeOfFeed | PodOfFeed]] = msgspec.json.Decoder(NodeOfFeed | PodOfFeed)
_other_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)


def decode_watch_event(text: bytes | str) -> WatchEvent:
    """Read a watch event, and refuse what its JSON Schema refuses, and what does not belong together.

    Raises:
        Unreadable: it is not a watch event; also a change without its object, `LISTED` without its listing, or
            `listedAt`, `clusterUid`, `clusterLabels`, `clusterProfile` or `listing` with a type that has none.
    """
    event = codec.decode(_decoder, text)
    if event.type in _CHANGES:
        decode_object(event)
    elif event.object is not msgspec.UNSET:
        codec.decode(_other_decoder, event.object)
    if event.listed_at is not None and event.type is not WatchEventType.HEARTBEAT:
        raise Unreadable(UnreadableReason.MISPLACED_FIELD, "listedAt: only on HEARTBEAT")
    if event.cluster_uid is not None and event.type not in _FROM_THE_FEED:
        raise Unreadable(UnreadableReason.MISPLACED_FIELD, "clusterUid: only on LISTED and HEARTBEAT")
    if event.cluster_labels is not None and event.type is not WatchEventType.HEARTBEAT:
        raise Unreadable(UnreadableReason.MISPLACED_FIELD, "clusterLabels: only on HEARTBEAT")
    if event.cluster_profile is not None and event.type is not WatchEventType.HEARTBEAT:
        raise Unreadable(UnreadableReason.MISPLACED_FIELD, "clusterProfile: only on HEARTBEAT")
    if event.listing is None and event.type is WatchEventType.LISTED:
        raise Unreadable(UnreadableReason.MISSING_FIELD, "listing")
    if event.listing is not None and event.type is not WatchEventType.LISTED:
        raise Unreadable(UnreadableReason.MISPLACED_FIELD, "listing: only on LISTED")
    return event


def decode_object(event: WatchEvent) -> NodeOfFeed | PodOfFeed:
    """Read the object of a change.

    Raises:
        Unreadable: it is neither a Node nor a Pod.
    """
    if event.object is msgspec.UNSET:
        raise Unreadable(UnreadableReason.MISSING_FIELD, "object")
    content = codec.decode(_object_decoder, event.object)
    if isinstance(content, NodeOfFeed):
        for index, taint in enumerate((content.spec and content.spec.taints) or ()):
            try:
                read_instant(taint.time_added, f"object.spec.taints[{index}].timeAdded")
            except FieldTimeError as error:
                raise Unreadable(UnreadableReason.BAD_TIME, error.field) from error
    return content
