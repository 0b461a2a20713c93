"""Changes of audit logs in the order in which they happened.

API servers write a line when an answer is complete, so of two changes of an object the later one may come first, and
logs of several servers are joined by clocks that differ. Resource versions tell the order; a change waits for a few
seconds of the log's time so that an earlier one can still overtake it.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from evictstream.kit.recordings.audit_log import TOO_LATE, AuditChange
from evictstream.kit.recordings.entries import Entry, Flaw, Skipped, WatchEnded
from evictstream.models.instants import FIRST_INSTANT_US

WAIT_US: Final = 5_000_000
"""Answers take milliseconds. What comes later than this is compared with what is known, and left out if it is older."""

_MOST_WAITING: Final = 10_000
"""Some 100 MB of whole objects; 2,000 changes a second fill it before the time is over."""


_Item: TypeAlias = Entry | AuditChange | Skipped | Flaw | WatchEnded


class _Waiting:
    __slots__ = ("at_us", "is_given", "item")

    def __init__(self, item: Entry | AuditChange, at_us: int) -> None:
        self.item = item
        self.at_us = at_us
        self.is_given = False


def in_order(items: Iterable[_Item]) -> Iterator[_Item]:
    """Give changes by time; of one object those with an earlier version first, at the latest with the one after it."""
    order = _Order()
    for item in items:
        if isinstance(item, AuditChange) and order.is_late(item):
            yield Skipped(item.source, item.line, TOO_LATE)
        elif isinstance(item, AuditChange | Entry):
            order.add(item)
            yield from order.due()
        else:
            yield item
    yield from order.rest()


class _Order:
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, _Waiting]] = []
        self._of_object: defaultdict[tuple[str, str, str], list[_Waiting]] = defaultdict(list)
        self._newest_us = FIRST_INSTANT_US
        self._newest_version = 0
        self._number = itertools.count()

    def is_late(self, change: AuditChange) -> bool:
        """Tell whether what should have come after it may have been given. Where versions go on, a clock went back."""
        return change.at_us < self._newest_us - WAIT_US and change.version <= self._newest_version

    def add(self, item: Entry | AuditChange) -> None:
        if isinstance(item, Entry):
            arrived = _Waiting(item, self._newest_us if item.observed_at_us is None else item.observed_at_us)
        else:
            arrived = self._arrived(item)
        self._push(arrived)
        self._newest_us = max(self._newest_us, arrived.at_us)

    def _arrived(self, change: AuditChange) -> _Waiting:
        others, arrived = self._of_object[change.key], _Waiting(change, change.at_us)
        if change.version:
            arrived.at_us = min([change.at_us, *(other.at_us for other in others if _version(other) > change.version)])
            for one in others:
                if 0 < _version(one) < change.version and one.at_us > arrived.at_us:
                    one.at_us = arrived.at_us
                    self._push(one)
        others.append(arrived)
        if change.at_us >= self._newest_us:
            self._newest_us, self._newest_version = change.at_us, change.version
        return arrived

    def due(self) -> Iterator[Entry | AuditChange]:
        while self._heap and (self._heap[0][0] <= self._newest_us - WAIT_US or len(self._heap) > _MOST_WAITING):
            yield from self._pop()

    def rest(self) -> Iterator[Entry | AuditChange]:
        while self._heap:
            yield from self._pop()

    def _push(self, one: _Waiting) -> None:
        heapq.heappush(self._heap, (one.at_us, _version(one), next(self._number), one))

    def _pop(self) -> Iterator[Entry | AuditChange]:
        at_us, _, _, one = heapq.heappop(self._heap)
        if one.is_given or at_us != one.at_us:
            return  # it was moved, and stands in the heap twice
        one.is_given = True
        if isinstance(one.item, Entry):
            yield one.item
            return
        others = self._of_object[one.item.key]
        others.remove(one)
        if not others:
            del self._of_object[one.item.key]
        yield msgspec.structs.replace(one.item, at_us=at_us)


def _version(one: _Waiting) -> int:
    return one.item.version if isinstance(one.item, AuditChange) else 0
