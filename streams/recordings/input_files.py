"""Files and folders with recordings, opened together and read as one stream by recorded time.

What comes out of a pipe without recorded times counts as a live watch. Unlike a recording it is never complete, so its
end is reported as `WatchEnded`.
"""

from __future__ import annotations

import contextlib
import heapq
import io
import os
import stat
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias, TypeVar, cast

import msgspec

from evictstream.models.instants import FIRST_INSTANT_US
from evictstream.streams.errors import WrongUseError
from evictstream.streams.recordings.assumed_times import AssumedTimes, latest_in_lists_us
from evictstream.streams.recordings.audit_log import AuditChange, is_audit_log, read_audit_log
from evictstream.streams.recordings.audit_order import in_order
from evictstream.streams.recordings.audited_objects import AuditedObjects
from evictstream.streams.recordings.entries import Entry, Flaw, Item, Kind, Skipped, WatchEnded
from evictstream.streams.recordings.recording_folder import read_folder
from evictstream.streams.recordings.watch_files import READ_BYTES, decompressed, read_recording, read_watch_event

STDIN: Final = "-"

_MILLISECOND_US: Final = 1_000

_T = TypeVar("_T")
_Items: TypeAlias = Iterator[Item | WatchEnded]


@contextlib.contextmanager
def open_recordings(names: Iterable[str], times: AssumedTimes | None = None) -> Iterator[_Items]:
    """Open all recordings and give what is in them, as one stream ordered by recorded time.

    What has no time, and gets none, keeps the place after its predecessor in its file; files without any come one after
    the other.

    Args:
        names: paths of files, or of folders of `evictstream record`; `-` is standard input.
        times: gives times to what has none; without it nothing does.

    Raises:
        WrongUseError: a file cannot be opened. While reading also `RecordingError`, and what `times` raises.
    """
    with contextlib.ExitStack() as stack:
        opened = [_Opened(name, stack) for name in names]
        yield _joined(opened, times)


def latest_listed_us(names: Iterable[str]) -> int | None:
    """Read the lists with which files begin, for the latest instant in them; None if there are none."""
    with contextlib.ExitStack() as stack:
        opened = [_Opened(name, stack) for name in names]
        return latest_in_lists_us(one.items() for one in opened if not one.is_audit_log())


class _Opened:
    """A file or a folder; nothing is read of it yet, for a pipe may have nothing to read for long."""

    def __init__(self, name: str, stack: contextlib.ExitStack) -> None:
        self.source = "stdin" if name == STDIN else name
        self._file: io.BufferedReader | None = None
        self._is_live = False
        if name == STDIN or not Path(name).is_dir():
            file = stack.enter_context(_open(name))
            self._file = file
            # A file is a finished recording; a pipe may be a live watch.
            self._is_live = not stat.S_ISREG(os.fstat(file.fileno()).st_mode)

    def is_audit_log(self) -> bool:
        """Tell by the beginning of the file, which may have to be waited for."""
        if self._file is None:
            return False
        try:
            self._file = decompressed(self._file)
            return is_audit_log(self._file.peek(READ_BYTES))
        except (OSError, EOFError, zlib.error):
            return False  # whoever reads it says what is wrong

    def items(self) -> _Items:
        """Give what is in it, if it is no audit log."""
        if self._file is None:
            return read_recorded_changes(Path(self.source))
        items = read_recording(self.source, self._file)
        return _with_its_end(self.source, items) if self._is_live else items

    def changes(self) -> Iterator[AuditChange | Skipped | Flaw]:
        """Give what is in it, if it is an audit log."""
        assert self._file is not None  # noqa: S101 - no folder is an audit log
        return read_audit_log(self.source, self._file)


def _joined(opened: Sequence[_Opened], times: AssumedTimes | None) -> _Items:
    logs: list[_Opened] = []
    others: list[_Items] = []
    for one in opened:
        if one.is_audit_log():
            logs.append(one)
        else:
            others.append(one.items() if times is None else times.stamped(one.items()))
    if not logs:
        yield from _merged(others)
        return
    # Several API servers serve one cluster, so what one has created another one deletes.
    audited = in_order(_merged(log.changes() for log in logs))
    yield from AuditedObjects().entries(_merged([*others, audited]))


def _with_its_end(source: str, items: Iterator[Item]) -> _Items:
    kinds: set[Kind] = set()
    is_silent = True
    for item in items:
        is_silent = False
        if isinstance(item, Entry) and item.observed_at_us is None and not item.is_listed:
            kinds.add(item.kind)
        yield item
    if kinds or is_silent:
        yield WatchEnded(source, tuple(sorted(kinds)))


def read_recorded_changes(folder: Path) -> Iterator[Item]:
    """Give the nodes and pods of a recording of topics; all else in it is left out, by the name of its topic.

    What names no time has its append time.
    """
    lines: Counter[str] = Counter()
    for record in read_folder(folder):
        name = f"{folder}/{record.topic}-{record.partition:05}"
        lines[name] += 1
        if record.topic not in {"nodes", "pods"}:
            yield Skipped(name, lines[name], record.topic)
        elif record.value is None:
            yield Flaw(name, lines[name], "no value")
        else:
            item = read_watch_event(name, lines[name], record.value)
            if isinstance(item, Entry) and item.observed_at_us is None:
                item = msgspec.structs.replace(item, observed_at_us=record.timestamp * _MILLISECOND_US)
            if item is not None:
                yield item


def _merged(recordings: Iterable[Iterator[_T]]) -> Iterator[_T]:
    """Join recordings by recorded time; each keeps its own order, even where its times go back."""
    return (item for _, item in heapq.merge(*map(_with_times, recordings), key=lambda pair: pair[0]))


def _with_times(recording: Iterator[_T]) -> Iterator[tuple[int, _T]]:
    latest_us = FIRST_INSTANT_US
    for item in recording:
        if isinstance(item, Entry) and item.observed_at_us is not None:
            latest_us = max(latest_us, item.observed_at_us)
        elif isinstance(item, AuditChange):
            latest_us = max(latest_us, item.at_us)
        yield latest_us, item


@contextlib.contextmanager
def _open(name: str) -> Iterator[io.BufferedReader]:
    if name == STDIN:
        yield cast("io.BufferedReader", sys.stdin.buffer)
        return
    try:
        file = Path(name).open("rb", buffering=READ_BYTES)  # noqa: SIM115 - entered below: errors there are others
    except OSError as error:
        raise WrongUseError(f"cannot open {name}: {error.strerror}") from error
    with file:
        yield cast("io.BufferedReader", file)  # what `open` gives for bytes, unless its buffer is 0
