"""Records of format 1, whose keys were `<cluster>/<node>`, as records of today: keyed by cluster, in its partition.

A cluster was spread over all partitions of a topic, and each of them had what was said about the whole cluster. It is
given once, when the last partition has it. In each partition a listing spoke of the nodes there; put together it speaks
of all nodes. Left out is what not every partition has, because the recording begins or ends in the middle of it.

Offsets are counted again. The `cause` of a recorded decision still names the old place.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.models.instants import microseconds
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.models.messages.watch_event import Listing
from evictstream.streams.feed.feed_records import FeedRecords
from evictstream.streams.partitioner import partition_of

MOST_OPEN: Final = 8
"""Signals of one kind, cluster and topic that wait for their last partitions. Heartbeats are seconds apart, so clocks
of brokers may differ by half a minute."""

_SIGNALS: Final = frozenset({"HEARTBEAT", "LISTED", "FORGET", "ACCEPT_GAP"})
_WORDS: Final = tuple(f'"{word}"'.encode() for word in sorted(_SIGNALS))


class _Signal(msgspec.Struct, rename="camel", gc=False):
    cluster: str
    type: str
    observed_at: Annotated[dt.datetime, msgspec.Meta(tz=True)] | None = None
    epoch: int = 0
    cluster_uid: str | None = None
    listing: Listing | None = None


_K = TypeVar("_K")

_signal: Final = msgspec.json.Decoder(_Signal)

_Point: TypeAlias = tuple[str, str]
"""Behind a node's name, and on the next node behind a UID."""


@dataclasses.dataclass(slots=True)
class _OpenListing:
    """A listing until each partition has told all of it.

    Attributes:
        uids: by node name.
        ends: of ranges, by their begin, which nothing adjoins yet; by partition.
        reached: how far adjoining ranges lead, by partition; `None` for all the way.
    """

    uids: defaultdict[str, set[str]] = dataclasses.field(default_factory=lambda: defaultdict(set))
    ends: defaultdict[int, dict[_Point, _Point | None]] = dataclasses.field(default_factory=lambda: defaultdict(dict))
    reached: dict[int, _Point | None] = dataclasses.field(default_factory=dict)

    def take(self, partition: int, listing: Listing) -> None:
        """Take in one range."""
        for node, uids in listing.uids.items():
            self.uids[node].update(uids)
        end: _Point | None = None if listing.through is None else (listing.through, "")
        if listing.uid_through is not None:
            end = listing.after, listing.uid_through
        ends = self.ends[partition]
        ends[listing.after, listing.uid_after] = end
        reached = self.reached.get(partition, ("", ""))
        while reached is not None and reached in ends:
            reached = ends.pop(reached)
        self.reached[partition] = reached

    def is_whole(self, partitions: int) -> bool:
        """Whether it speaks of all nodes."""
        return len(self.reached) == partitions and all(point is None for point in self.reached.values())


class _Signals:
    """Joins what was written to every partition."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._open: defaultdict[tuple[Role, bytes, str], dict[bytes, list[set[int]]]] = defaultdict(dict)
        self._listings: defaultdict[tuple[Role, bytes], dict[object, _OpenListing]] = defaultdict(dict)

    def values(self, record: RecordedRecord, key: bytes) -> Iterable[bytes | None]:
        """Give the values that stand for this record: none while other partitions have not got the signal."""
        value = record.value
        if value is None or record.topic not in {"nodes", "pods"} or not any(word in value for word in _WORDS):
            return (value,)
        try:
            signal = _signal.decode(value)
        except DECODE_ERRORS:
            return (value,)
        if signal.type not in _SIGNALS:
            return (value,)
        if signal.type != "LISTED":
            return (value,) if self._is_last(record, key, signal.type, value) else ()
        return (value,) if signal.listing is None else self._listed(record, key, signal, signal.listing)

    def _is_last(self, record: RecordedRecord, key: bytes, type_: str, value: bytes) -> bool:
        """Tell whether all other partitions have this signal. A later one may have the same value."""
        some = self._open[record.topic, key, type_]
        rounds = some.setdefault(value, [])
        seen = next((seen for seen in rounds if record.partition not in seen), None)
        if seen is None:
            rounds.append(seen := set())
        seen.add(record.partition)
        if len(seen) == self._partitions:
            rounds.remove(seen)
            if not rounds:
                del some[value]
            return True
        del rounds[:-MOST_OPEN]
        _drop_oldest(some)
        return False

    def _listed(self, record: RecordedRecord, key: bytes, signal: _Signal, listing: Listing) -> Iterable[bytes]:
        some, version = self._listings[record.topic, key], listing.resource_version
        which = signal.epoch, signal.cluster_uid, version, signal.observed_at
        whole = some.setdefault(which, _OpenListing())
        whole.take(record.partition, listing)
        if not whole.is_whole(self._partitions):
            _drop_oldest(some)
            return ()
        del some[which]
        at_us = record.appended_us if signal.observed_at is None else microseconds(signal.observed_at)
        records = FeedRecords(cluster=signal.cluster, uid=signal.cluster_uid or "", epoch=signal.epoch)
        return records.listed(at_us, version, {node: sorted(uids) for node, uids in whole.uids.items()})


def rekeyed(records: Iterable[RecordedRecord], *, spread: int, partitions: int) -> Iterator[RecordedRecord]:
    """Give each record its key and place of today. Records that have such a key already stay as they are.

    Args:
        records: in the order of time.
        spread: partitions among which clusters were spread.
        partitions: among which clusters are placed.
    """
    signals = _Signals(spread)
    places: dict[bytes, int] = {}
    offsets = Counter[tuple[Role, int]]()
    for record in records:
        key = _cluster_key(record.key)
        if key is None:
            yield record
            continue
        place = places.get(key)
        if place is None:
            place = places[key] = partition_of(key, partitions)
        for value in signals.values(record, key):
            offset = offsets[record.topic, place]
            offsets[record.topic, place] += 1
            yield msgspec.structs.replace(record, partition=place, offset=offset, key=key, value=value)


def _cluster_key(key: bytes | None) -> bytes | None:
    """Return the cluster's part of an old key; `None` for any other key."""
    cluster, slash, node = (key or b"").partition(b"/")
    return cluster if cluster and slash and b"/" not in node else None


def _drop_oldest(some: dict[_K, Any]) -> None:
    if len(some) > MOST_OPEN:
        del some[next(iter(some))]
