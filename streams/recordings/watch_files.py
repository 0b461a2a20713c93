"""Watches and lists in files, read as entries.

Three formats, distinguished document by document: evictstream's watch event (`cluster`, `type`, `observedAt`,
`object`); what `kubectl get ... -o json --watch --output-watch-events` prints (`type`, `object`), which knows neither
cluster nor time; and lists (`kubernetes_lists.py`). Plain or gzip, one document per line or not. What cannot be read is
a `Flaw` with its line, and reading goes on.

kubectl watches one kind at a time, so a recording made with it is two files: give both.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final, cast

import msgspec

from evictstream.models.instants import microseconds
from evictstream.models.kubernetes.objects import Moment
from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable
from evictstream.models.messages.vocabulary import EventType
from evictstream.streams.errors import RecordingError
from evictstream.streams.recordings.entries import ABSENT, Flaw, Item, Skipped, entry_of
from evictstream.streams.recordings.json_documents import LARGEST_DOCUMENT_BYTES, Broken, Document, ListItem, documents
from evictstream.streams.recordings.kubernetes_lists import compact, is_list, listed, unfinished

SKIPPED_TYPES: Final = frozenset({"BOOKMARK", "LISTED", "HEARTBEAT", "FORGET", "ACCEPT_GAP"})
"""Lines that are left out. A bookmark changes nothing. A heartbeat would promise a live feed, and hold the cluster's
evictions for ever once the recording is over. A listing would end what else is known of the cluster. An operator's
signals are not to be repeated."""

READ_BYTES: Final = 262_144
"""At a time, so that decompressing is not done line by line."""

_GZIP: Final = b"\x1f\x8b"
_CHANGES: Final = frozenset(EventType)


class _Line(msgspec.Struct, rename="camel", gc=False):
    type: str | None = None
    object: msgspec.Raw = ABSENT
    cluster: str | None = None
    observed_at: Moment | None = None
    kind: str | None = None


_line_decoder: Final = msgspec.json.Decoder(_Line)


def decompressed(file: BinaryIO) -> io.BufferedReader:
    """Look at the first bytes (which may have to be waited for) and decompress if need be."""
    buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", file))
    if buffered.peek(len(_GZIP))[: len(_GZIP)] != _GZIP:
        return buffered
    return io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=buffered)), READ_BYTES)


def documents_of(
    source: str, stream: BinaryIO, largest_bytes: int = LARGEST_DOCUMENT_BYTES
) -> Iterator[Document | ListItem | Flaw]:
    """Cut a file, plain or gzip, into documents.

    Args:
        source: its name, for people.
        stream: its bytes.
        largest_bytes: larger documents are flaws.

    Raises:
        RecordingError: the file cannot be read any further.
    """
    line = 0
    try:
        for found in documents(decompressed(stream), largest_bytes):
            line = found.line
            yield Flaw(source, line, found.problem) if isinstance(found, Broken) else found
    except EOFError:
        yield Flaw(source, line, "the compressed data ends in the middle somewhere behind this line")
    except (OSError, zlib.error) as error:  # BadGzipFile is an OSError
        raise RecordingError(source, line=line, reason=str(error)) from error


def read_recording(source: str, stream: BinaryIO) -> Iterator[Item]:
    """Read one recording of watches or lists to its end.

    Args:
        source: its name, for people.
        stream: its bytes, plain or gzip.

    Raises:
        RecordingError: the file cannot be read any further.
    """
    for found in documents_of(source, stream):
        if isinstance(found, Flaw):
            yield found
        elif isinstance(found, ListItem):
            yield listed(source, found)
        else:
            item = read_watch_event(source, found.line, found.text)
            if item is not None:
                yield item


def read_watch_event(source: str, line: int, text: bytes) -> Item | None:
    """Read a watch event, of a feed or of kubectl; None is the end of a list, whose items came before."""
    try:
        found = _line_decoder.decode(compact(text))
    except DECODE_ERRORS as error:
        return Flaw(source, line, str(unreadable(error)))
    if found.type in SKIPPED_TYPES:
        return Skipped(source, line, found.type)
    if found.type is None and is_list(found.kind):
        return unfinished(source, line, text)
    if found.type is None or found.type not in _CHANGES or found.object == ABSENT:
        return Flaw(source, line, _no_change(found))
    observed_at_us = None if found.observed_at is None else microseconds(found.observed_at)
    return entry_of(
        found.object,
        source=source,
        line=line,
        type_=found.type,
        cluster=found.cluster,
        observed_at_us=observed_at_us,
    )


def _no_change(found: _Line) -> str:
    if found.type == "ERROR":
        return "the API server reported an error here; what followed until the watch was opened again is missing"
    if found.type is None and found.kind is not None:
        return "an object, neither a watch event nor a list; record with --watch --output-watch-events"
    return "type is not one of a watch event" if found.object != ABSENT else "no object"
