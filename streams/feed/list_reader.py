"""Reads a list in pages: each as large as can be had, none at the cost of memory, no item at the cost of another.

A page that is small and can be decoded as a whole is: that is quick. Any other one is taken apart while it arrives, and
one item of it is held at a time. A page that was too large or too slow makes the next ones smaller, down to one object;
small and quick ones make them larger again.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from evictstream.models.shallow_json import ListSplitter, SplitItem
from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError, KubernetesError
from evictstream.streams.feed.json_pieces import piece
from evictstream.streams.feed.watched_objects import BROKEN, ListMetadata, number, read_list_metadata, read_page
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.kubernetes.exchange import LONGEST_LINE_BYTES, PIECE_BYTES

PAGE_OBJECTS: Final = 500
"""Objects in a page, as kubectl asks for: a page of pods is some 3 MB."""

WHOLE_BYTES: Final = 8_388_608
"""8 MiB: a page up to here is held and decoded as a whole."""

LONGEST_ITEM_BYTES: Final = LONGEST_LINE_BYTES
"""Of an object that is larger only so much is looked at, for its name."""

SLOW_SECONDS: Final = 10.0
"""A page that takes longer is asked for in halves."""

QUICK: Final = 4
"""A page with a quarter of what is allowed may be twice as large the next time."""

HEAD_BYTES: Final = 65_536
"""The metadata of a list stands before its items, and is some hundred bytes."""

GATEWAY_TIMEOUT: Final = 504

Take = Callable[[SplitItem], None]


class PageEnd(NamedTuple):
    """What a page says of the list.

    Attributes:
        version: of the list.
        token: for the next page; empty if this was the last one.
    """

    version: str
    token: str


class ListReader:
    """Reads the lists of one kind, one after the other."""

    def __init__(self, connection: Connection, path: str) -> None:
        self._connection = connection
        self._path = path
        self._limit = PAGE_OBJECTS
        self._bytes = 0

    def page(self, token: str, take: Take) -> PageEnd:
        """Read a page. After an error some of its items may have been taken; it may be asked for again.

        Args:
            token: of the page before; empty for the first one.
            take: gets its items in their order.

        Raises:
            KubernetesError: there is no such page, or half of one.
        """
        query = {"limit": str(self._limit)} | ({"continue": token} if token else {})
        began, self._bytes = time.monotonic(), 0
        try:
            with self._connection.arriving(self._path, query) as pieces:
                end = self._read(self._counted(pieces), take)
        except KubernetesError as error:
            is_slow = isinstance(error, ApiRefusedError) and error.status == GATEWAY_TIMEOUT
            if is_slow or self._is_too_much(time.monotonic() - began):
                self._limit = max(1, self._limit // 2)
            raise
        seconds = time.monotonic() - began
        if self._is_too_much(seconds):
            self._limit = max(1, self._limit // 2)
        elif self._bytes * QUICK < WHOLE_BYTES and seconds * QUICK < SLOW_SECONDS:
            self._limit = min(PAGE_OBJECTS, self._limit * 2)
        return PageEnd(end.resource_version, end.continue_)

    def _is_too_much(self, seconds: float) -> bool:
        return self._bytes > WHOLE_BYTES or seconds > SLOW_SECONDS

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for some in pieces:
            self._bytes += len(some)
            yield some

    def _read(self, pieces: Iterator[bytes], take: Take) -> ListMetadata:
        first: list[bytes] = []
        size = 0
        for some in pieces:
            first.append(some)
            size += len(some)
            if size > WHOLE_BYTES:
                return self._apart(itertools.chain(_given(first), pieces), take)
        text = b"".join(first)
        first.clear()
        try:
            page = read_page(text)
        except BROKEN:
            return self._apart((text[at : at + PIECE_BYTES] for at in range(0, len(text), PIECE_BYTES)), take)
        for item in page.items:
            take(SplitItem(bytes(item), is_whole=True))
        return page.metadata

    def _apart(self, pieces: Iterable[bytes], take: Take) -> ListMetadata:
        return _apart(pieces, take, self._connection, self._path)


def newest_version(connection: Connection, path: str) -> int:
    """Ask etcd how far versions have come; of the list of one object that says so, the object is not looked at.

    Raises:
        KubernetesError: there is no answer, or it does not say so.
    """
    with connection.arriving(path, {"limit": "1"}) as pieces:
        head = bytearray()
        for some in pieces:
            head += some
            if len(head) > HEAD_BYTES:
                break
        found = piece(bytes(head), b"metadata", b"resourceVersion")
        version = "" if found is None else found.text
        if not version:  # the metadata does not stand before the items
            version = _apart(itertools.chain((bytes(head),), pieces), _leave, connection, path).resource_version
    try:
        return number(version)
    except BROKEN as error:
        raise _unreadable(connection, path) from error


def _apart(pieces: Iterable[bytes], take: Take, connection: Connection, path: str) -> ListMetadata:
    """Take a page apart while it arrives."""
    splitter = ListSplitter(most_item_bytes=LONGEST_ITEM_BYTES)
    count = 0
    try:
        for some in pieces:
            for item in splitter.add(some):
                take(item)
                count += 1
        metadata = read_list_metadata(splitter.end())
    except BROKEN as error:
        raise _unreadable(connection, path) from error
    if not count:  # a list without items would have been decoded as a whole
        raise _unreadable(connection, path)
    return metadata


def _unreadable(connection: Connection, path: str) -> ApiUnreachableError:
    return ApiUnreachableError(host=connection.host, reason=f"{path}: unreadable list")


def _given(chunks: list[bytes]) -> Iterator[bytes]:
    """Hand out what is held, and hold it no longer."""
    chunks.reverse()
    while chunks:
        yield chunks.pop()


def _leave(_item: SplitItem) -> None:
    """Leave an item where it is."""
