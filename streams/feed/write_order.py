"""Keeps a listing that runs beside a watch from writing what is older than what the watch has written."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class WriteOrder:
    """Of one kind: its watch and a listing beside it write one object after the other, each object's newest state last.

    What the watch writes is remembered while such a listing runs: a UID and a number for each object that changes
    meanwhile, some hundred bytes. An object's order is that of its resource versions, which etcd gives.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[str, int] | None = None

    @contextlib.contextmanager
    def beside_watch(self) -> Iterator[None]:
        """Remember what the watch writes. Begin before the list is asked for: it then holds all that came earlier."""
        with self._lock:
            self._watched = {}
        try:
            yield
        finally:
            with self._lock:
                self._watched = None

    @contextlib.contextmanager
    def of_watch(self, uid: str = "", version: int = 0) -> Iterator[None]:
        """Write what the watch has shown of an object; without a UID only nothing else is written meanwhile."""
        with self._lock:
            if self._watched is not None and uid:
                self._watched[uid] = version
            yield

    @contextlib.contextmanager
    def of_listing(self, uid: str = "", version: int = 0) -> Iterator[bool]:
        """Write an item of the list, if told so: the watch has written nothing as new of the object."""
        with self._lock:
            yield self._watched is None or self._watched.get(uid, -1) < version
