"""Files and folders with recordings, opened together and read as one stream by recorded time.

What comes out of a pipe without recorded times counts as a live watch. Unlike a recording it is never complete, so its
end is reported as `WatchEnded`.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import msgspec

from evictstream.models.instants import FIRST_INSTANT_US
from evictstream.streams.errors import WrongUseError
from evictstream.streams.recordings.assumed_times import AssumedTimes, latest_in_lists_us
from evictstream.streams.recordings.entries import Entry, Flaw, Item, Kind, Skipped, WatchEnded
from evictstream.streams.recordings.recording_folder import read_folder
from evictstream.streams.recordings.watch_files import READ_BYTES, read_recording, read_watch_event

STDIN: Final = "-"

_MILLISECOND_US: Final = 1_000

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
        recordings = [_read(name, stack) for name in names]
        yield merged(recordings if times is None else map(times.stamped, recordings))


def latest_listed_us(names: Iterable[str]) -> int | None:
    """Read the lists with which files begin, for the latest instant in them; None if there are none."""
    with contextlib.ExitStack() as stack:
        return latest_in_lists_us([_read(name, stack) for name in names])


def _read(name: str, stack: contextlib.ExitStack) -> _Items:
    if name != STDIN and Path(name).is_dir():
        return read_recorded_changes(Path(name))
    source = "stdin" if name == STDIN else name
    file = stack.enter_context(_open(name))
    items = read_recording(source, file)
    # A file is a finished recording; a pipe may be a live watch.
    return items if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else _with_its_end(source, items)


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


def merged(recordings: Iterable[_Items]) -> _Items:
    """Join recordings by recorded time; each keeps its own order, even where its times go back."""
    return (item for _, item in heapq.merge(*map(_with_times, recordings), key=lambda pair: pair[0]))


def _with_times(recording: _Items) -> Iterator[tuple[int, Item | WatchEnded]]:
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
        file = Path(name).open("rb", READ_BYTES)  # noqa: SIM115 - it is entered below, where errors are not about opening
    except OSError as error:
        raise WrongUseError(f"cannot open {name}: {error.strerror}") from error
    with file:
        yield file
