"""Feeds of the model cluster: they list, watch, miss things, stand still, and come again; several at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from evictstream.models.kubernetes.shapes import Kind
from evictstream.streams.feed.feed_records import FeedRecords
from evictstream.streams.feed.watched_objects import read_object
from tests.faults.loop.cluster import ModelCluster

CLUSTER = "lab"
KINDS: tuple[Kind, ...] = ("Node", "Pod")
TOPIC: dict[Kind, str] = {"Node": "nodes", "Pod": "pods"}

Send = Callable[[str, bytes, bytes], None]
"""Takes topic, key and value."""


class State(NamedTuple):
    """What is kept for the next feed, as on the topic `feeds`."""

    uid: str
    epoch: int
    version: int


class StateTopic:
    """What all feeds of the cluster share."""

    def __init__(self) -> None:
        self.kept: State | None = None


class ModelFeed:
    """One feed. It writes as long as somebody calls it: a second one, or one that stood still, does too."""

    def __init__(self, cluster: ModelCluster, states: StateTopic, send: Send) -> None:
        self._cluster = cluster
        self._states = states
        self._send = send
        self._position: dict[Kind, int] = {}
        self._listed_at_us: dict[Kind, int] = {}
        self._late: list[tuple[str, bytes, bytes]] = []
        self._records: FeedRecords | None = None

    def begin(self) -> None:
        """Find out who the cluster is, and whether its versions went back; list everything."""
        kept, cluster = self._states.kept, self._cluster
        epoch = 0 if kept is None else kept.epoch
        if kept is not None and (kept.uid != cluster.uid or cluster.version < kept.version):
            epoch += 1
        self._keep(epoch)
        self._records = FeedRecords(cluster=CLUSTER, uid=cluster.uid, epoch=epoch)
        for kind in KINDS:
            self.list(kind)

    def is_outdated(self) -> bool:
        """Whether another cluster answers, or versions went back. A real feed asks at each listing and heartbeat."""
        kept, records = self._states.kept, self._records
        assert kept is not None
        assert records is not None
        return (
            records.uid != self._cluster.uid or kept.epoch != records.epoch or self._cluster.version < self._reached()
        )

    def has_to_look(self) -> bool:
        """Whether the next write to the cluster would hide from this feed that versions went back.

        Nobody could see that. A real feed looks each ten seconds; a cluster that writes more than was lost meanwhile is
        beyond what it promises (docs/feed.md).
        """
        return self.is_outdated() and self._cluster.version + 1 >= self._reached()

    def _reached(self) -> int:
        assert self._states.kept is not None
        return max(self._states.kept.version, *self._position.values())

    def list(self, kind: Kind, *, is_late: bool = False) -> None:
        """Write all there is of a kind, then that it is all. `is_late` keeps the records for `send_late`."""
        assert self._records is not None
        send = (lambda *record: self._late.append(record)) if is_late else self._send
        now_us, uids = self._cluster.now_us, dict[str, list[str]]()
        head = self._records.head("ADDED")
        version = self._cluster.version
        for item in self._cluster.of(kind):
            found = read_object(kind, json.dumps(item).encode())
            send(TOPIC[kind], self._records.key, self._records.change(head, now_us, found.json))
            uids.setdefault(found.node, []).append(found.uid)
        for value in self._records.listed(now_us, str(version), uids):
            send(TOPIC[kind], self._records.key, value)
        self._keep(self._records.epoch)
        if not is_late:
            self._position[kind], self._listed_at_us[kind] = version, now_us

    def send_late(self) -> None:
        """Write what this feed has listed long ago and not written yet."""
        for record in self._late:
            self._send(*record)
        self._late.clear()

    def watch(self, kind: Kind, most: int) -> None:
        """Write some of what has happened since.

        What it has reached is kept at once. A real feed does so each ten seconds, and loses the rest when it is killed.
        """
        assert self._records is not None
        self._keep(self._records.epoch)
        if self._position[kind] < self._cluster.oldest:
            self.list(kind)
        for change in self._cluster.history:
            if most == 0 or change.version <= self._position[kind]:
                continue
            self._position[kind] = change.version
            if change.kind == kind:
                most -= 1
                found = read_object(kind, json.dumps(change.object).encode())
                value = self._records.change(self._records.head(change.type), self._cluster.now_us, found.json)
                self._send(TOPIC[kind], self._records.key, value)

    def beat(self) -> None:
        """Write heartbeats; a real feed does so only with both watches proven."""
        assert self._records is not None
        self._keep(self._records.epoch)
        for kind in KINDS:
            value = self._records.heartbeat(self._cluster.now_us, self._listed_at_us[kind])
            self._send(TOPIC[kind], self._records.key, value)

    def _keep(self, epoch: int) -> None:
        self._states.kept = State(self._cluster.uid, epoch, self._cluster.version)
