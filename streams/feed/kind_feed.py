"""Follows the nodes or the pods of one cluster: lists them, then watches from there; a thread of its own.

A watch that ends or breaks is opened again where it stood, and the API server sends what was missed. Only where it
cannot (410: what happened since is forgotten), or shows nothing of what happens, the kind is listed again. What
vanished meanwhile is in no event, so each listing ends with `LISTED`. Nothing of what was written is remembered here
but the newest resource version.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

from evictstream.models.kubernetes.shapes import Kind
from evictstream.models.shallow_json import MOST_LEVELS, shallow
from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError, KubernetesError
from evictstream.streams.feed.json_pieces import piece
from evictstream.streams.feed.list_reader import ListReader
from evictstream.streams.feed.listing import CompleteListing, KindListing, is_too_late, now_us, pause, pause_seconds
from evictstream.streams.feed.object_writer import KindCounts, ObjectWriter
from evictstream.streams.feed.progress import Progress
from evictstream.streams.feed.relisting import LISTING_SHARE, Relisting
from evictstream.streams.feed.unread_objects import identify
from evictstream.streams.feed.watched_objects import (
    BROKEN,
    PATHS,
    number,
    read_bookmark_version,
    read_line,
    read_object,
)
from evictstream.streams.feed.write_order import WriteOrder
from evictstream.streams.kubernetes.answers import decode_status
from evictstream.streams.kubernetes.backoff import Backoff
from evictstream.streams.kubernetes.connection import Connection

log = structlog.get_logger(__name__)

WATCH_SECONDS: Final = 12.0
"""The API server ends each watch after so long, and half as much more by chance. A quiet watch shows how far its cache
has come in a bookmark 2 s before its end, and at no other time within a minute."""

GATHER_SECONDS: Final[dict[Kind, float]] = {"Node": 0.0, "Pod": 0.25}
"""How long changes gather after one was read. In a storm each pod has three or four, a hundred a second, and one by
itself costs feed, Kafka and worker several times as much as one of ten. A taint is not kept waiting."""

SHORTEST_WATCH_SECONDS: Final = 0.5
"""A watch that ends sooner is a failure, so that no server makes the feed open one after the other without a pause."""

_QUIET_SECONDS: Final = 15.0
"""A connection without a byte for that long beyond the end of its watch is dead."""

_LONGEST_PAUSE_SECONDS: Final = 600.0
"""The most of `LISTING_SHARE`'s pause where watches are of no use: what changes meanwhile is not seen."""


