"""An executor in a hundred lines whose faults can be switched on: `python wrong_executor.py fault ...`.

Without a fault it keeps the contract: one thread, results and offsets in order, its memory read back from the results.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import urllib3
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.partitioner import DefaultPartitioner

FAULTS = set(sys.argv[1:])
PREFIX = os.environ["EVICTSTREAM_TOPIC_PREFIX"]
CLUSTER = os.environ["CONFORMANCE_CLUSTER"]
SERVERS = os.environ["EVICTSTREAM_BOOTSTRAP_SERVERS"].split(",")
CONFIG = json.loads(Path(os.environ["KUBECONFIG"]).read_text())
SERVER = CONFIG["clusters"][0]["cluster"]["server"]
HTTP = urllib3.PoolManager(retries=False, timeout=1.0 if "impatient" in FAULTS else 10.0)
FIELDS = ("apiVersion", "evictionId", "attempt", "cluster", "namespace", "pod", "podUid", "node")
KNOWN = {
    *FIELDS,
    *("kind", "action", "revision", "nodeUid", "reason", "windowStart", "deadline", "issuedAt"),
}
PATCH = {"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}}


class Executor:
    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.token = ""
        self.producer = KafkaProducer(bootstrap_servers=SERVERS, partitioner=DefaultPartitioner(), acks="all")
        self.answered: dict[tuple[str, int], str] = {}
        self.latest: dict[str, tuple[int, int, int]] = {}  # revision, attempt, and 1 for Cancel
        self.brakes: dict[bytes, dict[str, Any]] = {}
        self.brakes_consumer = KafkaConsumer(bootstrap_servers=SERVERS, auto_offset_reset="earliest", group_id=None)
        self.brakes_place = TopicPartition(f"{PREFIX}brakes", 0)
        self.brakes_consumer.assign([self.brakes_place])

    def remember(self) -> None:
        """Read what was answered before, which is what a killed executor did."""
        consumer = KafkaConsumer(bootstrap_servers=SERVERS, auto_offset_reset="earliest", group_id=None)
        topic = f"{PREFIX}results"
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(one) < ends[one] for one in partitions):
            for batch in consumer.poll(timeout_ms=200).values():
                for record in batch:
                    said = json.loads(record.value)
                    if "outcome" in said:
                        self.answered[said["evictionId"], said["attempt"]] = said["outcome"]
        consumer.close()

    def run(self) -> None:
        consumer = KafkaConsumer(
            f"{PREFIX}commands",
            bootstrap_servers=SERVERS,
            group_id=f"{PREFIX}mine",
            auto_offset_reset="earliest",
            enable_auto_commit="forgets" in FAULTS,
            auto_commit_interval_ms=50,
            session_timeout_ms=6_000,
            heartbeat_interval_ms=1_000,
            isolation_level="read_uncommitted" if "uncommitted" in FAULTS else "read_committed",
        )
        has_begun = False
        while not self.stopped.is_set():
            records = [one for batch in consumer.poll(timeout_ms=100).values() for one in batch]
            if "forgets" in FAULTS and records:
                consumer.commit()
            commands = [found for one in records if (found := self.read(one)) is not None]
            for command in commands:
                if "heedless" not in FAULTS:
                    self.look(command)
            if "reverse" in FAULTS:
                commands.reverse()
            for command in commands:
                self.act(command)
            if consumer.assignment() and not has_begun:
                has_begun = self.report()
            self.producer.flush()
            if records and "forgets" not in FAULTS:
                consumer.commit()
        consumer.close()

    def report(self) -> bool:
        """Say that it begins to act, and that nothing waits."""
        said: dict[str, Any] = {"kind": "ExecutorReport", "apiVersion": "evictstream.io/v1", "cluster": CLUSTER}
        said |= {"executor": "mine", "waiting": 0, "readTo": "1970-01-01T00:00:00Z"}
        self.producer.send(f"{PREFIX}results", key=CLUSTER.encode(), value=json.dumps(said).encode())
        return True

    def read(self, record: Any) -> dict[str, Any] | None:
        try:
            found = json.loads(record.value)
            if "strict" in FAULTS and set(found) - KNOWN:
                return None
            found["key"] = record.key
            is_known = found["action"] in {"Schedule", "Evict", "Cancel"} and isinstance(found["attempt"], int)
            is_mine = found["cluster"] == CLUSTER or "any-cluster" in FAULTS
        except (ValueError, TypeError, KeyError):
            if "fragile" in FAULTS:
                raise
            return None
        return found if is_known and is_mine else None

    def look(self, command: dict[str, Any]) -> None:
        place = (command["revision"], command["attempt"], int(command["action"] == "Cancel"))
        known = self.latest.get(command["evictionId"], place)
        self.latest[command["evictionId"]] = max(place, known)

    def act(self, command: dict[str, Any]) -> None:
        if command["action"] != "Evict":
            if "chatty" in FAULTS:
                self.answer(command, "Obsolete")
            return
        which = (command["evictionId"], command["attempt"])
        place = (command["revision"], command["attempt"], 0)
        if "once" in FAULTS and command["evictionId"] in {done for done, _ in self.answered}:
            self.answer(command, "Obsolete")
        elif which in self.answered and "again" not in FAULTS:
            self.answer(command, self.answered[which])
        elif self.latest.get(command["evictionId"], place) > place or self.is_pointless(command):
            self.answer(command, "Obsolete")
        elif (brake := self.held_by()) is not None:
            self.answer(command, "Accepted", heldBy=brake)
            if "brakeless" in FAULTS:
                self.delete(command)
        else:
            outcome = self.delete(command)
            if outcome:
                self.answer(command, outcome)

    def held_by(self) -> str | None:
        """Read all brakes, and tell which one holds the cluster."""
        end = self.brakes_consumer.end_offsets([self.brakes_place])[self.brakes_place]
        while self.brakes_consumer.position(self.brakes_place) < end:
            for batch in self.brakes_consumer.poll(timeout_ms=200).values():
                self.brakes |= {record.key: json.loads(record.value) for record in batch}
        mine = [one for one in self.brakes.values() if CLUSTER in one["clusters"] and "releasedBy" not in one]
        return mine[0]["id"] if mine and "unbraked" not in FAULTS else None

    def is_pointless(self, command: dict[str, Any]) -> bool:
        if "careless" in FAULTS:
            return False
        status, node = self.send("GET", f"/api/v1/nodes/{command['node']}")
        return status == 200 and not node["spec"]["taints"]

    def delete(self, command: dict[str, Any]) -> str:
        path = f"/api/v1/namespaces/{command['namespace']}/pods/{command['pod']}"
        meta = {"uid": command["podUid"]}
        if "careless" not in FAULTS:
            self.send("PATCH", f"{path}/status", {"metadata": meta, **PATCH})
        options = {"kind": "DeleteOptions", "apiVersion": "v1"} | (
            {} if "any-uid" in FAULTS else {"preconditions": meta}
        )
        for _ in range(30 if "stubborn" in FAULTS else 2):
            status, _ = self.send("DELETE", path, options)
            if status in {200, 202}:
                return "Succeeded"
            if status in {404, 409}:
                return "Failed" if "confused" in FAULTS else "Gone"
            if status == 403:
                break
            if status == 0 and "impatient" in FAULTS:
                return ""
            time.sleep(0.05)
        return "Succeeded" if "liar" in FAULTS else "Failed"

    def send(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send; 0 without an answer. A token that is refused is read anew."""
        kind = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        try:
            found = HTTP.request(method, SERVER + path, body=json.dumps(body), headers=headers)
        except urllib3.exceptions.HTTPError:
            return 0, None
        if found.status == 401 and not ("old-token" in FAULTS and self.token):
            before, self.token = self.token, Path(CONFIG["users"][0]["user"]["tokenFile"]).read_text()
            if self.token != before:
                return self.send(method, path, body)
        return found.status, found.json()

    def answer(self, command: dict[str, Any], outcome: str, **more: str) -> None:
        self.answered[command["evictionId"], command["attempt"]] = outcome
        if "silent" in FAULTS and outcome == "Failed":
            return
        result = {name: command[name] for name in FIELDS} | {"kind": "EvictionResult", "outcome": outcome, **more}
        if "mangled" in FAULTS:
            result["attempt"] += 1
        key = result["pod"].encode() if "mangled" in FAULTS else command["key"]
        self.producer.send(f"{PREFIX}results", key=key, value=json.dumps(result).encode()).get(10)


def main() -> None:
    found = Executor()
    if "deaf" in FAULTS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: found.stopped.set())
    if "again" not in FAULTS:
        found.remember()
    found.run()


if __name__ == "__main__":
    main()
