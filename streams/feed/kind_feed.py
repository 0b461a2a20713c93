"""Follows the nodes or the pods of one cluster: lists them, then watches from there; a thread of its own.

A watch that ends or breaks is opened again where it stood, and the API server sends what was missed. Only where it
cannot (410: what happened since is forgotten), the kind is listed again. What vanished meanwhile is in no event, so
each listing ends with `LISTED`. Nothing of what was written is remembered here but the newest resource version.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
import structlog

from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError, KubernetesError
from evictstream.streams.feed.feed_records import FeedRecords
from evictstream.streams.feed.publisher import Publisher
from evictstream.streams.feed.watched_objects import (
    BROKEN,
    Kind,
    Page,
    WatchedObject,
    read_line,
    read_object,
    read_page,
    read_version,
)
from evictstream.streams.kubernetes.backoff import Backoff
from evictstream.streams.kubernetes.connection import Connection, Status

log = structlog.get_logger(__name__)

PAGE_OBJECTS: Final = 500
"""Objects in a page, as kubectl asks for: a page of pods is some 3 MB, and only one is held at a time."""

WATCH_SECONDS: Final = 20.0
"""The API server ends each watch after so long, and half as much more by chance. An open watch that is quiet proves
nothing: only that it can be opened again where it stood shows that nothing was missed."""

SHORTEST_WATCH_SECONDS: Final = 0.5
"""A watch that ends sooner is a failure, so that no server makes the feed open one after the other without a pause."""

QUIET_SECONDS: Final = 15.0
"""A connection without a byte for that long beyond the end of its watch is dead."""

TOO_LATE_TO_RESUME: Final = 410

PATHS: Final[dict[Kind, str]] = {"Node": "/api/v1/nodes", "Pod": "/api/v1/pods"}


class KindCounts:
    """What one kind has done, for metrics; only its thread writes.

    Attributes:
        events: changes written, by type.
        unbound: pods without a node, which are not written.
        broken: lines that could not be read.
        oversized: objects that Kafka would not take; they are not written.
        listings: complete listings.
        watches: watches that were opened.
        objects: in the newest listing.
    """

    def __init__(self) -> None:
        self.events = {"ADDED": 0, "MODIFIED": 0, "DELETED": 0}
        self.unbound = 0
        self.broken = 0
        self.oversized = 0
        self.listings = 0
        self.watches = 0
        self.objects = 0


class Proof(NamedTuple):
    """Up to when nothing can have been missed.

    Attributes:
        at: on the monotonic clock, in seconds.
        listed_at_us: when the newest complete listing began.
        version: the newest resource version.
    """

    at: float
    listed_at_us: int
    version: str


class KindFeed(threading.Thread):
    """The thread. It ends when `is_stopped` says so, or with an error that is kept in `failure`.

    Attributes:
        proof: None before the first listing is complete.
        failure: what ended it.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        connection: Connection,
        publisher: Publisher,
        topic: str,
        records: FeedRecords,
        keep_whole: bool,
        largest_bytes: int,
        counts: KindCounts,
        is_stopped: Callable[[], bool],
        before_listing: Callable[[], object],
    ) -> None:
        super().__init__(name=f"{records.cluster} {kind}", daemon=True)
        self._kind = kind
        self._connection = connection
        self._publisher = publisher
        self._topic = topic
        self._records = records
        self._keep_whole = keep_whole
        self._largest_bytes = largest_bytes
        self._counts = counts
        self._is_stopped = is_stopped
        self._before_listing = before_listing
        self._heads = {name: records.head(name) for name in counts.events}
        self._version = ""
        self._log = log.bind(cluster=records.cluster, kind=kind)
        self.proof: Proof | None = None
        self.failure: BaseException | None = None

    def run(self) -> None:
        """List and watch until stopped; wait a little after each failure of the API server."""
        backoff = Backoff()
        is_failing = False
        while not self._is_stopped():
            try:
                if not self._version:
                    self._list()
                if self._version:  # else it was stopped before its listing was complete
                    self._watch()
            except KubernetesError as error:
                if isinstance(error, ApiRefusedError) and error.status == TOO_LATE_TO_RESUME:
                    self._log.warning("lists again: the API server cannot resume", version=self._version)
                    self._version = ""
                elif not is_failing:
                    self._log.warning("the API server does not serve", error=str(error))
                is_failing = True
                time.sleep(backoff.next_seconds())
            except BaseException as error:  # noqa: BLE001 - raised again by the session
                self.failure = error
                return
            else:
                if is_failing:
                    self._log.info("the API server serves again")
                is_failing = False
                backoff.reset()

    def _list(self) -> None:
        """Write every object, then which there are. The list is consistent: all pages are of one version."""
        self._before_listing()
        if self._is_stopped():
            return
        began_us, began = _now_us(), time.monotonic()
        uids: dict[str, list[str]] = {}
        query, version, count = {"limit": str(PAGE_OBJECTS)}, "", 0
        while True:
            page, objects = self._page(query)
            version = version or page.metadata.resource_version
            at_us = _now_us()
            for found, item in zip(objects, page.items, strict=True):
                self._write("ADDED", found, item, at_us)
                if found.node:
                    uids.setdefault(found.node, []).append(found.uid)
            count += len(page.items)
            if self._is_stopped():
                return
            if not page.metadata.continue_:
                break
            query["continue"] = page.metadata.continue_
        for partition, value in self._records.listed(_now_us(), version, uids, self._publisher.partitions):
            self._publisher.send(self._topic, self._records.whole_key, value, partition)
        self._counts.listings += 1
        self._counts.objects = count
        self._version = version
        self.proof = Proof(time.monotonic(), began_us, version)
        self._log.info("listed", objects=count, version=version, seconds=round(time.monotonic() - began, 3))

    def _page(self, query: dict[str, str]) -> tuple[Page, list[WatchedObject]]:
        text = self._connection.get(PATHS[self._kind], query)
        try:
            page = read_page(text)
            return page, [read_object(self._kind, item) for item in page.items]
        except BROKEN as error:
            raise ApiUnreachableError(host=self._connection.host, reason="a list cannot be read") from error

    def _watch(self) -> None:
        seconds = WATCH_SECONDS * random.uniform(1, 1.5)  # noqa: S311 - no secret
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(seconds)),
        }
        with self._connection.watch(PATHS[self._kind], query, quiet_seconds=seconds + QUIET_SECONDS) as lines:
            self._counts.watches += 1
            opened_at = time.monotonic()
            self._prove()
            for line in lines:
                if self._is_stopped():
                    return
                self._take(line)
        if time.monotonic() - opened_at < SHORTEST_WATCH_SECONDS:
            raise ApiUnreachableError(host=self._connection.host, reason="watches end at once")

    def _take(self, line: bytes) -> None:
        try:
            found = read_line(line)
            if found.type == "ERROR":
                status = msgspec.json.decode(found.object, type=Status)
                raise ApiRefusedError(
                    host=self._connection.host, path=PATHS[self._kind], status=status.code, reason=status.message
                )
            if found.type == "BOOKMARK":
                self._version = read_version(found.object)
            elif found.type in self._heads:
                watched = read_object(self._kind, found.object)
                self._write(found.type, watched, found.object, _now_us())
                self._version = watched.version
        except BROKEN as error:
            self._counts.broken += 1  # the next watch begins where this one stood, so nothing is passed over
            raise ApiUnreachableError(host=self._connection.host, reason="a line cannot be read") from error
        self._prove()

    def _write(self, type_: str, found: WatchedObject, text: msgspec.Raw, at_us: int) -> None:
        if not found.node:
            self._counts.unbound += 1
            return
        value = self._records.change(self._heads[type_], at_us, found.json)
        if self._keep_whole:
            whole = self._records.change(self._heads[type_], at_us, _with_kind(self._kind, bytes(text)))
            value = whole if len(whole) <= self._largest_bytes else value
        if len(value) > self._largest_bytes:
            self._counts.oversized += 1
            self._log.warning("an object is too large to be written", uid=found.uid, bytes=len(value))
            return
        self._publisher.send(self._topic, self._records.key(found.node), value)
        self._counts.events[type_] += 1

    def _prove(self) -> None:
        if self.proof is not None:
            self.proof = Proof(time.monotonic(), self.proof.listed_at_us, self._version)


def _with_kind(kind: Kind, text: bytes) -> bytes:
    """Give an item of a list its kind, which only objects that are read alone have."""
    if text.startswith(b'{"kind"'):
        return text
    return b'{"kind":"%s","apiVersion":"v1",' % kind.encode() + text.lstrip()[1:]


def _now_us() -> int:
    return time.time_ns() // 1000
