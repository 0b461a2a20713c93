"""Records as they were recorded in format 1: a cluster is spread by node over all partitions of a topic."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.recordings.recording_folder import MANIFEST, RecordingWriter
from evictstream.streams.partitioner import partition_of

EVERYWHERE = {"HEARTBEAT", "LISTED", "FORGET", "ACCEPT_GAP"}

Json = dict[str, Any]


def in_old_form(records: Iterable[RecordedRecord], partitions: int) -> list[RecordedRecord]:
    """Spread each record, and give it its old key; signals go to every partition."""
    found: list[RecordedRecord] = []
    offsets = Counter[tuple[Role, int]]()
    for record in records:
        for key, partition, value in _spread(record, partitions):
            offset = offsets[record.topic, partition]
            offsets[record.topic, partition] += 1
            found.append(msgspec.structs.replace(record, key=key, partition=partition, offset=offset, value=value))
    return found


def _spread(record: RecordedRecord, partitions: int) -> Iterator[tuple[bytes, int, bytes]]:
    value: Json = json.loads(record.value or b"")
    cluster = (record.key or b"").decode()
    if value.get("type") not in EVERYWHERE:
        node = _node(record.topic, value)
        key = f"{cluster}/{node}".encode()
        yield key, partition_of(key, partitions), record.value or b""
        return
    for partition in range(partitions):
        told = value
        if value["type"] == "LISTED":
            uids = {
                node: some
                for node, some in value["listing"]["uids"].items()
                if partition_of(f"{cluster}/{node}".encode(), partitions) == partition
            }
            told = {**value, "listing": {**value["listing"], "uids": uids}}
        yield f"{cluster}/".encode(), partition, json.dumps(told).encode()


def _node(topic: Role, value: Json) -> str:
    if topic in {"nodes", "pods"}:
        thing = value["object"]
        return str(thing["metadata"]["name"] if topic == "nodes" else thing["spec"].get("nodeName", ""))
    return str(value["node"])


def write_old(folder: Path, records: Sequence[RecordedRecord], partitions: int) -> Path:
    """Write a recording of format 1 of records in the old form."""
    with RecordingWriter(folder, partitions=partitions) as writer:
        for record in records:
            writer.write(record)
    clusters = Counter((record.key or b"").decode().partition("/")[0] for record in records)
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | {"format": 1, "clusters": clusters, "sha256": ""}))
    return folder
