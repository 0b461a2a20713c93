"""One listing of a kind: every object is written, then which there are. All pages are of one version."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from evictstream.models.kubernetes.shapes import Kind
from evictstream.models.shallow_json import SplitItem
from evictstream.streams.errors import ApiRefusedError, KubernetesError
from evictstream.streams.feed.list_reader import ListReader, PageEnd
from evictstream.streams.feed.object_writer import ObjectWriter
from evictstream.streams.feed.unread_objects import identify, read_anyway
from evictstream.streams.feed.watched_objects import BROKEN, number, read_object
from evictstream.streams.feed.write_order import WriteOrder
from evictstream.streams.kubernetes.backoff import Backoff

NAMED_OBJECTS: Final = 10
"""Objects of a listing that a log line names because they cannot be read. All are counted."""

TOO_LATE_TO_RESUME: Final = 410

_LOOK_SECONDS: Final = 0.2
"""Between looks at the stop while it pauses."""


class CompleteListing(NamedTuple):
    """What a listing found.

    Attributes:
        version: of the list.
        began_us: before its first page, microseconds since 1970.
        seconds: how long it took.
        objects: items of the list.
        unread: those of them that could not be read.
    """

    version: str
    began_us: int
    seconds: float
    objects: int
    unread: int


class KindListing:
    """Runs once."""

    def __init__(
        self,
        kind: Kind,
        *,
        reader: ListReader,
        writer: ObjectWriter,
        order: WriteOrder,
        is_stopped: Callable[[], bool],
        log: Any,
    ) -> None:
        self._kind: Kind = kind
        self._reader = reader
        self._writer = writer
        self._order = order
        self._is_stopped = is_stopped
        self._log = log
        self._unread = 0

    def run(self) -> CompleteListing | None:
        """Read all pages and write what they hold, then `LISTED`; None if stopped.

        Raises:
            ApiRefusedError: 410, a token has expired. What was written until then does no harm.
        """
        began_us, began = now_us(), time.monotonic()
        uids: dict[str, list[str]] = {}
        version, token, count = "", "", 0
        while True:
            identities: list[tuple[str, str]] = []
            page = self._page(token, identities, count)
            if page is None or self._is_stopped():
                return None
            for node, uid in identities:
                if node:
                    uids.setdefault(node, []).append(uid)
            count += len(identities)
            version, token = version or page.version, page.token
            if not token:
                break
        self._writer.write_listed(now_us(), version, uids)
        return CompleteListing(
            version=version,
            began_us=began_us,
            seconds=time.monotonic() - began,
            objects=count,
            unread=self._unread,
        )

    def _page(self, token: str, identities: list[tuple[str, str]], position: int) -> PageEnd | None:
        """Read a page, again and again with its token while the API server does not serve; None if stopped.

        Args:
            token: of the page.
            identities: gets node and UID of each item.
            position: of its first item in the list.

        Raises:
            ApiRefusedError: 410, the token has expired.
        """
        backoff = Backoff()
        is_failing = False
        while not self._is_stopped():
            identities.clear()
            try:
                return self._reader.page(
                    token, lambda item: identities.append(self._take_item(item, position + len(identities)))
                )
            except KubernetesError as error:
                if is_too_late(error):
                    raise
                if not is_failing:
                    self._log.warning("retrying a page of the list", error=str(error))
                is_failing = True
                pause(pause_seconds(error, backoff), self._is_stopped)
        return None

    def _take_item(self, item: SplitItem, position: int) -> tuple[str, str]:
        """Write an item of a list; returns node and UID, both empty where they cannot be found."""
        if self._is_stopped():
            return "", ""
        text = item.text
        watched = None
        if item.is_whole:
            try:
                watched = read_object(self._kind, text)
            except BROKEN:
                watched, text = read_anyway(self._kind, text)
        if watched is not None:
            with self._order.of_listing(watched.uid, number(watched.version)) as is_newest:
                if is_newest:
                    self._writer.write("ADDED", watched, text, now_us())
            return watched.node, watched.uid
        unread = identify(self._kind, text)
        self._unread += 1
        if self._unread <= NAMED_OBJECTS:
            unread.say(self._log, position=position, bytes=len(text))
        with self._order.of_listing():
            self._writer.counts.unread += 1
        return (unread.node, unread.uid) if unread.uid else ("", "")


def pause(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Wait, and look at the stop meanwhile."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not is_stopped():
        time.sleep(min(left, _LOOK_SECONDS))


def pause_seconds(error: KubernetesError, backoff: Backoff) -> float:
    """Return how long to wait after an error: at least what the API server asks for."""
    asked = error.retry_after_seconds if isinstance(error, ApiRefusedError) else None
    return max(backoff.next_seconds(), asked or 0.0)


def is_too_late(error: KubernetesError) -> bool:
    """Whether the API server cannot go on from a version or a token, so that all has to be listed."""
    return isinstance(error, ApiRefusedError) and error.status == TOO_LATE_TO_RESUME


def now_us() -> int:
    """Return the time that records say, microseconds since 1970."""
    return time.time_ns() // 1000
