"""What was recorded while a cluster was played to a feed, and what its records say exists."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from evictstream.kit.conformance.fake_faults import Object
from evictstream.kit.conformance.process_rules import ProcessEvidence
from evictstream.kit.conformance.topic_recorder import SeenRecord
from evictstream.models.instants import SECOND_US, instant_us
from evictstream.models.kubernetes.resource_versions import read_version
from evictstream.models.messages.watch_event import decode_watch_event

CHANGES: Final = frozenset({"ADDED", "MODIFIED", "DELETED"})
FEED_SILENT_SECONDS: Final = 60.0
"""The service holds evictions back when a heartbeat is older; so long after the watch went dead they have to end."""

QUIET_SECONDS: Final = 25.0
"""Without a heartbeat for so long, two of them are missing: they have ended."""

DELAY_SECONDS: Final = 30.0
"""A heartbeat counts from its `observedAt`, as events do, but at most so long before it was read: Kafka may be slow."""

_MIRROR: Final = "kubernetes.io/config.mirror"
_MOVED: Final = "evictstream.io/tolerations"


class UsedFields(NamedTuple):
    """What the service uses of an object, in a form that can be compared.

    Attributes:
        kind: `Node` or `Pod`.
        node: name of the node; empty for a pod that is not bound.
        name: namespace and name.
        content: the other fields in use, as JSON.
    """

    kind: str
    node: str
    name: str
    content: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeedRecord:
    """A record of the nodes or the pods topic.

    Attributes:
        at: when it was read, seconds since 1970.
        kind: `Node` or `Pod`, by its topic.
        partition: where.
        offset: within the partition.
        key: as it came.
        size: of the value, in bytes.
        event: its fields, as far as it is a JSON object.
        problem: why it is no watch event by its schema; empty if it is one.
    """

    at: float
    kind: str
    partition: int
    offset: int
    key: bytes
    size: int
    event: dict[str, Any]
    problem: str

    @classmethod
    def of(cls, record: SeenRecord) -> FeedRecord:
        """Read a record."""
        event, problem = record.read(decode_watch_event)
        if not problem and isinstance(read_version(_version_text(event)), str):
            problem = f"resourceVersion: {_version_text(event)[:20]!r} is not of the API server"
        return cls(
            at=record.at,
            kind="Node" if record.topic == "nodes" else "Pod",
            partition=record.partition,
            offset=record.offset,
            key=record.key or b"",
            size=len(record.value or b""),
            event=event,
            problem=problem,
        )

    @property
    def type(self) -> str:
        """Of the watch event."""
        return str(self.event.get("type", ""))

    @property
    def epoch(self) -> int:
        """Of its resource versions."""
        number = self.event.get("epoch")
        return number if isinstance(number, int) else 0

    @property
    def is_change(self) -> bool:
        """Whether it says something of one object, and can be read."""
        return self.type in CHANGES and not self.problem

    @property
    def uid(self) -> str:
        """Of the object of a change."""
        return str(self.event["object"]["metadata"]["uid"])

    @property
    def event_at(self) -> float:
        """When it was observed: as it says, but not after it was read and not over `DELAY_SECONDS` before."""
        try:
            observed_at = instant_us(self.event["observedAt"]) / SECOND_US
        except (KeyError, TypeError, ValueError):
            return self.at
        return max(min(observed_at, self.at), self.at - DELAY_SECONDS)

    @property
    def version(self) -> tuple[int, int]:
        """Of a change or a listing: the epoch, then the resource version."""
        return self.epoch, int(_version_text(self.event))

    def used(self) -> UsedFields:
        """Return the fields in use of the object of a change."""
        return used_fields(self.kind, self.event["object"])


class TopicObjects:
    """What a reader of the records knows, by the rules of docs/messages.md: epochs, versions, listings.

    Attributes:
        objects: by UID.
    """

    def __init__(self, records: Iterable[FeedRecord] = ()) -> None:
        self.objects: dict[str, UsedFields] = {}
        self._versions: dict[str, tuple[int, int]] = {}
        for record in records:
            self.take(record)

    def take(self, record: FeedRecord) -> None:
        """Learn from the next record."""
        if record.type == "LISTED" and not record.problem:
            self._take_listing(record)
        elif record.is_change:
            if self._versions.get(record.uid, (0, 0)) > record.version:
                return
            self.objects.pop(record.uid, None)
            self._versions[record.uid] = record.version
            used = record.used()
            if record.type != "DELETED" and used.node:  # a pod without a node is ignored
                self.objects[record.uid] = used

    def _take_listing(self, record: FeedRecord) -> None:
        listing = record.event["listing"]
        after, through = listing.get("after", ""), listing.get("through")
        uid_after, uid_through = listing.get("uidAfter", ""), listing.get("uidThrough")
        for uid, object_ in list(self.objects.items()):
            is_covered = after < object_.node and (through is None or object_.node <= through)
            is_covered = is_covered and uid_after < uid and (uid_through is None or uid <= uid_through)
            is_ours = object_.kind == record.kind and self._versions[uid] <= record.version
            if is_covered and is_ours and uid not in listing["uids"].get(object_.node, ()):
                del self.objects[uid]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedObjects:
    """What the cluster had when a situation was over.

    Attributes:
        records: how many records had been read by then.
        objects: nodes and bound pods, by UID.
    """

    records: int
    objects: Mapping[str, UsedFields]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FeedEvidence:
    """Everything that the rules look at.

    Attributes:
        records: in the order in which they were read, which is that of each topic: a cluster is in one partition.
        snapshots: by situation.
        states: what the API server has shown: the fields in use, by UID and resource version.
        cluster_uid: of the namespace `kube-system`.
        partitions: of each topic.
        cached_lists: how many lists asked for what a cache has.
        away: from when to when the feed was killed; None if it was not.
        rebuilt_at: when resource versions went back; None if they did not.
        silent_at: when the watch of pods fell silent; None if it did not.
        silent_seconds: how long heartbeats may go on then.
        ended_at: when nothing was recorded any more.
        process: what became of it.
    """

    records: Sequence[FeedRecord]
    snapshots: Mapping[str, ExpectedObjects]
    states: Mapping[tuple[str, int], Collection[UsedFields]]
    cluster_uid: str
    partitions: int
    cached_lists: int = 0
    away: tuple[float, float] | None = None
    rebuilt_at: float | None = None
    silent_at: float | None = None
    silent_seconds: float = FEED_SILENT_SECONDS
    ended_at: float = 0.0
    process: ProcessEvidence = dataclasses.field(default_factory=ProcessEvidence)

    def of(self, type_: str, kind: str | None = None) -> list[FeedRecord]:
        """List records of a type that can be read, of a topic."""
        return [one for one in self.records if one.type == type_ and not one.problem and kind in {None, one.kind}]

    def before(self, record: FeedRecord) -> list[FeedRecord]:
        """List what was read before a record."""
        return list(itertools.takewhile(lambda one: one is not record, self.records))


def _version_text(event: Mapping[str, Any]) -> str:
    """Return the resource version of a change or a listing that its schema allows; of any other event 0."""
    if event.get("type") in CHANGES:
        return str(event["object"]["metadata"]["resourceVersion"])
    return str(event["listing"]["resourceVersion"]) if event.get("type") == "LISTED" else "0"


def used_fields(kind: str, item: Object) -> UsedFields:
    """Return what the service uses of an object; what is empty counts as absent."""
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    content: Object
    if kind == "Node":
        ready = [condition["status"] for condition in status.get("conditions") or () if condition["type"] == "Ready"]
        content = {"taints": spec.get("taints"), "ready": ready}
    else:
        content = {
            "tolerations": spec.get("tolerations"),
            "deleted": meta.get("deletionTimestamp"),
            "mirror": (meta.get("annotations") or {}).get(_MIRROR),
            "moved": (meta.get("annotations") or {}).get(_MOVED),
            "phase": status.get("phase"),
        }
    return UsedFields(
        kind=kind,
        node=str(meta["name"] if kind == "Node" else spec.get("nodeName") or ""),
        name=f"{meta.get('namespace', '')}/{meta['name']}",
        content=json.dumps({name: value for name, value in content.items() if value}, sort_keys=True),
    )
