"""What can be had of an object that no decoder reads: the object without what is too deep, or at least who it is."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from evictstream.models.kubernetes.shapes import Kind
from evictstream.models.shallow_json import MOST_LEVELS, shallow
from evictstream.streams.feed.json_pieces import piece
from evictstream.streams.feed.watched_objects import BROKEN, WatchedObject, read_object

LONGEST_NAME: Final = 253
"""Characters that are shown of what should be a name."""


class UnreadObject(NamedTuple):
    """Who an object is that cannot be read; what could not be found is empty.

    Attributes:
        namespace: of a pod.
        name: its name.
        uid: its UID.
        version: its resource version.
        node: its name, or that of the pod's node.
    """

    namespace: str
    name: str
    uid: str
    version: str
    node: str

    def say(self, log: Any, **more: object) -> None:
        """Name it in the log, since it is passed over."""
        log.warning(
            "unreadable object skipped",
            namespace=self.namespace,
            name=self.name,
            uid=self.uid,
            **more,
        )

    def as_json(self, kind: Kind) -> bytes:
        """Return an object that says only who it is."""
        metadata = {"name": self.name, "uid": self.uid, "resourceVersion": self.version}
        if kind == "Pod":
            metadata["namespace"] = self.namespace
        spec = {"nodeName": self.node} if kind == "Pod" else {}
        return msgspec.json.encode({"kind": kind, "apiVersion": "v1", "metadata": metadata, "spec": spec})


def read_anyway(kind: Kind, text: bytes) -> tuple[WatchedObject | None, bytes]:
    """Read an object without what lies too deep to be used; returns its JSON too. None if that does not help."""
    try:
        kept = shallow(text, most_levels=MOST_LEVELS)
        return read_object(kind, kept), kept
    except BROKEN:
        return None, text


def identify(kind: Kind, text: bytes) -> UnreadObject:
    """Find who an object is, of which the end may be missing."""
    part = piece(text, b"metadata")
    metadata = b"" if part is None else part.value

    def of(key: bytes) -> str:
        one = piece(metadata, key)
        return "" if one is None else one.text[:LONGEST_NAME]

    node = piece(text, b"spec", b"nodeName")
    name = of(b"name")
    return UnreadObject(
        namespace=of(b"namespace"),
        name=name,
        uid=of(b"uid"),
        version=of(b"resourceVersion"),
        node=name if kind == "Node" else "" if node is None else node.text[:LONGEST_NAME],
    )
