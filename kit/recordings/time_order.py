"""What files hold in another order than that of time, sorted on disk: exports of log stores have the newest line first.

A file whose times go back a little is left alone: clocks do that, and its own order says more.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from evictstream.kit.recordings.audit_log import AuditChange
from evictstream.kit.recordings.entries import Entry
from evictstream.kit.recordings.item_reader import RecordedChange
from evictstream.models.instants import FIRST_INSTANT_US
from evictstream.models.messages.envelope import DECODE_ERRORS

BACK_US: Final = 5_000_000
"""So far times may go back in a file that counts as sorted. API servers write a line when its answer is complete, which
takes milliseconds."""

MEMORY_KIB: Final = 16_384
"""Held while sorting; the rest is in a file without a name, in SQLite's folder for such (`SQLITE_TMPDIR`, `TMPDIR`)."""

_LARGEST_INTEGER: Final = 2**63 - 1


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata | None = None


_object: Final = msgspec.json.Decoder(_Object)
_entry: Final = msgspec.json.Decoder(Entry)
_change: Final = msgspec.json.Decoder(AuditChange)


class OrderCheck:
    """Looks at the items of a file, one after the other.

    Attributes:
        is_out_of_order: its times go back, and not because a clock was set back.
    """

    def __init__(self) -> None:
        self.is_out_of_order = False
        self._newest: Entry | AuditChange | None = None
        self._newest_us = FIRST_INSTANT_US

    def look_at(self, item: RecordedChange) -> None:
        """Look at the next one. Where versions went on while times went back, it was a clock."""
        at_us = time_of(item)
        if at_us is None or not isinstance(item, Entry | AuditChange):
            return
        if at_us >= self._newest_us:
            self._newest, self._newest_us = item, at_us
        elif at_us < self._newest_us - BACK_US and self._newest is not None and not self.is_out_of_order:
            before, now = _version(self._newest), _version(item)
            self.is_out_of_order = not before or not now or now < before


def time_of(item: object) -> int | None:
    """Return the recorded time of an item, microseconds since 1970; None if it has none."""
    match item:
        case Entry():
            return item.observed_at_us
        case AuditChange():
            return item.at_us
        case _:
            return None


def sorted_by_time(items: Iterable[RecordedChange]) -> Iterator[RecordedChange]:
    """Give items by time, those of one instant by their version; what has no time keeps the place after the one before.

    What is left out or cannot be read comes first, since nothing depends on its place.
    """
    with contextlib.closing(sqlite3.connect("", isolation_level=None)) as table:
        for pragma in (f"cache_size = -{MEMORY_KIB}", "journal_mode = OFF", "synchronous = OFF", "temp_store = FILE"):
            table.execute(f"PRAGMA {pragma}")
        table.execute("CREATE TABLE item (at INTEGER, version INTEGER, is_entry INTEGER, value BLOB)")
        table.execute("BEGIN")
        at_us = FIRST_INSTANT_US
        for item in items:
            if not isinstance(item, Entry | AuditChange):
                yield item
                continue
            at_us = time_of(item) or at_us
            row = at_us, min(_version(item), _LARGEST_INTEGER), isinstance(item, Entry), msgspec.json.encode(item)
            table.execute("INSERT INTO item VALUES (?, ?, ?, ?)", row)
        for is_entry, value in table.execute("SELECT is_entry, value FROM item ORDER BY at, version, rowid"):
            yield (_entry if is_entry else _change).decode(value)


def _version(item: Entry | AuditChange) -> int:
    if isinstance(item, AuditChange):
        return item.version
    try:
        metadata = _object.decode(item.object).metadata
    except DECODE_ERRORS:
        return 0
    version = "" if metadata is None else metadata.resource_version
    return int(version) if version.isascii() and version.isdecimal() else 0
