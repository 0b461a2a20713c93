"""A pod that comes back under its name on another node, without word of the old one's end, ends the old one.

All nodes of a cluster are in one partition, so the first event of the new pod is enough (semantics.md 12.3).
"""

from __future__ import annotations

import collections
import json
from typing import Any

import pytest

from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.harness.plans import one_partition, taken_over
from tests.streams.worker.story import NOON_US, SECOND_US, TAINT, FakeRecord

OLD, NEW = "110", "120"


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

    def tell(self, at: float, topic: str, event_type: str, **parts: object) -> None:
        self.now_us = NOON_US + round(at * SECOND_US)
        self.offset += 1
        value = json.dumps({"cluster": "lab", "type": event_type, **parts}).encode()
        record = FakeRecord(self.offset, self.now_us // 1000, b"lab", value)
        outbox = Outbox()
        collections.deque(self.logic.apply(topic, [record], outbox), maxlen=0)
        self.take(outbox)

    def node(self, at: float, name: str, version: str, *taints: dict[str, str]) -> None:
        meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": version}
        self.tell(at, "nodes", "ADDED", object={"kind": "Node", "metadata": meta, "spec": {"taints": taints}})

    def pod(self, at: float, node: str, uid: str, version: str, *, seconds: int = 10, epoch: int = 0) -> None:
        meta = {"namespace": "shop", "name": "web", "uid": uid, "resourceVersion": version}
        spec = {"nodeName": node, "tolerations": [{"operator": "Exists", "tolerationSeconds": seconds}]}
        self.tell(at, "pods", "ADDED", epoch=epoch, object={"kind": "Pod", "metadata": meta, "spec": spec})

    def gone(self, at: float, node: str, uid: str, version: str) -> None:
        """Report a pod's end with no more than a feed has to remember."""
        meta = {"namespace": "shop", "name": "web", "uid": uid, "resourceVersion": version}
        self.tell(at, "pods", "DELETED", object={"kind": "Pod", "metadata": meta, "spec": {"nodeName": node}})

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

    @property
    def ends(self) -> list[tuple[str, str, str]]:
        """The ends of evictions: decision, verdict, pod."""
        ends = [told for told in self.decisions if told["decision"] in {"Completed", "Cancelled"}]
        return [(told["decision"], told["verdict"], told["podUid"]) for told in ends]


@pytest.fixture
def cluster() -> Cluster:
    """A pod on a tainted node, and a node without taints."""
    found = Cluster()
    found.node(0, "node-a", "101", TAINT)
    found.node(0, "node-b", "102")
    found.pod(0, "node-a", "uid-1", OLD)
    return found


@pytest.mark.parametrize("restarts", [(), (50,), (70,), (50, 70)], ids=["no restart", "before", "after", "both"])
@pytest.mark.parametrize(
    ("fired", "last", "end"),
    [
        pytest.param((10, 45), [], ("Completed", "PodReplaced", "uid-1"), id="issued"),
        pytest.param((), [("Cancel", "node-a", "uid-1")], ("Cancelled", "PodReplaced", "uid-1"), id="scheduled"),
    ],
)
def test_the_new_pod_ends_the_old_eviction(
    cluster: Cluster,
    fired: tuple[int, ...],
    last: list[tuple[str, str, str]],
    end: tuple[str, str, str],
    restarts: tuple[int, ...],
) -> None:
    for at in fired:
        cluster.fire(at)
    before = len(cluster.sent)
    cluster.now_us = NOON_US + (50 if fired else 6) * SECOND_US
    if 50 in restarts:
        cluster.restart()
    cluster.pod(60 if fired else 7, "node-b", "uid-2", NEW)
    assert (cluster.sent[before:], cluster.ends) == (last, [end])
    if 70 in restarts:
        cluster.restart()
    cluster.fire(2000)
    assert (cluster.sent[before:], cluster.ends) == (last, [end])
    assert cluster.logic.open_evictions()["lab"] == 0


def test_the_new_pod_has_an_eviction_of_its_own(cluster: Cluster) -> None:
    cluster.node(1, "node-b", "103", TAINT)
    cluster.pod(5, "node-b", "uid-2", NEW)
    assert cluster.sent == [
        ("Schedule", "node-a", "uid-1"),
        ("Cancel", "node-a", "uid-1"),
        ("Schedule", "node-b", "uid-2"),
    ]
    assert cluster.commands[0]["evictionId"] != cluster.commands[2]["evictionId"]


def test_an_earlier_pod_of_the_name_ends_nothing(cluster: Cluster) -> None:
    cluster.pod(5, "node-b", "uid-0", "109")
    assert (cluster.sent, cluster.ends) == ([("Schedule", "node-a", "uid-1")], [])
    assert cluster.logic.known_node("lab", "node-b").pods == {}  # type: ignore[union-attr]


def test_late_events_of_the_old_pod_change_nothing(cluster: Cluster) -> None:
    cluster.pod(5, "node-b", "uid-2", NEW)
    sent, ends = cluster.sent, cluster.ends
    cluster.pod(6, "node-a", "uid-1", "115", seconds=1)
    cluster.gone(7, "node-a", "uid-1", "119")
    cluster.fire(100)
    assert (cluster.sent, cluster.ends) == (sent, ends)


def test_its_own_end_that_is_outdated_ends_nothing(cluster: Cluster) -> None:
    cluster.gone(5, "node-a", "uid-1", "109")
    assert cluster.logic.open_evictions()["lab"] == 1


def test_a_pod_bound_elsewhere_after_a_restore_gets_another_id(cluster: Cluster) -> None:
    """Its UID is that of the old one: etcd was restored to before its binding."""
    cluster.fire(10)
    cluster.node(19, "node-b", "103", TAINT)
    cluster.tell(20, "nodes", "HEARTBEAT", epoch=1)
    cluster.pod(21, "node-b", "uid-1", "50", epoch=1)
    assert cluster.ends == [("Completed", "PodReplaced", "uid-1")]
    assert cluster.sent[-1] == ("Schedule", "node-b", "uid-1")
    assert len({command["evictionId"] for command in cluster.commands}) == 2
