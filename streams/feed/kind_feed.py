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

import msgspec
import structlog

from evictstream.models.shallow_json import MOST_LEVELS, SplitItem, shallow
from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError, KubernetesError
from evictstream.streams.feed.json_pieces import piece
from evictstream.streams.feed.list_reader import ListReader, PageEnd
from evictstream.streams.feed.object_writer import KindCounts, ObjectWriter
from evictstream.streams.feed.progress import Progress
from evictstream.streams.feed.unread_objects import UnreadObject, identify, read_anyway
from evictstream.streams.feed.watched_objects import BROKEN, PATHS, Kind, number, read_line, read_object, read_version
from evictstream.streams.kubernetes.backoff import Backoff
from evictstream.streams.kubernetes.connection import Connection, Status

log = structlog.get_logger(__name__)

WATCH_SECONDS: Final = 12.0
"""The API server ends each watch after so long, and half as much more by chance. A quiet watch shows how far its cache
has come in a bookmark 2 s before its end, and at no other time within a minute."""

SHORTEST_WATCH_SECONDS: Final = 0.5
"""A watch that ends sooner is a failure, so that no server makes the feed open one after the other without a pause."""

QUIET_SECONDS: Final = 15.0
"""A connection without a byte for that long beyond the end of its watch is dead."""

LISTING_SHARE: Final = 10
"""Between the begins of two listings are at least so many times what the first one took, where watches are of no use:
else a cluster would be listed without a pause."""

LONGEST_PAUSE_SECONDS: Final = 600.0
"""The most of it: what changes meanwhile is not seen."""

LOOK_SECONDS: Final = 0.2
"""Between looks at the stop while it pauses."""

NAMED_OBJECTS: Final = 10
"""Objects of a listing that a log line names because they cannot be read. All are counted."""

TOO_LATE_TO_RESUME: Final = 410


