"""A pod that comes back on another node, without word of its end (docs/guarantees.md, "What is not promised").

Its two nodes are two aggregates, and may be two partitions, so the old one cannot know. What ends the eviction there is
what rule 4 for feeds asks for (docs/messages.md): the next listing is followed by `DELETED` of what it no longer has.
"""

from __future__ import annotations

import collections
import json
from typing import Any

import pytest

from evictstream.models.instants import instant_text
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.harness.plans import one_partition, taken_over
from tests.streams.worker.story import NOON_US, SECOND_US, TAINT, FakeRecord

LAST_TOLD, LISTED = "110", "150"


class Cluster:
    """One partition with two nodes of a cluster, its rows, and all that it has sent."""

    def __init__(self) -> None:
        self.now_us = NOON_US
        self.config = one_partition(lambda: self.now_us)
        self.logic = EvictionPartition(0, self.config)
        self.rows: dict[bytes, bytes] = {}
        self.commands: list[dict[str, Any]] = []
        self.decisions: list[dict[str, Any]] = []
        self.offset = 0

    def tell(self, at: float, topic: str, node: str, event_type: str, **parts: object) -> None:
        self.now_us = NOON_US + round(at * SECOND_US)
        self.offset += 1
        value = json.dumps({"cluster": "lab", "type": event_type, **parts}).encode()
        record = FakeRecord(self.offset, self.now_us // 1000, f"lab/{node}".encode(), value)
        outbox = Outbox()
        collections.deque(self.logic.apply(topic, [record], outbox), maxlen=0)
        self.take(outbox)

    def node(self, at: float, name: str, version: str, *taints: dict[str, str]) -> None:
        meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": version}
        self.tell(at, "nodes", name, "ADDED", object={"kind": "Node", "metadata": meta, "spec": {"taints": taints}})

    def pod(self, at: float, node: str, uid: str, version: str, seconds: int) -> None:
        meta = {"namespace": "shop", "name": "web", "uid": uid, "resourceVersion": version}
        spec = {"nodeName": node, "tolerations": [{"operator": "Exists", "tolerationSeconds": seconds}]}
        self.tell(at, "pods", node, "ADDED", object={"kind": "Pod", "metadata": meta, "spec": spec})

    def gone(self, at: float, node: str, uid: str, version: str) -> None:
        """Report a pod's end with no more than a feed has to remember."""
        meta = {"namespace": "shop", "name": "web", "uid": uid, "resourceVersion": version}
        self.tell(at, "pods", node, "DELETED", object={"kind": "Pod", "metadata": meta, "spec": {"nodeName": node}})

    def list_again(self, at: float, version: str, *, gone_times: int = 1) -> None:
        """List both nodes and the pod that is there, report the one that is gone, and end the listing."""
        self.node(at, "node-a", "101", TAINT)
        self.node(at, "node-b", "102")
        self.pod(at, "node-b", "uid-2", "120", 1000)
        for _ in range(gone_times):
            self.gone(at, "node-a", "uid-1", version)
        for topic in ("nodes", "pods"):
            self.tell(at, topic, "", "HEARTBEAT", listedAt=instant_text(self.now_us))

    def fire(self, at: float) -> None:
        self.now_us = NOON_US + round(at * SECOND_US)
        outbox = Outbox()
        self.logic.fire(self.now_us, 100, outbox)
        self.take(outbox)

    def restart(self) -> None:
        self.logic, outbox = taken_over(self.config, self.rows)
        self.take(outbox)

    def take(self, outbox: Outbox) -> None:
        for key, value in outbox.rows.items():
            if value is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = value
        self.commands += [json.loads(message.value) for message in outbox.messages.get("commands", ())]
        self.decisions += [json.loads(message.value) for message in outbox.messages.get("decisions", ())]
        assert "dead-letters" not in outbox.messages

    @property
    def sent(self) -> list[tuple[str, str, str]]:
        return [(command["action"], command["node"], command["podUid"]) for command in self.commands]


@pytest.fixture
def cluster() -> Cluster:
    """A pod that left a tainted node and came back on another one, without an event of its end."""
    found = Cluster()
    found.node(0, "node-a", "101", TAINT)
    found.node(0, "node-b", "102")
    found.pod(0, "node-a", "uid-1", LAST_TOLD, 10)
    found.pod(5, "node-b", "uid-2", "120", 1000)
    return found


def test_the_eviction_stays_owed_on_the_old_node(cluster: Cluster) -> None:
    for at in (10, 45, 200):
        cluster.fire(at)
    cluster.restart()
    cluster.fire(1000)
    assert cluster.sent[0] == ("Schedule", "node-a", "uid-1")
    assert set(cluster.sent[1:]) == {("Evict", "node-a", "uid-1")}
    assert [command["attempt"] for command in cluster.commands] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("gone_times", [1, 2], ids=["told once", "told twice"])
@pytest.mark.parametrize("restarts", [(), (50,), (70,), (50, 70)], ids=["no restart", "before", "after", "both"])
@pytest.mark.parametrize("version", [LAST_TOLD, LISTED], ids=["version last told", "version of the listing"])
@pytest.mark.parametrize(
    ("fired", "last", "decision"),
    [
        pytest.param((10, 45), [], "Completed", id="issued"),
        pytest.param((), [("Cancel", "node-a", "uid-1")], "Cancelled", id="scheduled"),
    ],
)
def test_the_next_listing_ends_it(
    cluster: Cluster,
    fired: tuple[int, ...],
    last: list[tuple[str, str, str]],
    decision: str,
    version: str,
    restarts: tuple[int, ...],
    gone_times: int,
) -> None:
    for at in fired:
        cluster.fire(at)
    before = len(cluster.sent)
    cluster.now_us = NOON_US + (50 if fired else 6) * SECOND_US
    if 50 in restarts:
        cluster.restart()
    cluster.list_again(60 if fired else 7, version, gone_times=gone_times)
    if 70 in restarts:
        cluster.restart()
    cluster.tell(2000, "nodes", "", "HEARTBEAT")
    cluster.tell(2000, "pods", "", "HEARTBEAT")
    cluster.fire(2000)
    assert cluster.sent[before:] == last
    ends = [found for found in cluster.decisions if found["decision"] in {"Completed", "Cancelled"}]
    assert [(found["decision"], found["verdict"], found["podUid"]) for found in ends] == [
        (decision, "PodGone", "uid-1")
    ]
    assert cluster.logic.open_evictions()["lab"] == 0


def test_an_end_with_an_outdated_version_ends_nothing(cluster: Cluster) -> None:
    cluster.gone(60, "node-a", "uid-1", "109")
    assert cluster.logic.open_evictions()["lab"] == 1
