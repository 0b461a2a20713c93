"""Recordings of watches, read as events of nodes and pods.

Two formats, distinguished line by line: evictstream's watch event (`cluster`, `type`, `observedAt`, `object`), and what
`kubectl get ... -o json --watch --output-watch-events` prints (`type`, `object`), which knows neither cluster nor time.
Plain or gzip, one document per line or not. What cannot be read is a `Flaw` with its line, and reading goes on.

kubectl watches one kind at a time, so a recording made with it is two files: give both.

What comes out of a pipe without recorded times counts as a live watch. Unlike a recording it is never complete, so its
end is reported as `WatchEnded`.
"""

from __future__ import annotations

import contextlib
import gzip
import heapq
import io
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias, cast

import msgspec

from evictstream.models.instants import FIRST_INSTANT_US, instant_text, microseconds
from evictstream.models.kubernetes.objects import Moment
from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable
from evictstream.models.messages.vocabulary import EventType
from evictstream.streams.errors import RecordingError, WrongUseError
from evictstream.streams.feed.json_documents import Broken, documents

STDIN: Final = "-"

SKIPPED_TYPES: Final = frozenset({"BOOKMARK", "LISTED", "HEARTBEAT", "FORGET", "ACCEPT_GAP"})
"""Lines that are left out. A bookmark changes nothing. A heartbeat would promise a live feed, and hold the cluster's
evictions for ever once the recording is over. A listing would end what else is known of the cluster. An operator's
signals are not to be repeated."""

_GZIP: Final = b"\x1f\x8b"
_READ_BYTES: Final = 262_144  # so that decompressing is not done line by line

_CHANGES: Final = frozenset(EventType)

Kind: TypeAlias = Literal["Node", "Pod"]


