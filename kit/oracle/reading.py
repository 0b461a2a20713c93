"""Reads records into statements; unreadable ones have none (semantics.md 12.3, and the contracts)."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kafka.partitioner.default import murmur2

from evictstream.kit.oracle.limits import OracleLimits
from evictstream.kit.oracle.records import EPOCH, InputRecord

Json: TypeAlias = dict[str, Any]
ObjectVersion: TypeAlias = tuple[int, int]
"""Epoch and resource version: a later epoch always wins."""

_OUTCOMES = {"Accepted", "Succeeded", "Gone", "Failed", "Obsolete", "Refused", "Observed"}
_BRAKE_ID = re.compile("[a-z0-9][a-z0-9-]{0,62}")
_CHANGES = ("ADDED", "MODIFIED", "DELETED")
_LAST_EPOCH = 2**31 - 1
_LARGEST_LIST = 1_000  # docs/messages.md, "Limits of an object"; an object beyond it in a plan stays beyond it
_LONGEST_CLUSTER_UID = 128
_LONGEST_CLUSTER_NAME = 770  # bytes
_LONGEST_NODE_NAME = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The content of a readable record.

    Attributes:
        at_us: the instant that counts (docs/messages.md#the-time-that-counts).
        kind: `Node`, `Pod`, `Result`, `Report` of a queue, `HEARTBEAT`, `LISTED`, or another signal.
        is_deleted: the object is gone; in a listing, the objects that it does not name are.
        content: the object, the result, or the listing.
        epoch: of the feed.
        cluster_uid: of a signal; empty if it names none.
        is_added: it is `ADDED`, as in a listing: the states before may be missing.
        is_beyond: a node beyond a limit: it is there, has no taint that counts, and its record is a dead letter too.
    """

    record: InputRecord
    cluster: str
    node: str
    at_us: int
    kind: str
    is_deleted: bool
    content: Json
    epoch: int = 0
    cluster_uid: str = ""
    is_added: bool = False
    is_beyond: bool = False

    @property
    def version(self) -> ObjectVersion:
        """Version of the object, or of the list."""
        return self.epoch, int((self.content.get("metadata") or self.content)["resourceVersion"])

    def about(self, node: str) -> Statement | None:
        """Give the part of a listing about one node; `None` if the node is out of its range."""
        name, through = node.encode(), self.content["through"]
        if name <= self.content["after"].encode() or (through is not None and name > through.encode()):
            return None
        return replace(self, node=node, content={**self.content, "uids": self.content["uids"].get(node, [])})

    def ends(self, uid: str) -> bool:
        """Tell whether this UID is in the range of a listing of its node, but missing from it."""
        through = self.content["uidThrough"]
        is_in_range = uid.encode() > self.content["uidAfter"].encode() and (
            through is None or uid.encode() <= through.encode()
        )
        return is_in_range and uid not in self.content["uids"]


class UnreadableRecordError(ValueError):
    """The record is a dead letter; the text says why."""


def to_us(text: str) -> int:
    """Read RFC 3339 as microseconds since 1970."""
    moment = dt.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise UnreadableRecordError("an instant without zone")
    return (moment - EPOCH) // dt.timedelta(microseconds=1)


def read(record: InputRecord, limits: OracleLimits, partitions: int) -> Statement:
    """Read a record.

    Raises:
        UnreadableRecordError: it has to become a dead letter.
    """
    try:
        return _read(record, limits, partitions)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UnreadableRecordError(repr(error)) from error


def _read(record: InputRecord, limits: OracleLimits, partitions: int) -> Statement:
    cluster = _cluster(record.key)
    if record.value is None:
        raise UnreadableRecordError("no value")
    value = json.loads(record.value)
    if len(record.value) > limits.max_object_bytes and value.get("type") not in _CHANGES:
        raise UnreadableRecordError("too large")
    if record.topic == "results" and value.get("kind") == "ExecutorReport":
        statement = _report(record, value, cluster)
    elif record.topic == "results":
        statement = _result(record, value, cluster, _instant(value, record, limits))
    else:
        statement = _watch(record, value, cluster, _instant(value, record, limits))
    if place(record.key, partitions) != record.partition:
        raise UnreadableRecordError("its key belongs to another partition")
    return statement


def place(key: bytes, partitions: int) -> int:
    """Give the partition of a key, as every client's default partitioner does."""
    return int((murmur2(key) & 0x7FFFFFFF) % partitions)


def _cluster(key: bytes) -> str:
    cluster = key.decode()
    if not 0 < len(key) <= _LONGEST_CLUSTER_NAME or "/" in cluster or "\0" in cluster:
        raise UnreadableRecordError("not the name of a cluster")
    return cluster