class KindFeed(threading.Thread):
    """The thread. It ends when `is_stopped` says so, or with an error that is kept in `failure`.

    Attributes:
        kind: which.
        progress: how far it has come.
        reader: of its lists.
        failure: what ended it.
        trouble: what the API server said or did last, if it has not answered since; for people.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        connection: Connection,
        writer: ObjectWriter,
        is_stopped: Callable[[], bool],
        before_listing: Callable[[], object],
        relist_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the thread.

        Args:
            kind: which.
            connection: to the API server.
            writer: to the topic.
            is_stopped: ends the thread.
            before_listing: asked before each listing that the watch waits for; may stop the thread.
            relist_seconds: most between two listings, also where the watch is fine.
            clock: monotonic, in seconds: when it is time to list again.
        """
        super().__init__(name=f"{writer.cluster} {kind}", daemon=True)
        self.kind: Kind = kind
        self.progress = Progress()
        self.reader = ListReader(connection, PATHS[kind])
        self.failure: BaseException | None = None
        self.trouble = ""
        self._connection = connection
        self._writer = writer
        self._counts: KindCounts = writer.counts
        self._is_stopped = is_stopped
        self._before_listing = before_listing
        self._version = ""
        self._lists_from = 0.0
        self._order = WriteOrder()
        self._relisting = Relisting(
            name=f"{writer.cluster} {kind} listing", seconds=relist_seconds, clock=clock, run=self._list_beside_watch
        )
        self._log = log.bind(cluster=writer.cluster, kind=kind)

    def run(self) -> None:
        """List and watch until stopped; wait a little after each failure of the API server."""
        backoff = Backoff()
        is_failing = False
        while not self._is_stopped():
            watches = self._counts.watches
            try:
                self._follow()
            except KubernetesError as error:
                if self._is_stopped():  # the watch was open until now, and how it ends concerns nothing any more
                    return
                self.trouble = str(error)
                self._say(error, is_new=not is_failing)
                is_failing = True
                pause(pause_seconds(error, backoff), self._is_stopped)
            except BaseException as error:  # noqa: BLE001 - raised again by the session
                self.failure = error
                return
            else:
                if is_failing:
                    self._log.info("API server available again")
                is_failing = False
                self.trouble = ""
                backoff.reset()
            if self._counts.watches > watches and self.progress.is_behind(time.monotonic()):
                self.progress.stand_still()
                self._list_again("watch lags behind etcd")
            self._relisting.begin_if_due()
            if self._relisting.failure is not None:
                self.failure = self._relisting.failure
                return

    def _follow(self) -> None:
        if not self._version:
            self._list()
        if self._version:  # else it was stopped before its listing was complete
            self._watch()

    def _say(self, error: KubernetesError, *, is_new: bool) -> None:
        if is_too_late(error):
            self._list_again("API server cannot resume the watch")
            self._lists_from = 0.0  # it says so itself
        elif is_new:
            self._log.warning("API server unavailable", error=str(error))

    def _list_again(self, why: str) -> None:
        if self._version:
            self._log.warning("listing again", reason=why, version=self._version)
        self._version = ""
        self._relisting.abandon()

    def _list(self) -> None:
        """List, with nothing beside it, and watch from there."""
        pause(self._lists_from - time.monotonic(), self._is_stopped)
        self._before_listing()
        if self._is_stopped() or (listing := self._listing(self.reader, self._is_stopped).run()) is None:
            return
        self._version = listing.version
        self.progress.list_complete(number(listing.version), listing.began_us)
        self._lists_from = (
            time.monotonic() - listing.seconds + min(LISTING_SHARE * listing.seconds, _LONGEST_PAUSE_SECONDS)
        )
        self._take_listing(listing, "listed")
        self._relisting.listed(listing.seconds)

    def _list_beside_watch(self, is_abandoned: Callable[[], bool]) -> CompleteListing | None:
        """List while the watch goes on, which alone proves that nothing is missed."""
        reader = ListReader(self._connection, PATHS[self.kind])
        listing = self._listing(reader, lambda: is_abandoned() or self._is_stopped())
        try:
            with self._order.beside_watch():
                complete = listing.run()
        except KubernetesError as error:
            if not self._is_stopped():
                self._log.warning("background listing failed, will be retried", error=str(error))
            raise
        if complete is not None and not is_abandoned():
            self.progress.listed_beside(complete.began_us)
            self._take_listing(complete, "listed during the watch")
        return complete

    def _listing(self, reader: ListReader, is_stopped: Callable[[], bool]) -> KindListing:
        return KindListing(
            self.kind, reader=reader, writer=self._writer, order=self._order, is_stopped=is_stopped, log=self._log
        )

    def _take_listing(self, listing: CompleteListing, what: str) -> None:
        self._counts.listings += 1
        self._counts.objects = listing.objects
        seconds = round(listing.seconds, 3)
        self._log.info(what, objects=listing.objects, version=listing.version, seconds=seconds, unread=listing.unread)

    def _watch(self) -> None:
        seconds = WATCH_SECONDS * random.uniform(1, 1.5)  # noqa: S311 - no secret
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(seconds)),
        }
        with self._connection.watch(
            PATHS[self.kind],
            query,
            quiet_seconds=seconds + _QUIET_SECONDS,
            gather_seconds=GATHER_SECONDS[self.kind],
        ) as lines:
            self._counts.watches += 1
            opened_at = time.monotonic()
            for line in lines:
                if self._is_stopped():
                    return
                self._take(line)
        if time.monotonic() - opened_at < SHORTEST_WATCH_SECONDS:
            raise ApiUnreachableError(host=self._connection.host, reason="watches end immediately")

    def _take(self, line: bytes) -> None:
        try:
            self._apply(line)
        except BROKEN:
            try:
                self._apply(shallow(line, most_levels=MOST_LEVELS + 1))
            except BROKEN as error:
                self._counts.broken += 1
                self._pass_over(line, error)

    def _apply(self, line: bytes) -> None:
        change = read_line(line)
        if change.type == "ERROR":
            status = decode_status(change.object)
            raise ApiRefusedError(
                host=self._connection.host, path=PATHS[self.kind], status=status.code, reason=status.message
            )
        if change.type == "BOOKMARK":
            self._reach(read_bookmark_version(change.object))
        elif change.type in self._counts.events:
            watched = read_object(self.kind, change.object)
            with self._order.of_watch(watched.uid, number(watched.version)):
                self._writer.write(change.type, watched, change.object, now_us())
            self._reach(watched.version)

    def _reach(self, version: str) -> None:
        """Go on behind a version; a cache that lags behind the listing shows lower ones."""
        if number(version) > number(self._version):
            self._version = version
        self.progress.show(number(version))

    def _pass_over(self, line: bytes, error: Exception) -> None:
        """Ask for a line that cannot be read once more, and pass it over when it comes the second time.

        Raises:
            ApiUnreachableError: the watch has to be opened again, or the kind to be listed.
        """
        if not self.progress.is_outstanding:
            self.progress.miss()
            raise ApiUnreachableError(host=self._connection.host, reason="unreadable line in the watch") from error
        type_, content = piece(line, b"type"), piece(line, b"object")
        unread = identify(self.kind, b"" if content is None else content.value)
        try:
            is_known = type_ is not None and type_.text in self._counts.events and number(unread.version) > 0
        except BROKEN:
            is_known = False
        if not is_known or type_ is None:
            self._list_again("watch line without an object")
            raise ApiUnreachableError(host=self._connection.host, reason="unreadable line in the watch") from error
        with self._order.of_watch():
            self._counts.unread += 1
        unread.say(self._log, type=type_.text, error=str(error), bytes=len(line))
        if type_.text == "DELETED" and unread.uid and unread.node:
            text = unread.as_json(self.kind)
            gone = read_object(self.kind, text)
            with self._order.of_watch(gone.uid, number(gone.version)):
                self._writer.write("DELETED", gone, text, now_us())
        self._reach(unread.version)
