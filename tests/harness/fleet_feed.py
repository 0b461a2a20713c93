"""Feeds of as many made-up clusters as there are partitions, so that each has one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Self

from evictstream.streams.settings import Settings
from tests.harness.cluster_names import clusters_apart
from tests.harness.feed import Feed


class FleetFeed:
    """Nodes by number, spread evenly over clusters that live in partitions of their own."""

    def __init__(self, settings: Settings) -> None:
        self._names = clusters_apart(settings.partitions)
        self._settings = settings
        self._stack = ExitStack()
        self._feeds: list[Feed] = []

    def __enter__(self) -> Self:
        self._feeds = [self._stack.enter_context(Feed(self._settings, name)) for name in self._names]
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, number: int) -> Feed:
        """The feed that tells of the node of this number; so many in a row are in all partitions."""
        return self._feeds[number % len(self._feeds)]

    def flush(self) -> None:
        """Wait until all is written."""
        for feed in self._feeds:
            feed.flush()