class Entry(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One change of a node or pod as it was recorded.

    Attributes:
        source: name of its file, for people.
        line: line on which it begins.
        type: `ADDED`, `MODIFIED` or `DELETED`.
        kind: what `object` is.
        node_name: the node, or the one the pod is bound to; empty while it is not.
        cluster: as recorded; None in what kubectl prints.
        observed_at_us: when the feed received it, microseconds since 1970; None if it was not recorded.
        object: JSON of the object, as recorded.
    """

    source: str
    line: int
    type: str
    kind: Kind
    node_name: str
    cluster: str | None
    observed_at_us: int | None
    object: msgspec.Raw


class Skipped(msgspec.Struct, frozen=True, gc=False):
    """A line that is in order and is not imported; `type` is one of `SKIPPED_TYPES`."""

    source: str
    line: int
    type: str


class Flaw(msgspec.Struct, frozen=True, gc=False):
    """Something that cannot be imported, and why. The text quotes nothing of the recording."""

    source: str
    line: int
    problem: str

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


_ABSENT: Final = msgspec.Raw(b"null")  # null stands for an absent object, as everywhere in Kubernetes


class _Line(msgspec.Struct, rename="camel", gc=False):
    type: str | None = None
    object: msgspec.Raw = _ABSENT
    cluster: str | None = None
    observed_at: Moment | None = None
    kind: str | None = None


class _Name(msgspec.Struct, gc=False):
    name: str | None = None


class _Binding(msgspec.Struct, rename="camel", gc=False):
    node_name: str | None = None


class _Object(msgspec.Struct, gc=False):
    """As much of an object as its key takes."""

    kind: str | None = None
    metadata: _Name | None = None
    spec: _Binding | None = None


_line_decoder: Final = msgspec.json.Decoder(_Line)
_object_decoder: Final = msgspec.json.Decoder(_Object)


@contextlib.contextmanager
def open_recordings(names: Iterable[str]) -> Iterator[Iterator[Item | WatchEnded]]:
    """Open all recordings and give what is in them, as one stream ordered by recorded time.

    What has no time keeps the place after its predecessor in its file; files without any come one after the other.

    Args:
        names: paths; `-` is standard input.

    Raises:
        WrongUseError: a file cannot be opened. While reading also `RecordingError`.
    """
    with contextlib.ExitStack() as stack:
        yield merged(
            [_read_all("stdin" if name == STDIN else name, stack.enter_context(_open(name))) for name in names]
        )


def _read_all(source: str, file: BinaryIO) -> Iterator[Item | WatchEnded]:
    items = read_recording(source, file)
    # A file is a finished recording; a pipe may be a live watch.
    return items if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else _with_its_end(source, items)


def _with_its_end(source: str, items: Iterator[Item]) -> Iterator[Item | WatchEnded]:
    kinds: set[Kind] = set()
    is_silent = True
    for item in items:
        is_silent = False
        if isinstance(item, Entry) and item.observed_at_us is None:
            kinds.add(item.kind)
        yield item
    if kinds or is_silent:
        yield WatchEnded(source, tuple(sorted(kinds)))


def merged(recordings: Iterable[Iterator[Item | WatchEnded]]) -> Iterator[Item | WatchEnded]:
    """Join recordings by recorded time; each keeps its own order, even where its times go back."""
    return (item for _, item in heapq.merge(*map(_with_times, recordings), key=lambda pair: pair[0]))


def _with_times(recording: Iterator[Item | WatchEnded]) -> Iterator[tuple[int, Item | WatchEnded]]:
    latest_us = FIRST_INSTANT_US
    for item in recording:
        if isinstance(item, Entry) and item.observed_at_us is not None:
            latest_us = max(latest_us, item.observed_at_us)
        yield latest_us, item


@contextlib.contextmanager
def _open(name: str) -> Iterator[BinaryIO]:
    if name == STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115 - it is entered below, where errors are not about opening
    except OSError as error:
        raise WrongUseError(f"cannot open {name}: {error.strerror}") from error
    with file:
        yield file


def _decompressed(file: BinaryIO) -> BinaryIO:
    """Look at the first bytes (which may have to be waited for) and decompress if need be."""
    buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", file))
    if buffered.peek(len(_GZIP))[: len(_GZIP)] != _GZIP:
        return buffered
    return io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=buffered)), _READ_BYTES)


def read_recording(source: str, stream: BinaryIO) -> Iterator[Item]:
    """Read one recording to its end.

    Args:
        source: its name, for people.
        stream: its bytes, plain or gzip.

    Raises:
        RecordingError: the file cannot be read any further.
    """
    line = 0
    try:
        for found in documents(_decompressed(stream)):
            line = found.line
            yield Flaw(source, line, found.problem) if isinstance(found, Broken) else _read(source, line, found.text)
    except EOFError:
        yield Flaw(source, line, "the compressed data ends in the middle somewhere behind this line")
    except (OSError, zlib.error) as error:  # BadGzipFile is an OSError
        raise RecordingError(source, line=line, reason=str(error)) from error


def _read(source: str, line: int, text: bytes) -> Item:
    try:
        if b"\n" in text:
            text = msgspec.json.format(text, indent=-1)  # white space of printers is not worth sending
        found = _line_decoder.decode(text)
        if found.type in SKIPPED_TYPES:
            return Skipped(source, line, found.type)
        if found.type is None or found.type not in _CHANGES or found.object == _ABSENT:
            return Flaw(source, line, _no_change(found))
        about = _object_decoder.decode(found.object)
    except DECODE_ERRORS as error:
        return Flaw(source, line, str(unreadable(error)))
    match about.kind:
        case "Node":
            node_name = about.metadata.name if about.metadata is not None else None
        case "Pod":
            node_name = about.spec.node_name if about.spec is not None else None
        case _:
            return Flaw(source, line, "its object is neither a Node nor a Pod")
    observed_at_us = None if found.observed_at is None else microseconds(found.observed_at)
    kind: Kind = about.kind
    return Entry(
        source=source,
        line=line,
        type=found.type,
        kind=kind,
        node_name=node_name or "",
        cluster=found.cluster,
        observed_at_us=observed_at_us,
        object=found.object,
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
    """Write one watch event a line, which `read_recording` reads again."""
    stream.writelines(watch_event(entry) + b"\n" for entry in entries)


def _no_change(found: _Line) -> str:
    if found.type == "ERROR":
        return "the API server reported an error here; what followed until the watch was opened again is missing"
    if found.type is None and found.kind is not None:
        return "an object or a list, not a watch event; record with --watch --output-watch-events"
    return "type is not one of a watch event" if found.object != _ABSENT else "no object"