def _node(name: str) -> str:
    if not 0 < len(name) <= _LONGEST_NODE_NAME or "/" in name or "\0" in name:
        raise UnreadableRecordError("not the name of a node")
    return name


def _instant(value: Json, record: InputRecord, limits: OracleLimits) -> int:
    append_us = record.append_at_us
    if value.get("observedAt") is None:
        return append_us
    earliest_us = append_us - limits.max_event_delay_us
    return min(append_us, max(earliest_us, to_us(value["observedAt"])))


def _lists(spec: Json) -> tuple[Sequence[object], ...]:
    return spec.get("taints") or (), spec.get("tolerations") or ()


def _result(record: InputRecord, value: Json, cluster: str, at_us: int) -> Statement:
    if value["outcome"] not in _OUTCOMES or value["kind"] != "EvictionResult" or value["cluster"] != cluster:
        raise UnreadableRecordError("not a result of this cluster")
    held_by = value.get("heldBy")
    if held_by is not None and not _BRAKE_ID.fullmatch(held_by):
        raise UnreadableRecordError("not the id of a brake")
    node = _node(value["node"])
    return Statement(
        record=record, cluster=cluster, node=node, at_us=at_us, kind="Result", is_deleted=False, content=value
    )


def _report(record: InputRecord, value: Json, cluster: str) -> Statement:
    """Read what waits in the queue of an executor: `content` has the latest `issuedAt` that it has read."""
    if value["apiVersion"] != "evictstream.io/v1" or value["cluster"] != cluster:
        raise UnreadableRecordError("not a report of this cluster")
    if not value["executor"] or type(value["waiting"]) is not int or value["waiting"] < 0:
        raise UnreadableRecordError("not a report")
    return Statement(
        record=record,
        cluster=cluster,
        node="",
        at_us=record.append_at_us,
        kind="Report",
        is_deleted=False,
        content={"read_to_us": to_us(value["readTo"])},
    )


def _watch(record: InputRecord, value: Json, cluster: str, at_us: int) -> Statement:
    if value["cluster"] != cluster:
        raise UnreadableRecordError("of another cluster")
    epoch = value.get("epoch", 0)
    if type(epoch) is not int or not 0 <= epoch <= _LAST_EPOCH:
        raise UnreadableRecordError("not an epoch")
    if value["type"] not in _CHANGES:
        return _signal(record, value, cluster, at_us)
    content = value["object"]
    meta, spec = content["metadata"], content.get("spec") or {}
    kind = "Node" if record.topic == "nodes" else "Pod"
    if content["kind"] != kind or not (meta["uid"] and meta["name"] and int(meta["resourceVersion"])):
        raise UnreadableRecordError("not the kind of object that belongs here")
    if kind == "Pod" and not meta["namespace"]:
        raise UnreadableRecordError("a pod without a namespace")
    name = meta["name"] if kind == "Node" else spec.get("nodeName") or ""
    node = _node(name) if name else ""
    is_beyond = value["type"] != "DELETED" and any(len(entries) > _LARGEST_LIST for entries in _lists(spec))
    if is_beyond and kind == "Pod":
        raise UnreadableRecordError("a list beyond the limit: left alone")
    if is_beyond:
        content = {**content, "spec": {**spec, "taints": []}}
    return Statement(
        record=record,
        cluster=cluster,
        node=node,
        at_us=at_us,
        kind=kind if node else "Unbound",
        is_deleted=value["type"] == "DELETED",
        content=content,
        epoch=epoch,
        is_added=value["type"] == "ADDED",
        is_beyond=is_beyond,
    )


def _signal(record: InputRecord, value: Json, cluster: str, at_us: int) -> Statement:
    kind, is_listed = value["type"], value["type"] == "LISTED"
    if kind not in ("HEARTBEAT", "BOOKMARK", "LISTED"):
        raise UnreadableRecordError("unknown type")
    if len(value.get("clusterUid") or "") > _LONGEST_CLUSTER_UID:
        raise UnreadableRecordError("a UID beyond the limit")
    return Statement(
        record=record,
        cluster=cluster,
        node="",
        at_us=at_us,
        kind=kind,
        is_deleted=is_listed,
        content=_listing(value["listing"]) if is_listed else {},
        epoch=value.get("epoch", 0),
        cluster_uid=value.get("clusterUid") or "",
    )


def _listing(listing: Json) -> Json:
    if not int(listing["resourceVersion"]):
        raise UnreadableRecordError("not a listing")
    for uids in listing["uids"].values():
        if not isinstance(uids, list) or not all(isinstance(uid, str) for uid in uids):
            raise UnreadableRecordError("not UIDs by node")
    return {"after": "", "through": None, "uidAfter": "", "uidThrough": None, **listing}
