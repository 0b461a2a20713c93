"""Evidence without Kafka: what a feed without fault leaves behind, to be spoiled by a test."""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from evictstream.kit.conformance.command_writer import partition_of_key, uid_of
from evictstream.kit.conformance.feed_evidence import ExpectedObjects, FeedEvidence, FeedRecord, used_fields
from evictstream.kit.conformance.feed_rules import FEED_RULES
from evictstream.kit.conformance.findings import judge_rules
from evictstream.kit.conformance.playground import CLUSTER
from evictstream.kit.conformance.process_rules import ProcessEvidence
from evictstream.kit.conformance.topic_recorder import SeenRecord
from evictstream.models.instants import instant_text

PARTITIONS = 3
KEY = CLUSTER.encode()
TOPICS = {"Node": "nodes", "Pod": "pods"}
REBUILT_AT, SILENT_AT, ENDED_AT = 300.0, 400.0, 470.0
CLUSTER_UID = "0a54f6a0-8e0b-4a7e-b2a4-5f8a2b2f6f10"

Raw = dict[str, Any]
Spoil = Callable[["ToldFeed"], object]


class ToldFeed:
    """A cluster, and what is written about it. A record is a dict: `at`, `kind`, `key`, `partition`, `event`."""

    def __init__(self) -> None:
        self.now = 100.0
        self.version = 10
        self.epoch = 0
        self.objects: dict[str, tuple[str, Raw]] = {}
        self.records: list[Raw] = []
        self.looks: dict[str, tuple[float, Raw]] = {}
        self.states: dict[tuple[str, int], set[Any]] = {}
        self.more: Raw = {
            "away": (200.0, 205.0),
            "rebuilt_at": REBUILT_AT,
            "silent_at": SILENT_AT,
            "ended_at": ENDED_AT,
            "process": ProcessEvidence(stop_seconds=0.2),
        }

    def put(self, kind: str, name: str, nodeName: str = "", **content: Any) -> str:  # noqa: N803 - the field's name
        self.version += 1
        uid = uid_of(name)
        meta = {"name": name, "uid": uid, "resourceVersion": str(self.version)}
        found: Raw = {"kind": kind, "apiVersion": "v1", "metadata": meta}
        found["spec"] = content if kind == "Node" else {"nodeName": nodeName, **content}
        if kind == "Pod":
            meta["namespace"] = "shop"
        self.objects[uid] = (kind, found)
        self.states.setdefault((uid, self.version), set()).add(used_fields(kind, found))
        return uid

    def write(self, type_: str, uid: str) -> None:
        kind, found = self.objects[uid]
        self.send(kind, type_, object=copy.deepcopy(found))

    def delete(self, uid: str) -> None:
        self.version += 1
        self.objects[uid][1]["metadata"]["resourceVersion"] = str(self.version)
        self.write("DELETED", uid)
        del self.objects[uid]

    def list_all(self) -> None:
        for uid in self.objects:
            self.write("ADDED", uid)
        for kind, (after, through) in itertools.product(TOPICS, (("", "node-2"), ("node-2", None))):
            uids: dict[str, list[str]] = {}
            for uid, (of, found) in self.objects.items():
                node = found["metadata"]["name"] if of == "Node" else found["spec"]["nodeName"]
                if of == kind and after < node and (through is None or node <= through):
                    uids.setdefault(node, []).append(uid)
            listing = {"resourceVersion": str(self.version), "after": after, "through": through, "uids": uids}
            self.send(kind, "LISTED", clusterUid=CLUSTER_UID, listing=listing)

    def beat(self, at: float) -> None:
        self.now = at
        for kind in TOPICS:
            self.send(kind, "HEARTBEAT", clusterUid=CLUSTER_UID, listedAt=instant_text(int(at * 1e6)))

    def send(self, kind: str, type_: str, **more: Any) -> None:
        self.now += 0.001
        event = {"cluster": CLUSTER, "type": type_, "observedAt": instant_text(int(self.now * 1e6)), **more}
        event |= {"epoch": self.epoch} if self.epoch else {}
        partition = partition_of_key(KEY, PARTITIONS)
        self.records.append({"at": self.now, "kind": kind, "key": KEY, "partition": partition, "event": event})

    def look(self, situation: str) -> None:
        held = {uid: used_fields(kind, found) for uid, (kind, found) in self.objects.items()}
        self.looks[situation] = (self.now, held)
        self.now += 1

    def of(self, type_: str, kind: str | None = None) -> list[Raw]:
        return [one for one in self.records if one["event"].get("type") == type_ and kind in {None, one["kind"]}]

    def about(self, name: str) -> list[Raw]:
        uid = uid_of(name)
        return [one for one in self.records if one["event"].get("object", {}).get("metadata", {}).get("uid") == uid]

    def drop(self, *records: Raw) -> None:
        self.records = [one for one in self.records if all(one is not other for other in records)]

    def evidence(self) -> FeedEvidence:
        offsets = Counter[tuple[str, int]]()
        found = []
        for one in self.records:
            place = one["kind"], one["partition"]
            offsets[place] += 1
            record = SeenRecord(
                at=one["at"],
                topic=TOPICS[one["kind"]],
                partition=one["partition"],
                offset=offsets[place],
                key=one["key"],
                value=one["event"] if isinstance(one["event"], bytes) else json.dumps(one["event"]).encode(),
            )
            found.append(FeedRecord.of(record))
        return FeedEvidence(
            records=found,
            snapshots={
                name: ExpectedObjects(records=sum(1 for one in found if one.at <= at), objects=held)
                for name, (at, held) in self.looks.items()
            },
            states=self.states,
            cluster_uid=CLUSTER_UID,
            partitions=PARTITIONS,
            **self.more,
        )

    def standings(self) -> dict[str, str]:
        return {one.name: one.standing.value for one in judge_rules(FEED_RULES, self.evidence())}


def without_fault() -> ToldFeed:
    """What the contract wants, in each situation of the play."""
    told = ToldFeed()
    for number in range(6):
        told.put("Node", f"node-{number}")
        told.put("Pod", f"pod-{number}", f"node-{number}")
    told.list_all()
    told.beat(101.0)
    told.look("listing")
    told.write("MODIFIED", told.put("Node", "node-0", taints=[{"key": "k", "effect": "NoExecute"}]))
    told.delete(uid_of("pod-1"))
    told.look("changes")
    for situation in ("cut", "half-line", "garbage", "error-event"):
        told.write("ADDED", told.put("Pod", situation, "node-2"))
        told.look(situation)
    told.beat(111.0)
    told.version += 1
    del told.objects[uid_of("pod-2")]
    told.list_all()
    told.look("forgotten")
    told.beat(121.0)
    told.now = 206.0
    told.version += 1
    del told.objects[uid_of("pod-3")]
    told.list_all()
    told.look("away")
    told.beat(208.0)
    told.now, told.version, told.epoch = REBUILT_AT + 0.5, 1, 1
    for kind, found in list(told.objects.values()):
        told.put(kind, found["metadata"]["name"], **found["spec"])
    del told.objects[uid_of("half-line")]
    told.list_all()
    told.look("rebuilt")
    told.beat(REBUILT_AT + 2)
    for seconds in (10.0, 20.0, 30.0, 40.0):
        told.beat(SILENT_AT + seconds)
    return told
