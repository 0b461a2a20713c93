"""Files and folders with recordings, read together as one stream by recorded time.

What comes out of a pipe without recorded times counts as a live watch. Unlike a recording it is never complete, so its
end is reported as `WatchEnded`.
"""

from __future__ import annotations

import contextlib
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from evictstream.kit.inputs.decoding import PACKED_ERRORS, decoded
from evictstream.kit.inputs.opening import READ_BYTES, Input, live
from evictstream.kit.recordings.assumed_times import AssumedTimes, latest_instant_us
from evictstream.kit.recordings.audit_log import AuditChange, is_audit_log
from evictstream.kit.recordings.audit_order import in_order
from evictstream.kit.recordings.audited_objects import AuditedObjects
from evictstream.kit.recordings.entries import Entry, Flaw, Item, Skipped, WatchEnded
from evictstream.kit.recordings.item_reader import EMPTY_FILES, RecordedChange, read_items
from evictstream.kit.recordings.recording_folder import read_folder
from evictstream.kit.recordings.time_order import OrderCheck, sorted_by_time, time_of
from evictstream.kit.recordings.watch_files import read_watch_event
from evictstream.models.instants import FIRST_INSTANT_US
from evictstream.models.kubernetes.shapes import Kind

LATE_EVENT: Final = "an audit event after other input in a pipe; give the audit log as a file"

_T = TypeVar("_T")
_Items: TypeAlias = Iterator[Item | WatchEnded]


class Survey(NamedTuple):
    """What has to be known of a file before it is read.

    Attributes:
        has_audit: it holds events of an audit log.
        is_out_of_order: its times go back.
        listed_us: latest instant in the lists with which it begins, microseconds since 1970; None if there is none.
    """

    has_audit: bool = False
    is_out_of_order: bool = False
    listed_us: int | None = None


class InputFiles:
    """Inputs to be read once, or several times if none of them is live."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._inputs = inputs
        self._surveys: dict[Input, Survey] = {}

    def latest_listed_us(self) -> int | None:
        """Return the latest instant in the lists with which files begin; None if there are none."""
        surveys = map(self._survey, self._inputs)
        return max((survey.listed_us for survey in surveys if survey.listed_us is not None), default=None)

    @contextlib.contextmanager
    def opened(self, times: AssumedTimes | None = None) -> Iterator[_Items]:
        """Give what is in all of them, as one stream ordered by recorded time.

        What has no time, and gets none, keeps the place after its predecessor in its file; files without any come one
        after the other.

        Args:
            times: gives times to what has none; without it nothing does.

        Raises:
            WrongUseError: while reading, if a file cannot be opened; also `RecordingError`, and what `times` raises.
        """
        with contextlib.ExitStack() as stack:
            yield self._joined(stack, times)

    def _joined(self, stack: contextlib.ExitStack, times: AssumedTimes | None) -> _Items:
        logs: list[Iterator[RecordedChange | WatchEnded]] = []
        others: list[Iterator[RecordedChange | WatchEnded]] = []
        for input_ in self._inputs:
            if input_.path is not None and input_.path.is_dir():
                others.append(_stamped(read_recorded_changes(input_.path), times))
                continue
            survey = self._survey(input_)
            file = stack.enter_context(input_.open())
            if input_.is_live:
                file, survey = _begun(input_.source, file)
            read = read_items(input_.source, file)
            if survey.is_out_of_order:
                read = sorted_by_time(read)
            items = _with_its_end(input_.source, read) if input_.is_live else read
            (logs if survey.has_audit else others).append(_stamped(items, times))
        # Several API servers serve one cluster, so what one has created another one deletes.
        audited = [in_order(_merged(logs))] if logs else []
        joined = _merged([*others, *audited])
        yield from AuditedObjects().entries(joined) if logs else _without_changes(joined)

    def _survey(self, one: Input) -> Survey:
        """Read a file for what has to be known before; a folder tells all itself, and what is live cannot be asked."""
        if one.is_live or (one.path is not None and one.path.is_dir()):
            return Survey()
        if one not in self._surveys:
            with one.open() as file:
                self._surveys[one] = _survey_of(read_items(one.source, file))
        return self._surveys[one]


def open_recordings(names: Iterable[str]) -> contextlib.AbstractContextManager[_Items]:
    """Open recordings to read them once, and give what is in them, as one stream ordered by recorded time.

    Args:
        names: paths of files, or of folders of `evictstream record`; `-` is standard input.

    Raises:
        WrongUseError: there is nothing of a name. While reading also `RecordingError`.
    """
    return InputFiles(live(names)).opened()


def _without_changes(items: Iterable[RecordedChange | WatchEnded]) -> _Items:
    """Give items of which none is a change of an audit log, unless a pipe shows one behind its beginning."""
    for item in items:
        if isinstance(item, AuditChange):
            yield Flaw(item.source, item.line, LATE_EVENT)
        else:
            yield item


def _begun(source: str, file: BinaryIO) -> tuple[BinaryIO, Survey]:
    """Wait for the beginning of what is live, and tell by it whether it is an audit log."""
    try:
        text = decoded(source, file)
        return text, Survey(has_audit=is_audit_log(text.peek(READ_BYTES)))
    except PACKED_ERRORS:
        return file, Survey()  # whoever reads it says what is wrong


def _survey_of(items: Iterable[RecordedChange]) -> Survey:
    order = OrderCheck()
    has_audit, begins, listed_us = False, True, None
    for item in items:
        order.look_at(item)
        if not isinstance(item, Entry):
            has_audit = has_audit or isinstance(item, AuditChange)
            continue
        begins = begins and item.is_listed
        if begins:
            at_us = latest_instant_us(item.object)
            if at_us is not None and (listed_us is None or at_us > listed_us):
                listed_us = at_us
    return Survey(has_audit, order.is_out_of_order, listed_us)


def _stamped(
    items: Iterable[RecordedChange | WatchEnded], times: AssumedTimes | None
) -> Iterator[RecordedChange | WatchEnded]:
    return iter(items) if times is None else times.stamped(items)


def _with_its_end(source: str, items: Iterable[RecordedChange]) -> Iterator[RecordedChange | WatchEnded]:
    kinds: set[Kind] = set()
    is_silent = False
    for item in items:
        if isinstance(item, Skipped) and item.type == EMPTY_FILES:
            is_silent = True
            continue
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
                item = msgspec.structs.replace(item, observed_at_us=record.appended_us)
            yield item


def _merged(recordings: Iterable[Iterator[_T]]) -> Iterator[_T]:
    """Join recordings by recorded time; each keeps its own order, even where its times go back."""
    return (item for _, item in heapq.merge(*map(_with_times, recordings), key=lambda pair: pair[0]))


def _with_times(recording: Iterator[_T]) -> Iterator[tuple[int, _T]]:
    latest_us = FIRST_INSTANT_US
    for item in recording:
        latest_us = max(latest_us, time_of(item) or latest_us)
        yield latest_us, item
