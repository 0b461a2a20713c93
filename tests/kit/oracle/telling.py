"""Stories written by hand, for tests of the oracle: what was heard, what was said, second by second.

Seconds count from an arbitrary instant, and a run ends at 60. Everything is about the node `c/n` and its pod `p`.
"""

from __future__ import annotations

import json
from typing import Any

from evictstream.kit.oracle import InputRecord, KeyedRecord, MessageRecord, Violation, judge
from evictstream.kit.oracle.records import InputTopic, OutputTopic
from tests.faults.numbers import NUMBERS
from tests.faults.objects import Json, Node, Pod, instant, report, watch_event

BEGIN_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
KEY = b"c"
TAINT: Json = {"key": "maintenance", "effect": "NoExecute"}
DECISIONS = {"Schedule": "Scheduled", "Evict": "Issued", "Cancel": "Cancelled"}


def at(seconds: float) -> int:
    return BEGIN_US + int(seconds * SECOND_US)


def tolerating(seconds: int | None, key: str = "maintenance") -> Json:
    found: Json = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}


class Story:
    """Inputs and messages in the order in which they are told."""

    def __init__(self) -> None:
        self.inputs: list[InputRecord] = []
        self.messages: list[MessageRecord] = []
        self.brakes: list[KeyedRecord] = []
        self.policies: list[KeyedRecord] = []
        self.incidents: list[KeyedRecord] = []
        self._version = 0

    def hear(self, topic: InputTopic, seconds: float, value: bytes | None, key: bytes = KEY) -> Story:
        offset = sum(record.topic == topic for record in self.inputs)
        self.inputs.append(
            InputRecord(topic=topic, partition=0, offset=offset, append_at_us=at(seconds), key=key, value=value)
        )
        return self

    def node(
        self,
        seconds: float,
        *taints: Json,
        kind: str = "MODIFIED",
        ready: str = "True",
        observed: float | None = None,
        version: int = 0,
        epoch: int = 0,
        name: str = "n",
        zone: str | None = None,
    ) -> Story:
        self._version += 1
        uid = "node" if name == "n" else f"node-{name}"
        shown = Node("c", name, uid, list(taints), ready, zone).shown(version or self._version)
        observed_at_us = at(seconds if observed is None else observed)
        return self.hear("nodes", seconds, watch_event("c", kind, shown, observed_at_us, epoch=epoch))

    def pod(
        self,
        seconds: float,
        *tolerations: Json,
        kind: str = "MODIFIED",
        phase: str = "Running",
        version: int = 0,
        epoch: int = 0,
        uid: str = "pod",
        node: str = "n",
        name: str = "p",
        owner: str | None = None,
    ) -> Story:
        self._version += 1
        pod = Pod("c", "ns", name, uid, node, list(tolerations), phase, owner=owner)
        shown = pod.shown(version or self._version)
        return self.hear("pods", seconds, watch_event("c", kind, shown, at(seconds), epoch=epoch))

    def listed(
        self,
        topic: InputTopic,
        seconds: float,
        *uids: str,
        version: int = 0,
        epoch: int = 0,
        after: str = "",
        through: str | None = None,
        cluster_uid: str = "k",
        **more: str | None,
    ) -> Story:
        """Let a listing hold these UIDs on the node."""
        self._version += 1
        listing = {
            "resourceVersion": str(version or self._version),
            "after": after,
            "through": through,
            "uids": {"n": uids} if uids else {},
            **more,
        }
        value = watch_event("c", "LISTED", None, at(seconds), epoch=epoch, clusterUid=cluster_uid, listing=listing)
        return self.hear(topic, seconds, value)

    def beats(self, begin: float, end: float, *, epoch: int = 0, cluster_uid: str = "k") -> Story:
        """Let heartbeats come each second on both topics."""
        value = watch_event("c", "HEARTBEAT", None, None, epoch=epoch, clusterUid=cluster_uid)
        for second in range(int(begin), int(end)):
            self.hear("nodes", second, value).hear("pods", second, value)
        return self

    def result(self, seconds: float, outcome: str, attempt: int = 1, held_by: str | None = None) -> Story:
        value: Json = {
            "apiVersion": "evictstream.io/v1",
            "kind": "EvictionResult",
            "evictionId": "e0",
            "attempt": attempt,
            "cluster": "c",
            "namespace": "ns",
            "pod": "p",
            "podUid": "pod",
            "node": "n",
            "outcome": outcome,
        }
        if held_by is not None:
            value["heldBy"] = held_by
        return self.hear("results", seconds, json.dumps(value).encode())

    def report(self, seconds: float, read_to: float = 15.01) -> Story:
        """Let an executor report that it has all in its queue that was issued until then."""
        return self.hear("results", seconds, report("c", instant(at(read_to))))

    def say(
        self,
        action: str,
        seconds: float,
        deadline: float = 15.0,
        *,
        name: str = "e0",
        revision: int = 1,
        attempt: int | None = None,
        verdict: str = "TolerationExpires",
        window: float = 10.0,
        taint: str = "maintenance",
        uid: str = "pod",
    ) -> Story:
        """Let a command be written, and the decision that belongs to it."""
        attempt = (action == "Evict") if attempt is None else attempt
        value = {
            "action": action,
            "evictionId": name,
            "revision": revision,
            "attempt": int(attempt),
            "cluster": "c",
            "namespace": "ns",
            "pod": "p",
            "podUid": uid,
            "node": "n",
            "reason": {"verdict": verdict, "taint": {"key": taint}},
            "windowStart": instant(at(window)),
            "deadline": instant(at(deadline)),
            "issuedAt": instant(at(seconds)),
        }
        self._write("commands", at(seconds), {}, json.dumps(value).encode())
        return self.decide(DECISIONS[action], self.messages[-1])

    def decide(self, decision: str, command: MessageRecord) -> Story:
        """Let a decision be written that says what a command says."""
        told = json.loads(command.value)
        reason = told.pop("reason")
        value = {**told, **reason, "decision": decision, "cause": {"at": told["issuedAt"]}}
        return self._write("decisions", command.append_at_us, {}, json.dumps(value).encode())

    def _write(self, topic: OutputTopic, at_us: int, headers: dict[str, bytes], value: bytes) -> Story:
        offset = len(self.messages)
        self.messages.append(
            MessageRecord(
                topic=topic,
                partition=0,
                offset=offset,
                append_at_us=at_us,
                key=KEY,
                headers=headers,
                value=value,
            )
        )
        return self

    def without(self, topic: OutputTopic, place: int) -> Story:
        """Take a message of a topic back, by its place among them."""
        self.messages.remove([message for message in self.messages if message.topic == topic][place])
        return self

    def brake(self, seconds: float, known: Any = 0, **fields: object) -> Story:
        """Let somebody write the brake `b`, and hear a while later that it stands there."""
        value = json.dumps({"kind": "Brake", "id": "b", "spreadSeconds": 0, **fields}).encode()
        self.brakes.append(KeyedRecord(append_at_us=at(seconds), known_at_us=at(known), key=b"b", value=value))
        return self

    def policy(self, seconds: float, spec: Json | None, *answers: Json, known: float = 0, **fields: object) -> Story:
        """Let somebody write the policy `g`, and hear a while later that it stands there."""
        value = {"kind": "Policy", "name": "g", "spreadSeconds": 0, "answers": answers, **fields}
        value |= {} if spec is None else {"spec": spec}
        text = json.dumps(value).encode()
        self.policies.append(KeyedRecord(append_at_us=at(seconds), known_at_us=at(known), key=b"g", value=text))
        return self

    def incident(self, seconds: float, state: str | None = "Waiting", **fields: object) -> Story:
        """Let the incident `i` of the policy `g` be published; without a state, its end."""
        value = {
            "id": "i",
            "at": instant(at(seconds)),
            "cluster": "c",
            "policy": "g",
            "taint": "maintenance",
            "state": state,
            "since": instant(at(10)),
            "openedAt": instant(at(11)),
            "openedWith": 2,
            "allowed": 1,
            "known": 2,
        } | fields
        text = None if state is None else json.dumps(value).encode()
        self.incidents.append(KeyedRecord(append_at_us=at(seconds), key=b"i", value=text))
        return self

    def bury(self, offset: int, digest: str = "") -> Story:
        headers = {
            "ce_id": f"pods/0/{offset}/{len(self.messages)}".encode(),
            "originTopic": b"evictstream.pods",
            "originPartition": b"0",
            "originOffset": str(offset).encode(),
            "sha256": digest.encode(),
        }
        return self._write("dead-letters", at(20), headers, b"")

    def violations(self, *, may_forget: bool = False) -> list[Violation]:
        return judge(
            self.inputs,
            self.messages,
            ended_at_us=at(60),
            partitions=1,
            limits=NUMBERS.limits(),
            may_forget=may_forget,
            brakes=self.brakes,
            policies=self.policies,
            incidents=self.incidents,
        )


def tainted(*tolerations: Json) -> Story:
    """The pod is there from 5 on, the taint from 10 on."""
    return Story().pod(5, *(tolerations or (tolerating(5),))).node(6).node(10, TAINT)


def evicted() -> Story:
    return tainted().say("Schedule", 10.1).say("Evict", 15.01).result(15.1, "Succeeded").pod(16, kind="DELETED")
