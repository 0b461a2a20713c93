"""Files of others, read as changes of nodes and pods: watches, lists and single objects, audit logs, in any mixture.

An unreadable item is a `Flaw` with its line, and reading continues. kubectl watches one kind at a time, so a recording
made with it is two files: give both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final, TypeAlias

from evictstream.kit.inputs.files import pieces_of
from evictstream.kit.inputs.pieces import Broken
from evictstream.kit.inputs.recognition import (
    AuditEvent,
    ChangeOfWatch,
    EndOfList,
    KubernetesObject,
    NoObject,
    OtherLine,
    recognised,
)
from evictstream.kit.recordings.audit_log import AuditChange, read_audit_event
from evictstream.kit.recordings.entries import Flaw, Item, Skipped
from evictstream.kit.recordings.kubernetes_lists import ListedObjects
from evictstream.kit.recordings.watch_files import read_watch_event
from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable

RecordedChange: TypeAlias = Item | AuditChange

OTHER_LINES: Final = "other lines of logs"
EMPTY_FILES: Final = "empty files"
NO_OBJECT: Final = "JSON that is no object"


def read_items(source: str, stream: BinaryIO) -> Iterator[RecordedChange]:
    """Read one file to its end.

    Args:
        source: its name, for people.
        stream: its bytes, packed or not.

    Raises:
        ObjectFileError: it is of a kind that is known and not read.
        RecordingError: it cannot be read any further.
    """
    objects, is_empty = ListedObjects(source), True
    for item in recognised(pieces_of(source, stream)):
        is_empty = False
        match item:
            case KubernetesObject():
                yield objects.read(item)
            case ChangeOfWatch(line, text):
                yield read_watch_event(source, line, text)
            case AuditEvent(line, text):
                yield _audit_event(source, line, text)
            case OtherLine(line):
                yield Skipped(source, line, OTHER_LINES)
            case NoObject(line):
                yield Flaw(source, line, NO_OBJECT)
            case EndOfList():
                pass
            case Broken(line, problem, lines):
                yield Flaw(source, line, problem, lines)
    if is_empty:
        yield Skipped(source, 1, EMPTY_FILES)


def _audit_event(source: str, line: int, text: bytes) -> RecordedChange:
    try:
        return read_audit_event(source, line, text)
    except DECODE_ERRORS as error:
        return Flaw(source, line, str(unreadable(error)))
