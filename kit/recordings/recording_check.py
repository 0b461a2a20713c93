"""What is odd about a recording, with counts and places: what a replay of it has to assume."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

import msgspec

from evictstream.kit.recordings.record import INPUT_ROLES, STEERING_ROLES, RecordedRecord, Role
from evictstream.models.instants import instant_text
from evictstream.models.kubernetes.resource_versions import read_version

MOST_PLACES: Final = 5
"""Named for each kind of finding; all are counted."""

SILENCE_MS: Final = 60_000
"""Feeds give a sign of life each few seconds."""

MISSING_OFFSETS: Final = "offsets missing"
TIMES_BACK: Final = "times that went back"
VERSIONS_BACK: Final = "resource versions that went back"
FOREIGN: Final = "events of another cluster than their key's"
UNREADABLE: Final = "records that are no events"
SILENCES: Final = "minutes and more without a record of a cluster"

ASSUMED: Final = {
    MISSING_OFFSETS: "compacted, or transaction markers: nothing replaces them",
    TIMES_BACK: "they get the time of the record before",
    VERSIONS_BACK: "an older version is dropped as stale, unless a new epoch or listing explains it",
    FOREIGN: "dead letters, as in the service",
    UNREADABLE: "dead letters, as in the service",
    SILENCES: "evictions wait, if the feed sends heartbeats otherwise",
}
"""What a replay makes of each."""


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Thing(msgspec.Struct, gc=False):
    metadata: _Metadata | None = None


class _Heading(msgspec.Struct, gc=False):
    cluster: str | None = None
    epoch: int = 0
    object: _Thing | None = None


_heading: Final = msgspec.json.Decoder(_Heading).decode


class RecordingCheck:
    """Takes all records of a recording in order of time. Some 200 bytes are kept for each object.

    Attributes:
        records: taken.
        counts: findings by kind.
        places: the first of each kind.
    """

    def __init__(self) -> None:
        self.records = 0
        self.counts: Counter[str] = Counter()
        self.places: defaultdict[str, list[str]] = defaultdict(list)
        self._last: dict[tuple[Role, int], tuple[int, int]] = {}
        self._versions: dict[tuple[str, str], tuple[int, int]] = {}
        self._heard_ms: dict[str, int] = {}

    def take(self, records: Iterable[RecordedRecord]) -> None:
        """Look at all records."""
        for record in records:
            self.records += 1
            if record.topic in STEERING_ROLES:  # compacted, and of no cluster
                continue
            self._look_at_place(record)
            cluster = record.cluster
            self._look_at_silence(record, cluster)
            if record.topic in INPUT_ROLES:
                self._look_at_event(record, cluster)

    def summary(self) -> dict[str, object]:
        """Give all findings for programs."""
        findings = [
            {"what": kind, "count": self.counts[kind], "assumed": assumed, "first": self.places[kind]}
            for kind, assumed in ASSUMED.items()
        ]
        return {"records": self.records, "findings": findings}

    def _look_at_place(self, record: RecordedRecord) -> None:
        place = record.topic, record.partition
        offset, timestamp = self._last.get(place, (record.offset - 1, record.timestamp))
        if record.offset != offset + 1:
            self._found(MISSING_OFFSETS, record, f", {record.offset - offset - 1} before", record.offset - offset - 1)
        if record.timestamp < timestamp:
            self._found(TIMES_BACK, record, f", by {timestamp - record.timestamp} ms")
        self._last[place] = record.offset, max(record.timestamp, timestamp)

    def _look_at_silence(self, record: RecordedRecord, cluster: str) -> None:
        heard_ms = self._heard_ms.get(cluster, record.timestamp)
        if record.timestamp - heard_ms > SILENCE_MS:
            since = f", {cluster} since {instant_text(heard_ms * 1_000)}"
            self._found(SILENCES, record, since)
        self._heard_ms[cluster] = max(heard_ms, record.timestamp)

    def _look_at_event(self, record: RecordedRecord, cluster: str) -> None:
        if record.value is None:
            return
        try:
            heading = _heading(record.value)
            metadata = heading.object.metadata if heading.object is not None else None
            version = 0 if metadata is None else read_version(metadata.resource_version)
        except (ValueError, RecursionError):
            self._found(UNREADABLE, record)
            return
        if heading.cluster is not None and heading.cluster != cluster:
            self._found(FOREIGN, record, f", {heading.cluster}")
        if metadata is None or not isinstance(version, int):
            return  # versions that are no numbers have no order
        epoch, newest = self._versions.get((cluster, metadata.uid), (0, 0))
        if epoch == heading.epoch and version < newest:
            self._found(VERSIONS_BACK, record, f", {version} after {newest}")
        else:
            self._versions[cluster, metadata.uid] = heading.epoch, version

    def _found(self, kind: str, record: RecordedRecord, more: str = "", count: int = 1) -> None:
        self.counts[kind] += count
        if len(self.places[kind]) < MOST_PLACES:
            self.places[kind].append(f"{record.topic}, partition {record.partition}, offset {record.offset}{more}")
