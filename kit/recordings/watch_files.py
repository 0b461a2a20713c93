"""Watch events: evictstream's own (`cluster`, `type`, `observedAt`, `object`), and those that kubectl prints."""

from __future__ import annotations

from typing import Final

import msgspec

from evictstream.kit.recordings.entries import ABSENT, Flaw, Item, Skipped, entry_of
from evictstream.kit.recordings.kubernetes_lists import compact
from evictstream.models.instants import microseconds
from evictstream.models.kubernetes.objects import Moment
from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable
from evictstream.models.messages.vocabulary import EventType

SKIPPED_TYPES: Final = frozenset({"BOOKMARK", "LISTED", "HEARTBEAT", "FORGET", "ACCEPT_GAP"})
"""Lines that are left out. A bookmark changes nothing. A heartbeat would promise a live feed, and hold the cluster's
evictions forever once the recording is over. A listing would end what else is known of the cluster. An operator's
signals are not to be repeated."""

_CHANGES: Final = frozenset(EventType)


class _Line(msgspec.Struct, rename="camel", gc=False):
    type: str | None = None
    object: msgspec.Raw = ABSENT
    cluster: str | None = None
    observed_at: Moment | None = None


_line_decoder: Final = msgspec.json.Decoder(_Line)


def read_watch_event(source: str, line: int, text: bytes) -> Item:
    """Read a watch event, of a feed or of kubectl."""
    try:
        parsed = _line_decoder.decode(compact(text))
    except DECODE_ERRORS as error:
        return Flaw(source, line, str(unreadable(error)))
    if parsed.type in SKIPPED_TYPES:
        return Skipped(source, line, parsed.type)
    if parsed.type is None or parsed.type not in _CHANGES or parsed.object == ABSENT:
        return Flaw(source, line, _no_change(parsed))
    observed_at_us = None if parsed.observed_at is None else microseconds(parsed.observed_at)
    return entry_of(
        parsed.object,
        source=source,
        line=line,
        type_=parsed.type,
        cluster=parsed.cluster,
        observed_at_us=observed_at_us,
    )


def _no_change(line: _Line) -> str:
    if line.type == "ERROR":
        return "the API server reported an error here; what followed until the watch was opened again is missing"
    return "type is not one of a watch event" if line.object != ABSENT else "no object"
