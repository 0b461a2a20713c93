"""Whether records tell a cluster from its beginning: what stood there before them is known from a listing only.

A feed's listing is whole if all that it names has come before it. Where no feed wrote, as in a watch of kubectl, the
watch itself begins with all that is there, so what is seen first by its change was there before.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

import msgspec

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.recordings.shortfalls import Shortfall, ShortfallKind
from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.times import read_time
from evictstream.models.messages.envelope import DECODE_ERRORS

MOST_NAMES: Final = 3
"""Nodes that are named in a sentence."""

_KINDS: Final[tuple[Role, Role]] = ("nodes", "pods")


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    uid: str = ""
    creation_timestamp: str | None = None


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec | None = None


class _Listing(msgspec.Struct, gc=False):
    uids: dict[str, list[str]] = msgspec.field(default_factory=dict)


class _Record(msgspec.Struct, gc=False):
    type: str = ""
    object: _Object | None = None
    listing: _Listing | None = None


_UNBOUND: Final = _Spec()

_record: Final = msgspec.json.Decoder(_Record)
_object: Final = msgspec.json.Decoder(_Object)


@dataclasses.dataclass(slots=True)
class _Place:
    """One topic for one cluster, until a listing of it is whole.

    Attributes:
        seen: UIDs of all objects so far.
        unseen: UIDs of objects that existed before they were seen.
        is_sure: that some of these were there; a pod that is bound late may be new.
    """

    is_listed: bool = False
    is_sure: bool = False
    seen: set[str] = dataclasses.field(default_factory=set)
    unseen: set[str] = dataclasses.field(default_factory=set)

    def take_listing(self, listing: _Listing) -> None:
        missing = {uid for uids in listing.uids.values() for uid in uids} - self.seen
        self.is_listed = not missing
        if self.is_listed:
            self.seen, self.unseen = set(), set()
        else:
            self.unseen |= missing
            self.is_sure = True


class ListingCoverage:
    """Takes all records of a recording in order of time. Some 200 bytes are kept for each object until it is listed."""

    def __init__(self) -> None:
        self._places: defaultdict[str, defaultdict[Role, _Place]] = defaultdict(lambda: defaultdict(_Place))
        self._fed: set[str] = set()
        self._nodes: set[tuple[str, str]] = set()
        self._nodes_of_pods: set[tuple[str, str]] = set()
        self._unbound: set[str] = set()
        self._first_us: int | None = None

    def see_unbound(self, pod: bytes) -> None:
        """Take a pod before it is bound, which no topic has: its first record is then a change."""
        with contextlib.suppress(*DECODE_ERRORS):
            self._unbound.add(_object.decode(pod).metadata.uid)

    def take(self, record: RecordedRecord) -> None:
        """Look at the next record."""
        if record.topic not in _KINDS or record.value is None:
            return
        if self._first_us is None:
            self._first_us = record.appended_us
        cluster = record.cluster
        place = self._places[cluster][record.topic]
        try:
            content = _record.decode(record.value)
        except DECODE_ERRORS:
            return  # the service refuses it, and says so
        if content.object is not None:
            name = (
                content.object.metadata.name if record.topic == "nodes" else (content.object.spec or _UNBOUND).node_name
            )
            if name:
                (self._nodes if record.topic == "nodes" else self._nodes_of_pods).add((cluster, name))
        if place.is_listed:
            return
        if content.type in {"HEARTBEAT", "LISTED"}:
            self._fed.add(cluster)
        if content.listing is not None:
            place.take_listing(content.listing)
        elif content.object is not None:
            self._take_object(place, content.type, content.object.metadata, is_node=record.topic == "nodes")

    def _take_object(self, place: _Place, type_: str, metadata: _Metadata, *, is_node: bool) -> None:
        if metadata.uid in place.seen:
            return
        place.seen.add(metadata.uid)
        created_us = None if metadata.creation_timestamp is None else read_time(metadata.creation_timestamp)
        is_new = created_us is not None and created_us + SECOND_US > (self._first_us or 0)
        if type_ != "ADDED" and not is_new and metadata.uid not in self._unbound:
            place.unseen.add(metadata.uid)
            place.is_sure = place.is_sure or is_node or created_us is not None

    def shortfalls(self) -> Iterator[Shortfall]:
        """Give what is missing, cluster by cluster."""
        without = self._nodes_of_pods - self._nodes
        for cluster, places in sorted(self._places.items()):
            absent = sorted(name for bound_in, name in without if bound_in == cluster)
            unseen = Counter[Role]()
            for kind, place in places.items():
                unseen[kind] += len(place.unseen)
            whole = sum(place.is_listed for place in places.values())
            is_cut = cluster in self._fed and whole < len(_KINDS)
            if is_cut or any(place.is_sure for place in places.values()):
                yield _no_listing(cluster, unseen["nodes"] + len(absent), unseen["pods"])
            elif absent:
                yield _no_nodes(cluster, absent)


def _no_listing(cluster: str, nodes: int, pods: int) -> Shortfall:
    text = (
        f"no listing of {cluster}: the earlier state of {_counted(nodes, 'node')} and {_counted(pods, 'pod')} is"
        " missing; unchanged objects are missing too; start the recording before a listing, or also give an earlier"
        " list, `kubectl get nodes,pods -A -o json`"
    )
    return Shortfall(ShortfallKind.LISTING, nodes + pods, text)


def _no_nodes(cluster: str, names: list[str]) -> Shortfall:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    text = (
        f"pods of {cluster} are bound to {_counted(len(names), 'node')} that the recording does not have:"
        f" {', '.join(names[:MOST_NAMES])}{more}; the answer leaves these pods out"
    )
    return Shortfall(ShortfallKind.NODES, len(names), text)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