class KindFeed(threading.Thread):
    """The thread. It ends when `is_stopped` says so, or with an error that is kept in `failure`.

    Attributes:
        kind: which.
        progress: how far it has come.
        reader: of its lists.
        failure: what ended it.
    """

    def __init__(
        self,
        kind: Kind,
        *,
        connection: Connection,
        writer: ObjectWriter,
        is_stopped: Callable[[], bool],
        before_listing: Callable[[], object],
    ) -> None:
        super().__init__(name=f"{writer.cluster} {kind}", daemon=True)
        self.kind: Kind = kind
        self.progress = Progress()
        self.reader = ListReader(connection, PATHS[kind])
        self.failure: BaseException | None = None
        self._connection = connection
        self._writer = writer
        self._counts: KindCounts = writer.counts
        self._is_stopped = is_stopped
        self._before_listing = before_listing
        self._version = ""
        self._lists_from = 0.0
        self._unread = 0  # of the listing
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
                self._say(error, is_new=not is_failing)
                is_failing = True
                self._pause(pause_seconds(error, backoff))
            except BaseException as error:  # noqa: BLE001 - raised again by the session
                self.failure = error
                return
            else:
                if is_failing:
                    self._log.info("the API server serves again")
                is_failing = False
                backoff.reset()
            if self._counts.watches > watches and self.progress.is_behind(time.monotonic()):
                self.progress.stand_still()
                self._list_again("a watch shows nothing of what etcd has had for long")

    def _follow(self) -> None:
        if not self._version:
            self._list()
        if self._version:  # else it was stopped before its listing was complete
            self._watch()

    def _say(self, error: KubernetesError, *, is_new: bool) -> None:
        if _is_too_late(error):
            self._list_again("the API server cannot resume")
            self._lists_from = 0.0  # it says so itself
        elif is_new:
            self._log.warning("the API server does not serve", error=str(error))

    def _list_again(self, why: str) -> None:
        if self._version:
            self._log.warning(f"lists again: {why}", version=self._version)
        self._version = ""

    def _list(self) -> None:
        """Write every object, then which there are. The list is consistent: all pages are of one version."""
        self._pause(self._lists_from - time.monotonic())
        self._before_listing()
        if self._is_stopped():
            return
        began_us, began = _now_us(), time.monotonic()
        uids: dict[str, list[str]] = {}
        version, token, self._unread = "", "", 0
        count = 0
        while True:
            held: list[tuple[str, str]] = []
            page = self._page(token, held, count)
            if page is None or self._is_stopped():
                return
            for node, uid in held:
                if node:
                    uids.setdefault(node, []).append(uid)
            count += len(held)
            version, token = version or page.version, page.token
            if not token:
                break
        self._writer.write_listed(_now_us(), version, uids)
        self._counts.listings += 1
        self._counts.objects = count
        self._version = version
        self.progress.list_complete(number(version), began_us)
        seconds = time.monotonic() - began
        self._lists_from = began + min(LISTING_SHARE * seconds, LONGEST_PAUSE_SECONDS)
        self._log.info("listed", objects=count, version=version, seconds=round(seconds, 3), unread=self._unread)

    def _page(self, token: str, held: list[tuple[str, str]], position: int) -> PageEnd | None:
        """Read a page, again and again with its token while the API server does not serve; None if stopped.

        Args:
            token: of the page.
            held: gets node and UID of each item.
            position: of its first item in the list.

        Raises:
            ApiRefusedError: 410, the token has expired.
        """
        backoff = Backoff()
        is_failing = False
        while not self._is_stopped():
            held.clear()
            try:
                return self.reader.page(token, lambda item: held.append(self._take_item(item, position + len(held))))
            except KubernetesError as error:
                if _is_too_late(error):
                    raise
                if not is_failing:
                    self._log.warning("a page of the list is asked for again", error=str(error))
                is_failing = True
                self._pause(pause_seconds(error, backoff))
        return None

    def _take_item(self, item: SplitItem, position: int) -> tuple[str, str]:
        """Write an item of a list; returns node and UID, both empty where they cannot be found."""
        text = item.text
        found = None
        if item.is_whole:
            try:
                found = read_object(self.kind, text)
            except BROKEN:
                found, text = read_anyway(self.kind, text)
        if found is not None:
            self._writer.write("ADDED", found, text, _now_us())
            return found.node, found.uid
        unread = identify(self.kind, text)
        self._unread += 1
        if self._unread <= NAMED_OBJECTS:
            self._say_unread(unread, position=position, bytes=len(text))
        self._counts.unread += 1
        return (unread.node, unread.uid) if unread.uid else ("", "")

    def _watch(self) -> None:
        seconds = WATCH_SECONDS * random.uniform(1, 1.5)  # noqa: S311 - no secret
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(seconds)),
        }
        with self._connection.watch(PATHS[self.kind], query, quiet_seconds=seconds + QUIET_SECONDS) as lines:
            self._counts.watches += 1
            opened_at = time.monotonic()
            for line in lines:
                if self._is_stopped():
                    return
                self._take(line)
        if time.monotonic() - opened_at < SHORTEST_WATCH_SECONDS:
            raise ApiUnreachableError(host=self._connection.host, reason="watches end at once")

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
        found = read_line(line)
        if found.type == "ERROR":
            status = msgspec.json.decode(found.object, type=Status)
            raise ApiRefusedError(
                host=self._connection.host, path=PATHS[self.kind], status=status.code, reason=status.message
            )
        if found.type == "BOOKMARK":
            self._reach(read_version(found.object))
        elif found.type in self._counts.events:
            watched = read_object(self.kind, found.object)
            self._writer.write(found.type, watched, found.object, _now_us())
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
            raise ApiUnreachableError(host=self._connection.host, reason="a line cannot be read") from error
        type_, found = piece(line, b"type"), piece(line, b"object")
        unread = identify(self.kind, b"" if found is None else found.value)
        try:
            is_known = type_ is not None and type_.text in self._counts.events and number(unread.version) > 0
        except BROKEN:
            is_known = False
        if not is_known or type_ is None:
            self._list_again("what a line of the watch is about cannot be found")
            raise ApiUnreachableError(host=self._connection.host, reason="a line cannot be read") from error
        self._counts.unread += 1
        self._say_unread(unread, type=type_.text, error=str(error), bytes=len(line))
        if type_.text == "DELETED" and unread.uid and unread.node:
            text = unread.as_json(self.kind)
            self._writer.write("DELETED", read_object(self.kind, text), text, _now_us())
        self._reach(unread.version)

    def _say_unread(self, unread: UnreadObject, **more: object) -> None:
        self._log.warning(
            "passes over an object that cannot be read",
            namespace=unread.namespace,
            name=unread.name,
            uid=unread.uid,
            **more,
        )

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._is_stopped():
            time.sleep(min(left, LOOK_SECONDS))


def pause_seconds(error: KubernetesError, backoff: Backoff) -> float:
    """Return how long to wait after an error: at least what the API server asks for."""
    asked = error.retry_after_seconds if isinstance(error, ApiRefusedError) else None
    return max(backoff.next_seconds(), asked or 0.0)


def _is_too_late(error: KubernetesError) -> bool:
    return isinstance(error, ApiRefusedError) and error.status == TOO_LATE_TO_RESUME


def _now_us() -> int:
    return time.time_ns() // 1000
