"""What the changes of audit logs make of nodes and pods, as a watch would have shown it.

Answers to bindings, evictions and final deletions do not hold the object, so the newest state of each live one is
remembered, trimmed: some 500 bytes for a pod. What comes late about an object is told by its resource version.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from evictstream.kit.recordings.audit_log import AuditChange
from evictstream.kit.recordings.entries import ABSENT, Entry, Flaw, Item, Skipped, WatchEnded, entry_of
from evictstream.kit.recordings.trimming import trimmed
from evictstream.models.instants import SECOND_US
from evictstream.models.kubernetes.shapes import TERMINAL_PHASES, AuditedHead, AuditedMetadata, AuditedObject, Kind
from evictstream.models.kubernetes.times import time_text
from evictstream.models.messages.envelope import DECODE_ERRORS, unreadable

# Why changes are left out.
OVERTAKEN: Final = "audit: older than what is known"
NOTHING_CHANGED: Final = "audit: nothing changed"
UNSEEN_OBJECT: Final = "audit: about objects that were never seen"

REMEMBER_US: Final = 120 * SECOND_US
"""Of log time: how long a deletion is remembered, and how long a binding waits for its pod. API servers give a request
60 s, so nothing about an object is later than that."""

_DEFAULT_GRACE_SECONDS: Final = 30
_ONLY_METADATA: Final = "PartialObjectMetadata"


class _Objects(msgspec.Struct, gc=False):
    items: list[msgspec.Raw] = msgspec.field(default_factory=list)


_head_decoder: Final = msgspec.json.Decoder(AuditedHead)
_object_decoder: Final = msgspec.json.Decoder(AuditedObject)
_objects_decoder: Final = msgspec.json.Decoder(_Objects)
_fields_decoder: Final = msgspec.json.Decoder(dict[str, Any])


@dataclasses.dataclass(slots=True)
class _LiveObject:
    """A live object: what tells later changes apart, and what it was, trimmed."""

    uid: str
    version: int
    node: str
    grace_seconds: int
    is_finished: bool
    has_finalizers: bool
    is_terminating: bool
    object: msgspec.Raw


class AuditedObjects:
    """Turns changes into entries; `_live` has the live ones."""

    def __init__(self) -> None:
        self._live: dict[tuple[str, str, str], _LiveObject] = {}
        self._gone: set[str] = set()
        self._gone_in_order: deque[tuple[int, str]] = deque()
        self._bindings: dict[tuple[str, str, str], AuditChange] = {}

    def __len__(self) -> int:
        """Of what is alive, and so remembered."""
        return len(self._live)

    def entries(self, items: Iterable[Item | WatchEnded | AuditChange]) -> Iterator[Item | WatchEnded]:
        """Go through all recordings, joined by time: entries of lists and watches tell what is there, too."""
        for item in items:
            if isinstance(item, AuditChange):
                self._forget(item.at_us)
                try:
                    yield from self._apply(item)
                except DECODE_ERRORS as error:
                    yield Flaw(item.source, item.line, str(unreadable(error)))
            else:
                if isinstance(item, Entry):
                    self._learn(item)
                yield item
        for binding in self._bindings.values():
            yield Skipped(binding.source, binding.line, UNSEEN_OBJECT)

    def _learn(self, entry: Entry) -> None:
        try:
            about = _object_decoder.decode(entry.object)
        except DECODE_ERRORS:
            return  # the reader of the record says what is wrong with it
        key = entry.kind, about.metadata.namespace, about.metadata.name
        previous = self._live.get(key)
        version = _number(about.metadata.resource_version)
        if entry.type == "DELETED":
            if previous is not None and previous.uid == about.metadata.uid:
                del self._live[key]
        elif previous is None or version >= previous.version:
            self._live[key] = _known_of(entry.kind, about, entry.object)

    def _apply(self, change: AuditChange) -> Iterator[Item]:
        match change.action:
            case "object":
                yield from self._seen(change)
            case "bind":
                yield from self._bound(change)
            case "deletecollection":
                yield from self._collection(change)
            case "evict":
                yield from self._deleted(change, is_final=False)
            case "delete":
                if change.answer == ABSENT:
                    yield from self._deleted(change, is_final=False)
                    return
                about = _head_decoder.decode(change.answer)
                if about.kind == change.kind:
                    yield from self._seen(change)
                elif about.kind == "Status":
                    yield from self._deleted(change, is_final=True)
                else:  # `_ONLY_METADATA`
                    yield from self._deleted(change, is_final=_is_gone(about.metadata, is_deletion=True))

    def _seen(self, change: AuditChange) -> Iterator[Item]:
        """Take an object as it is after the change."""
        about = _object_decoder.decode(change.answer)
        if about.kind == _ONLY_METADATA:
            yield from self._seen_metadata(change, about.metadata)
            return
        if about.kind != change.kind or not about.metadata.uid:
            yield Flaw(change.source, change.line, f"its responseObject is no {change.kind}")
            return
        key, previous, uid = change.key, self._live.get(change.key), about.metadata.uid
        reason = (
            OVERTAKEN if uid in self._gone else None if previous is None else _no_news(previous, about, change.version)
        )
        if reason is not None:
            yield Skipped(change.source, change.line, reason)
            return
        if previous is not None and previous.uid != uid:  # its deletion is missing
            yield from self._ended(change, previous)
            previous = None
        if _is_gone(about.metadata, is_deletion=change.action == "delete"):
            self._live.pop(key, None)
            self._remember_gone(change.at_us, uid)
            yield _entry(change, "DELETED", change.answer)
            return
        self._live[key] = _known_of(change.kind, about, change.answer)
        yield _entry(change, "ADDED" if previous is None and change.is_creation else "MODIFIED", change.answer)
        binding = self._bindings.pop(key, None)
        if binding is not None:
            yield from self._bound(msgspec.structs.replace(binding, at_us=change.at_us))

    def _seen_metadata(self, change: AuditChange, metadata: AuditedMetadata) -> Iterator[Item]:
        """Take what a client was told that asked for metadata only, as the garbage collector does."""
        previous = self._live.get(change.key)
        if previous is not None and previous.uid == metadata.uid and _is_gone(metadata):
            yield from self._ended(change, previous)
            return
        if previous is not None and previous.uid == metadata.uid:
            previous.has_finalizers = bool(metadata.finalizers)
        yield Skipped(change.source, change.line, NOTHING_CHANGED)

    def _bound(self, change: AuditChange) -> Iterator[Item]:
        previous = self._live.get(change.key)
        if previous is None:
            earlier = self._bindings.get(change.key)
            if earlier is not None:
                yield Skipped(earlier.source, earlier.line, UNSEEN_OBJECT)
            self._bindings[change.key] = change  # the answer to its creation may be complete later
        elif previous.node or _is_of_another(change, previous):
            yield Skipped(change.source, change.line, NOTHING_CHANGED if previous.node == change.node else OVERTAKEN)
        else:
            fields = _fields_decoder.decode(previous.object)
            fields["spec"] = (fields.get("spec") or {}) | {"nodeName": change.node}
            previous.node, previous.object = change.node, msgspec.Raw(msgspec.json.encode(fields))
            yield _entry(change, "MODIFIED", previous.object)

    def _collection(self, change: AuditChange) -> Iterator[Item]:
        """Take what a deletion of a collection lists: each object as it was before."""
        for item in _objects_decoder.decode(change.answer).items:
            metadata = _object_decoder.decode(item).metadata
            deletion = msgspec.structs.replace(
                change,
                action="delete",
                namespace=metadata.namespace,
                name=metadata.name,
                uid=metadata.uid,
                version=_number(metadata.resource_version),
            )
            yield from self._deleted(deletion, is_final=change.kind == "Node")

    def _deleted(self, change: AuditChange, *, is_final: bool) -> Iterator[Item]:
        """Delete the known object, as the API server does; unless final, it ends with the grace period of the pod."""
        previous = self._live.get(change.key)
        if previous is None or _is_of_another(change, previous):
            is_known = previous is not None or change.uid in self._gone
            yield Skipped(change.source, change.line, OVERTAKEN if is_known else UNSEEN_OBJECT)
            return
        grace = previous.grace_seconds if change.grace_seconds is None else change.grace_seconds
        grace = 0 if previous.is_finished or not previous.node else 1 if grace < 0 else grace
        has_come_to_its_end = grace == 0 if not previous.is_terminating else change.grace_seconds == 0
        if is_final or (has_come_to_its_end and not previous.has_finalizers):
            yield from self._ended(change, previous)
        elif previous.is_terminating:
            yield Skipped(change.source, change.line, NOTHING_CHANGED)
        else:
            fields = _fields_decoder.decode(previous.object)
            fields["metadata"] |= {
                "deletionTimestamp": time_text(change.at_us + grace * SECOND_US),
                "deletionGracePeriodSeconds": grace,
            }
            previous.is_terminating, previous.object = True, msgspec.Raw(msgspec.json.encode(fields))
            yield _entry(change, "MODIFIED", previous.object)

    def _ended(self, change: AuditChange, previous: _LiveObject) -> Iterator[Item]:
        self._live.pop(change.key, None)
        self._remember_gone(change.at_us, previous.uid)
        yield _entry(change, "DELETED", previous.object)

    def _remember_gone(self, at_us: int, uid: str) -> None:
        self._gone.add(uid)
        self._gone_in_order.append((at_us, uid))

    def _forget(self, now_us: int) -> None:
        while self._gone_in_order and self._gone_in_order[0][0] < now_us - REMEMBER_US:
            self._gone.discard(self._gone_in_order.popleft()[1])


def _known_of(kind: Kind, about: AuditedObject, content: msgspec.Raw) -> _LiveObject:
    metadata, spec = about.metadata, about.spec
    grace = None if spec is None else spec.termination_grace_period_seconds
    return _LiveObject(
        uid=metadata.uid,
        version=_number(metadata.resource_version),
        node=(spec.node_name or "") if spec is not None else "",
        grace_seconds=_DEFAULT_GRACE_SECONDS if grace is None else grace,
        is_finished=about.status is not None and about.status.phase in TERMINAL_PHASES,
        has_finalizers=bool(metadata.finalizers),
        is_terminating=metadata.deletion_timestamp is not None,
        object=msgspec.Raw(bytes(trimmed(kind, content))),  # a copy, for a view would keep the whole line
    )


def _no_news(previous: _LiveObject, about: AuditedObject, version: int) -> str | None:
    """Say why an object is not newer than what is known; None if it is."""
    if version and version < previous.version:
        return OVERTAKEN
    if previous.uid != about.metadata.uid:
        return None
    if version and version == previous.version and not _is_gone(about.metadata):
        return NOTHING_CHANGED
    # Neither is ever taken back, so what lacks it is from before; a binding and an eviction tell no version.
    is_bound = about.spec is not None and bool(about.spec.node_name)
    is_before = (previous.node and not is_bound) or (
        previous.is_terminating and about.metadata.deletion_timestamp is None
    )
    return OVERTAKEN if is_before else None


def _is_gone(metadata: AuditedMetadata, *, is_deletion: bool = False) -> bool:
    """Tell whether an answer shows the end of its object: nothing is left to wait for.

    `store.go: ShouldDeleteDuringUpdate`. What has no grace period is deleted without a `deletionTimestamp`.
    """
    if metadata.finalizers:
        return False
    if metadata.deletion_timestamp is None:
        return is_deletion
    return not metadata.deletion_grace_period_seconds


def _is_of_another(change: AuditChange, previous: _LiveObject) -> bool:
    return bool(change.uid) and change.uid != previous.uid


def _entry(change: AuditChange, type_: str, content: msgspec.Raw) -> Entry | Flaw:
    return entry_of(content, source=change.source, line=change.line, type_=type_, observed_at_us=change.at_us)


def _number(version: str) -> int:
    return int(version) if version.isascii() and version.isdecimal() else 0
