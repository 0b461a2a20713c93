"""What a complete listing does not hold is removed, wherever it is known, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from evictstream.models.eviction import PODS_IN_SLICE
from evictstream.streams.engine.core.logic import Part
from evictstream.streams.engine.core.outbox import Outbox
from tests.streams.worker.story import NOON_US, SECOND_US, TAINT, FakeRecord, Story

Uids = Mapping[str, Sequence[str]]
LAST = 10**6  # a resource version above all others


class Fleet(Story):
    """Nodes `n1` to `n3` of one cluster, tainted, each with the pods `n1-a` and `n1-b`; UIDs are names."""

    def __init__(self, pods: int = 2) -> None:
        super().__init__()
        self.pods = pods
        for node in ("n1", "n2", "n3"):
            self.write("nodes", self.tainted(node))
            for letter in "abcdefghijklmnopqrstuvwxyz"[:pods] if pods <= 26 else map(str, range(pods)):
                self.write("pods", self.bound(node, f"{node}-{letter}"))

    def meta(self, name: str) -> dict[str, str]:
        return {"name": name, "uid": name, "resourceVersion": str(self.offset + 100)}

    def tainted(self, name: str) -> dict[str, Any]:
        return {"kind": "Node", "metadata": self.meta(name), "spec": {"taints": [TAINT]}}

    def bound(self, node: str, name: str) -> dict[str, Any]:
        tolerations = [{"operator": "Exists", "tolerationSeconds": 60}]
        metadata = self.meta(name) | {"namespace": "x"}
        return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node, "tolerations": tolerations}}

    def write(self, topic: str, obj: dict[str, Any], *, epoch: int = 0, kind: str = "ADDED") -> None:
        value = {"cluster": "lab", "type": kind, "epoch": epoch, "object": obj}
        self.raw(0, topic, json.dumps(value).encode())

    def listed(self, uids: Uids, *, version: int = LAST, after: str = "", epoch: int = 0, **more: str | None) -> bytes:
        listing = {"resourceVersion": str(version), "after": after, "uids": uids} | more
        return json.dumps({"cluster": "lab", "type": "LISTED", "epoch": epoch, "listing": listing}).encode()

    def take(self, topic: str, value: bytes, *, at: float = 1) -> Iterator[Part]:
        self.now_us = NOON_US + round(at * SECOND_US)
        self.offset += 1
        self.outbox = Outbox()
        record = FakeRecord(self.offset, self.now_us // 1000, b"lab", value)
        return iter(self.logic.apply(topic, [record], self.outbox))

    def list_pods(self, uids: Uids, **range_: Any) -> dict[str, str]:
        """Take a listing of pods; returns which pods were cancelled, and why."""
        list(self.take("pods", self.listed(uids, **range_)))
        return self.cancelled()

    def cancelled(self) -> dict[str, str]:
        found = [json.loads(message.value) for message in self.outbox.messages.get("commands", ())]
        assert {command["action"] for command in found} <= {"Cancel"}
        return {command["pod"]: command["reason"]["verdict"] for command in found}


ALL = {node: [f"{node}-a", f"{node}-b"] for node in ("n1", "n2", "n3")}


@pytest.mark.parametrize(
    ("uids", "range_", "gone"),
    [
        pytest.param(ALL, {}, set(), id="all-are-there"),
        pytest.param(ALL | {"n2": ["n2-b"]}, {}, {"n2-a"}, id="one-is-gone"),
        pytest.param({"n1": ALL["n1"]}, {}, {"n2-a", "n2-b", "n3-a", "n3-b"}, id="nodes-without-pods"),
        pytest.param(ALL | {"n1": ["n2-a"], "n2": ["n2-b", "n1-a"]}, {}, {"n1-a", "n1-b", "n2-a"}, id="elsewhere"),
        pytest.param({}, {"after": "n1", "through": "n2"}, {"n2-a", "n2-b"}, id="range"),
        pytest.param({}, {"after": "n2"}, {"n3-a", "n3-b"}, id="last-range"),
        pytest.param({}, {"through": "n1"}, {"n1-a", "n1-b"}, id="first-range"),
        pytest.param({}, {"after": "n3"}, set(), id="empty-range"),
        pytest.param({}, {"after": "n1", "through": "n2", "uidThrough": "n2-a"}, {"n2-a"}, id="first-uids-of-a-node"),
        pytest.param({}, {"after": "n1", "through": "n2", "uidAfter": "n2-a"}, {"n2-b"}, id="last-uids-of-a-node"),
        pytest.param({"n2": ["n2-b"]}, {"through": "n2", "uidAfter": "n2-a"}, set(), id="listed-in-its-part"),
        pytest.param({}, {"version": 99}, set(), id="older-than-what-is-known"),
    ],
)
def test_pods_that_a_listing_does_not_hold_are_gone(uids: Uids, range_: dict[str, Any], gone: set[str]) -> None:
    assert Fleet().list_pods(uids, **range_) == dict.fromkeys(gone, "PodGone")


def test_a_listing_twice_changes_nothing_more() -> None:
    fleet = Fleet()
    fleet.list_pods({})
    assert fleet.list_pods({}) == {}
    assert not fleet.outbox


def test_a_pod_that_is_newer_than_the_listing_stays() -> None:
    fleet = Fleet()
    between = fleet.offset + 99
    fleet.write("pods", fleet.bound("n1", "n1-a"), kind="MODIFIED")
    assert fleet.list_pods({}, version=between, through="n1") == {"n1-b": "PodGone"}
    assert fleet.config.counters.unlisted == {"removed": 1, "newer": 1}


def test_nodes_that_a_listing_does_not_hold_are_gone() -> None:
    fleet = Fleet()
    list(fleet.take("nodes", fleet.listed({"n1": ["n1"], "n2": ["another"]})))
    assert fleet.cancelled() == dict.fromkeys(("n2-a", "n2-b", "n3-a", "n3-b"), "NodeGone")


def test_other_clusters_are_not_touched() -> None:
    fleet = Fleet()
    value = fleet.listed({}).replace(b'"lab"', b'"calm"')
    fleet.outbox = Outbox()
    fleet.raw(1, "pods", value, key=b"calm")
    assert fleet.cancelled() == {}


def test_a_late_event_brings_nothing_back() -> None:
    fleet = Fleet()
    late = fleet.bound("n1", "n1-a")
    fleet.list_pods({})
    fleet.write("pods", late)
    assert fleet.config.counters.events["pods"]["stale"] == 1


def test_a_later_epoch_ends_what_has_higher_versions() -> None:
    fleet = Fleet()
    for node in ("n1", "n2", "n3"):
        obj = fleet.bound(node, f"{node}-a")
        obj["metadata"]["resourceVersion"] = "7"
        fleet.write("pods", obj, epoch=1)
    assert fleet.config.counters.events["pods"]["stale"] == 0, "versions that went back count"
    gone = fleet.list_pods({node: [f"{node}-a"] for node in ALL}, version=9, epoch=1)
    assert gone == dict.fromkeys(("n1-b", "n2-b", "n3-b"), "PodGone")


def test_records_of_an_earlier_epoch_are_stale() -> None:
    fleet = Fleet()
    fleet.list_pods(ALL, version=1, epoch=1)
    fleet.write("pods", fleet.bound("n1", "new"))
    assert fleet.config.counters.events["pods"]["stale"] == 1
    list(fleet.take("pods", fleet.listed({})))
    assert fleet.cancelled() == {}
    assert fleet.config.counters.events["pods"]["foreign"] == 1


def test_edits_of_an_earlier_epoch_are_stale() -> None:
    """They took the fast path, which did not ask for the epoch."""
    fleet = Fleet()
    list(fleet.take("nodes", fleet.listed({node: [node] for node in ALL}, epoch=1)))
    list(fleet.take("nodes", fleet.listed({}, epoch=1)))  # without taints edits take the fast path
    fleet.outbox = Outbox()
    for name, tolerations in (("n1-a", []), ("n1-b", fleet.bound("n1", "n1-b")["spec"]["tolerations"])):
        obj = fleet.bound("n1", name) | {"apiVersion": "v1", "status": {"phase": "Running"}}
        obj["spec"]["tolerations"] = tolerations
        fleet.write("pods", obj, kind="MODIFIED")
    assert fleet.config.counters.events["pods"]["stale"] == 2
    assert not fleet.outbox


def test_a_large_listing_is_written_whole() -> None:
    fleet = Fleet(pods=2 * PODS_IN_SLICE)
    pauses = cost = 0
    for part in fleet.take("pods", fleet.listed({"n1": ["n1-0"]}), at=30):
        if part.is_last:
            break
        cost += part.cost
        if cost < PODS_IN_SLICE:
            continue
        pauses, cost = pauses + 1, 0
        assert part.position == fleet.offset, "the position stays before the record"
        fleet.fire(120)
        assert not fleet.cancelled()
    assert pauses >= 3 * 2 * PODS_IN_SLICE // PODS_IN_SLICE - 1
    assert len(fleet.cancelled()) == 3 * 2 * PODS_IN_SLICE - 1
    fleet.fire(120)
    evicted = [json.loads(message.value) for message in fleet.outbox.messages["commands"]]
    assert [command["pod"] for command in evicted if command["action"] == "Evict"] == ["n1-0"]
