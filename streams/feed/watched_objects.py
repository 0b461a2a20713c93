"""Objects of the API server as a feed forwards them: decoded once, trimmed to what is used, never changed.

What is kept is what decides (docs/messages.md#watch-events), and what people ask for (docs/what-if.md): labels and
cordon of a node; controller, priority, node selector and required node affinity of a pod, and who deletes it
(docs/migrate.md). Texts and numbers are passed
on as they came. Items of a list carry neither kind nor API version, so both are set here.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, NamedTuple

import msgspec

from evictstream.models.kubernetes.forwarded_shapes import (
    ForwardedNode,
    ForwardedNodeSpec,
    ForwardedPod,
    ForwardedPodSpec,
    ForwardedPodStatus,
)
from evictstream.models.kubernetes.handed_over import LARGEST_ANNOTATION_BYTES
from evictstream.models.kubernetes.shapes import (
    DISRUPTION_TARGET,
    OBJECT_API_VERSION,
    Kind,
)
from evictstream.models.messages.object_limits import UNDECIDABLE_LIST

PATHS: Final[dict[Kind, str]] = {"Node": "/api/v1/nodes", "Pod": "/api/v1/pods"}


class WatchedObject(NamedTuple):
    """A node or a pod.

    Attributes:
        node: its name, or that of the pod's node; empty for a pod that is not bound.
        uid: its UID.
        version: its resource version.
        json: trimmed.
    """

    node: str
    uid: str
    version: str
    json: bytes


class WatchLine(NamedTuple):
    """A line of a watch.

    Attributes:
        type: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
        object: as it came.
    """

    type: str
    object: msgspec.Raw


class ListMetadata(msgspec.Struct, rename="camel"):
    """What a page says of its list."""

    resource_version: Annotated[str, msgspec.Meta(pattern="^[0-9]{1,20}$")]
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct):
    """A page of a list."""

    metadata: ListMetadata
    items: list[msgspec.Raw]


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _OnlyMetadata(msgspec.Struct):
    class Metadata(msgspec.Struct, rename="camel"):
        """Of a bookmark."""

        resource_version: str

    metadata: Metadata


_decoders: Final[dict[Kind, msgspec.json.Decoder[Any]]] = {
    "Node": msgspec.json.Decoder(ForwardedNode),
    "Pod": msgspec.json.Decoder(ForwardedPod),
}
_line_decoder: Final = msgspec.json.Decoder(_Line)
_page_decoder: Final = msgspec.json.Decoder(Page)
_list_metadata_decoder: Final = msgspec.json.Decoder(ListMetadata)
_metadata_decoder: Final = msgspec.json.Decoder(_OnlyMetadata)
_text_decoder: Final = msgspec.json.Decoder(str)
_encoder: Final = msgspec.json.Encoder()

BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What the readers below raise for what is not the API server's."""


def read_object(kind: Kind, text: bytes | msgspec.Raw) -> WatchedObject:
    """Read an object and trim it.

    Raises:
        One of `BROKEN`: it is not an object of this kind.
    """
    content = _decoders[kind].decode(text)
    content.kind, content.api_version = kind, OBJECT_API_VERSION
    metadata, status = content.metadata, content.status
    if kind == "Node":
        node = metadata.name
        if status is not None and status.conditions is not None:
            status.conditions = [condition for condition in status.conditions if condition.type == "Ready"]
    else:
        node = (content.spec.node_name if content.spec is not None else None) or ""
        if metadata.annotations is not None and _is_too_large(metadata.annotations.tolerations):
            metadata.annotations.tolerations = _UNREADABLE
        if metadata.owner_references is not None:
            metadata.owner_references = [one for one in metadata.owner_references if one.controller == _TRUE]
        if status is not None and status.conditions is not None:
            status.conditions = [one for one in status.conditions if one.type == DISRUPTION_TARGET] or None
    text = _encoder.encode(content)
    if not text.isascii():
        text.decode()  # what is passed on as it came was not looked at
    version = metadata.resource_version
    number(version)
    return WatchedObject(node, metadata.uid, version, text)


def only_what_decides(kind: Kind, text: bytes, *, is_undecidable: bool = False) -> bytes:
    """Take off a trimmed object what no decision depends on.

    Args:
        kind: of the object.
        text: as `read_object` has trimmed it.
        is_undecidable: replace its taints or tolerations, too, by a list that no decision looks at.
    """
    content = _decoders[kind].decode(text)
    metadata, spec = content.metadata, content.spec
    if kind == "Node":
        metadata.labels = msgspec.UNSET
        if spec is not None:
            content.spec = ForwardedNodeSpec(taints=_UNDECIDABLE if is_undecidable else spec.taints)
    else:
        metadata.labels = metadata.owner_references = None
        if content.status is not None:
            content.status = ForwardedPodStatus(phase=content.status.phase)
        if spec is not None:
            tolerations = _UNDECIDABLE if is_undecidable else spec.tolerations
            content.spec = ForwardedPodSpec(node_name=spec.node_name, tolerations=tolerations)
    return _encoder.encode(content)


def _is_too_large(annotation: msgspec.Raw | msgspec.UnsetType) -> bool:
    """Whether no reader takes an annotation for its size; most are far from it, and are not decoded."""
    if annotation is msgspec.UNSET or len(bytes(annotation)) <= LARGEST_ANNOTATION_BYTES:
        return False
    try:
        return len(_text_decoder.decode(annotation).encode(errors="replace")) > LARGEST_ANNOTATION_BYTES
    except BROKEN:
        return True


_UNDECIDABLE: Final = msgspec.Raw(UNDECIDABLE_LIST)
_UNREADABLE: Final = msgspec.Raw(
    b'""'
)  # stands for an annotation that is too large: it counts as absent, and is counted


def number(version: str) -> int:
    """Read a resource version of etcd as what it is.

    Raises:
        msgspec.ValidationError: it is none.
    """
    if not (version.isascii() and version.isdecimal() and len(version) <= _MOST_DIGITS):
        raise msgspec.ValidationError(f"no resource version: {version[:_MOST_DIGITS]}")
    return int(version)


_MOST_DIGITS: Final = 20
"""Etcd counts with 63 bits."""

_TRUE: Final = msgspec.Raw(b"true")


def read_line(text: bytes) -> WatchLine:
    """Read a line of a watch; its object is not looked at.

    Raises:
        One of `BROKEN`: it is none.
    """
    line = _line_decoder.decode(text)
    return WatchLine(line.type, line.object)


def read_page(text: bytes) -> Page:
    """Read a page of a list; its items are not looked at.

    Raises:
        One of `BROKEN`: it is none.
    """
    return _page_decoder.decode(text)


def read_list_metadata(text: bytes) -> ListMetadata:
    """Read the metadata of a list.

    Raises:
        One of `BROKEN`: it is none.
    """
    return _list_metadata_decoder.decode(text)


def read_bookmark_version(text: bytes | msgspec.Raw) -> str:
    """Read the resource version of a bookmark.

    Raises:
        One of `BROKEN`: there is none.
    """
    return _metadata_decoder.decode(text).metadata.resource_version
