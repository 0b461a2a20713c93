"""What recordings of nodes and pods hold: changes, lines that are left out, and lines that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO, Final, TypeAlias

import msgspec

from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.shapes import Kind
from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable

ABSENT: Final = msgspec.Raw(b"null")  # null stands for an absent object, as everywhere in Kubernetes


class Entry(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One change of a node or pod as it was recorded.

    Attributes:
        source: name of its file, for people.
        line: line on which it begins.
        type: `ADDED`, `MODIFIED` or `DELETED`.
        kind: what `object` is.
        node_name: the node, or the one the pod is bound to; empty while it is not.
        cluster: as recorded; None in what kubectl prints and in audit logs.
        observed_at_us: when the feed received it, microseconds since 1970; None if it was not recorded.
        object: JSON of the object, as recorded.
        is_listed: it stood in a list, as a part of the state from which changes begin.
    """

    source: str
    line: int
    type: str
    kind: Kind
    node_name: str
    cluster: str | None
    observed_at_us: int | None
    object: msgspec.Raw
    is_listed: bool = False


class Skipped(msgspec.Struct, frozen=True, gc=False):
    """A line that is in order and is left out; `type` says why, in a word or a few."""

    source: str
    line: int
    type: str


class Flaw(msgspec.Struct, frozen=True, gc=False):
    """Something that cannot be read, and why. The text quotes nothing of the recording.

    Attributes:
        source: name of its file, for people.
        line: on which it begins.
        problem: what is wrong.
        lines: how many cannot be read for that.
    """

    source: str
    line: int
    problem: str
    lines: int = 1

    def __str__(self) -> str:
        """Say where and what, in one line."""
        return f"{self.source}, line {self.line}: {self.problem}"


Item: TypeAlias = Entry | Skipped | Flaw


class WatchEnded(msgspec.Struct, frozen=True, gc=False):
    """A live watch has come to its end.

    Attributes:
        source: its name, for people.
        kinds: of the objects in it; empty if it ended without an event, as when kubectl is refused.
    """

    source: str
    kinds: tuple[Kind, ...]


class _Name(msgspec.Struct, gc=False):
    name: str | None = None


class _Binding(msgspec.Struct, rename="camel", gc=False):
    node_name: str | None = None


class _Object(msgspec.Struct, gc=False):
    """As much of an object as its key takes."""

    kind: str | None = None
    metadata: _Name | None = None
    spec: _Binding | None = None


_object_decoder: Final = msgspec.json.Decoder(_Object)


def entry_of(
    raw: msgspec.Raw,
    *,
    source: str,
    line: int,
    type_: str,
    cluster: str | None = None,
    observed_at_us: int | None = None,
    is_listed: bool = False,
) -> Entry | Flaw:
    """Make an entry of an object; a flaw if it is neither a node nor a pod, or cannot be read."""
    try:
        about = _object_decoder.decode(raw)
    except DECODE_ERRORS as error:
        return Flaw(source, line, str(unreadable(error)))
    match about.kind:
        case "Node":
            node_name = about.metadata.name if about.metadata is not None else None
        case "Pod":
            node_name = about.spec.node_name if about.spec is not None else None
        case _:
            return Flaw(source, line, "its object is neither a Node nor a Pod")
    kind: Kind = about.kind
    return Entry(
        source=source,
        line=line,
        type=type_,
        kind=kind,
        node_name=node_name or "",
        cluster=cluster,
        observed_at_us=observed_at_us,
        object=raw,
        is_listed=is_listed,
    )


class _WatchEvent(msgspec.Struct, rename="camel", gc=False):
    cluster: str | msgspec.UnsetType
    type: str
    observed_at: str | msgspec.UnsetType
    object: msgspec.Raw


def watch_event(entry: Entry) -> bytes:
    """Return an entry as the JSON of a watch event."""
    cluster = msgspec.UNSET if entry.cluster is None else entry.cluster
    observed_at = msgspec.UNSET if entry.observed_at_us is None else instant_text(entry.observed_at_us)
    return msgspec.json.encode(
        _WatchEvent(cluster=cluster, type=entry.type, observed_at=observed_at, object=entry.object)
    )


def write_recording(entries: Iterable[Entry], stream: BinaryIO) -> None:
    """Write one watch event a line, which `item_reader` reads again."""
    stream.writelines(watch_event(entry) + b"\n" for entry in entries)
