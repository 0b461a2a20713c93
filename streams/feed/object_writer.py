"""Writes the objects of one kind of a cluster to their topic, as large as Kafka takes them, and counts what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from evictstream.models.kubernetes.shapes import Kind
from evictstream.streams.feed.feed_records import FeedRecords
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.feed.watched_objects import WatchedObject, only_what_decides

log = structlog.get_logger(__name__)

_EVENTS: Final = ("ADDED", "MODIFIED", "DELETED")


class KindCounts:
    """What one kind has done, for metrics; only its threads write, one after the other (`WriteOrder`).

    Attributes:
        events: changes written, by type.
        unbound: pods without a node, which are not written.
        broken: lines of a watch that could not be read.
        unread: objects that were passed over because they cannot be read.
        oversized: objects of which Kafka takes not even what decides; only who they are is written.
        listings: complete listings.
        watches: watches that were opened.
        objects: in the newest listing.
    """

    def __init__(self) -> None:
        self.events = dict.fromkeys(_EVENTS, 0)
        self.unbound = 0
        self.broken = 0
        self.unread = 0
        self.oversized = 0
        self.listings = 0
        self.watches = 0
        self.objects = 0


class ObjectWriter:
    """Writes changes and listings of one kind.

    Attributes:
        cluster: whose.
        counts: what was done.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        publisher: Publisher,
        topic: str,
        records: FeedRecords,
        may_write: Callable[[], bool],
        keep_whole: bool,
        largest_bytes: int,
        counts: KindCounts,
    ) -> None:
        """Take what the feed has; `may_write` waits while another one may write, and is False after the session."""
        self.cluster = records.cluster
        self.counts = counts
        self._kind = kind
        self._publisher = publisher
        self._topic = topic
        self._records = records
        self._may_write = may_write
        self._keep_whole = keep_whole
        self._largest_bytes = largest_bytes
        self._heads = {name: records.head(name) for name in _EVENTS}
        self._log = log.bind(cluster=records.cluster, kind=kind)

    def write(self, type_: str, watched: WatchedObject, text: bytes | msgspec.Raw, at_us: int) -> None:
        """Write a change.

        Args:
            type_: `ADDED`, `MODIFIED` or `DELETED`.
            watched: the object, trimmed.
            text: the object as it came.
            at_us: when it came, microseconds since 1970.
        """
        if not watched.node:
            self.counts.unbound += 1
            return
        if not self._may_write():
            return
        value = self._records.change(self._heads[type_], at_us, watched.json)
        if self._keep_whole:
            whole = self._records.change(self._heads[type_], at_us, _with_kind(self._kind, bytes(text)))
            value = whole if len(whole) <= self._largest_bytes else value
        if len(value) > self._largest_bytes:
            value = self._smaller(type_, watched, at_us)
        self._publisher.send(self._topic, self._records.key, value)
        self.counts.events[type_] += 1

    def write_listed(self, at_us: int, version: str, uids: dict[str, list[str]]) -> None:
        """Write what a complete listing holds, by node."""
        for value in self._records.listed(at_us, version, uids):
            if self._may_write():
                self._publisher.send(self._topic, self._records.key, value)

    def _smaller(self, type_: str, watched: WatchedObject, at_us: int) -> bytes:
        """Leave out what decides nothing; if that does not do, say who it is, and that nothing can be decided."""
        value = self._records.change(self._heads[type_], at_us, only_what_decides(self._kind, watched.json))
        if len(value) <= self._largest_bytes:
            return value
        self.counts.oversized += 1
        self._log.warning("object too large for Kafka, written as undecidable", uid=watched.uid, bytes=len(value))
        kept = only_what_decides(self._kind, watched.json, is_undecidable=True)
        return self._records.change(self._heads[type_], at_us, kept)


def _with_kind(kind: Kind, text: bytes) -> bytes:
    """Give an item of a list its kind, which only objects that are read alone have."""
    if text.startswith(b'{"kind"'):
        return text
    return b'{"kind":"%s","apiVersion":"v1",' % kind.encode() + text.lstrip()[1:]
