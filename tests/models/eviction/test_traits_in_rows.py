"""Nodes and pods keep what policies ask for, in memory and in rows, and no window knows of it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evictstream.models.eviction import InputEffect, NodeEvent, PodEvent, RowKind, apply_pod, row_key
from evictstream.models.eviction.held_attempts import subject_of
from evictstream.models.kubernetes import Node, Pod
from evictstream.models.kubernetes.traits import NO_TRAITS, PodTraits
from tests.harness.whole_steps import apply_node
from tests.models.eviction.scene import MODIFIED, NODE, ORIGIN, A, Scene, rebuild, tolerate, us

ZONE = "topology.kubernetes.io/zone"
LABELS = {ZONE: "z-a", "pool": "gpu"}
KNOWN = (("pool", "gpu"), (ZONE, "z-a"))
WEB = PodTraits("ReplicaSet", "web-5d7f9", 1000, "train-1")
JOB = PodTraits("Job", "j")


class Told(Scene):
    """A scene whose node has labels, and whose pod has traits."""

    def labelled(self, at: float, labels: dict[str, str | None], **more: Any) -> InputEffect:
        version = more.pop("version", None) or str(next(self.versions))
        seen = Node(NODE, "node-1", version, more.pop("taints", (A,)), "True", labels)
        event = NodeEvent(type=MODIFIED, node=seen, at_us=us(at), origin=ORIGIN, **more)
        return self.keep(apply_node(self.aggregate, event, self.rules)).effect

    def owned(self, at: float, traits: PodTraits, *, seconds: int = 60, **more: Any) -> InputEffect:
        version = more.pop("version", None) or str(next(self.versions))
        seen = Pod(
            namespace="payments",
            name="web-0",
            uid="pod-1",
            resource_version=version,
            node_name=NODE,
            tolerations=(tolerate("a", seconds),),
            phase="Running",
            traits=traits,
        )
        event = PodEvent(type=MODIFIED, pod=seen, at_us=us(at), origin=ORIGIN, **more)
        return self.keep(apply_pod(self.aggregate, event, self.rules)).effect

    def facts(self) -> tuple[Any, Any]:
        assert self.aggregate.node is not None
        return self.aggregate.node.labels, self.aggregate.pods["pod-1"].traits

    def older_rows(self) -> None:
        """Go on from rows as a version before wrote them, which had not the last fields."""
        for kind, uid, later in ((RowKind.NODE, "", 3), (RowKind.POD, "pod-1", 1)):
            key = row_key(kind, self.aggregate.key, uid)
            self.table[key] = msgspec.msgpack.encode(msgspec.msgpack.decode(self.table[key])[:-later])
        self.restart()


@pytest.fixture
def told() -> Told:
    scene = Told()
    scene.labelled(0, dict(LABELS))
    scene.owned(1, WEB)
    return scene


def test_rows_keep_them(told: Told) -> None:
    assert told.facts() == (KNOWN, WEB)
    told.restart()
    assert told.facts() == (KNOWN, WEB)
    assert told.aggregate.node is not None
    assert told.aggregate.node.zone == "z-a"


def test_a_change_of_traits_alone_is_written_and_decides_nothing(told: Told) -> None:
    told.owned(2, JOB)
    before = told.actions
    assert (told.owned(3, WEB), told.labelled(4, {ZONE: "z-b"})) == (InputEffect.CHANGED,) * 2
    assert (told.actions, told.deadline) == (before, 61)
    told.restart()
    assert told.facts() == (((ZONE, "z-b"),), WEB)


def test_a_status_is_not_written(told: Told) -> None:
    assert told.owned(2, PodTraits(*WEB.fields)) is InputEffect.UNCHANGED


def test_a_window_is_not_moved_by_traits(told: Told) -> None:
    told.owned(2, JOB)
    pod = told.aggregate.pods["pod-1"]
    assert (pod.since_us, pod.tolerations_since_us) == (us(1), us(1))
    told.owned(3, WEB, seconds=90)
    assert (pod.tolerations_since_us, pod.traits) == (us(3), WEB)


def test_rows_of_before_load_and_learn_from_a_listing(told: Told) -> None:
    versions = told.aggregate.node, told.aggregate.pods["pod-1"]
    told.older_rows()
    assert told.facts() == (None, None)
    assert told.aggregate.node is not None
    assert told.aggregate.node.zone is None
    node, pod = (str(one.version) for one in versions if one is not None)
    assert told.labelled(5, dict(LABELS), version=node) is InputEffect.CHANGED
    assert told.owned(5, WEB, version=pod) is InputEffect.CHANGED
    assert told.facts() == (KNOWN, WEB)
    assert told.labelled(6, dict(LABELS), version=node) is InputEffect.DUPLICATE
    assert told.owned(6, WEB, version=pod) is InputEffect.DUPLICATE
    assert told.actions == ["Schedule 61"]


def test_a_feed_that_tells_more_of_a_version_is_heard(told: Told) -> None:
    assert told.aggregate.node is not None
    node, pod = str(told.aggregate.node.version), str(told.aggregate.pods["pod-1"].version)
    more = PodTraits(*WEB.fields[:3], "train-2")
    assert told.owned(5, more, version=pod) is InputEffect.CHANGED
    assert told.labelled(5, {**LABELS, "rack": "7"}, version=node) is InputEffect.CHANGED
    assert told.facts() == ((*KNOWN[:1], ("rack", "7"), *KNOWN[1:]), more)
    assert told.owned(6, JOB, version="1") is InputEffect.STALE
    assert told.labelled(6, {}, version="1") is InputEffect.STALE


def test_undecidable_objects_have_them_too(told: Told) -> None:
    assert told.owned(2, JOB, is_undecidable=True) is InputEffect.UNDECIDABLE
    assert told.owned(3, WEB, is_undecidable=True) is InputEffect.UNDECIDABLE
    assert told.labelled(4, {"pool": "cpu"}, is_undecidable=True) is InputEffect.UNDECIDABLE
    assert told.facts() == ((("pool", "cpu"),), WEB)


def test_a_program_of_before_reads_the_rows(told: Told) -> None:
    """It passes over what stands behind the fields that it knows, and keeps the order of these."""

    class PodRowOfBefore(msgspec.Struct, array_like=True):
        format: int
        address: str
        version: int
        tolerations: bytes
        since_us: int
        tolerations_since_us: int
        exemptions: int
        opened: int

    value = told.table[row_key(RowKind.POD, told.aggregate.key, "pod-1")]
    row = msgspec.msgpack.decode(value, type=PodRowOfBefore)
    assert (row.address, row.since_us, row.exemptions) == ("payments/web-0", us(1), 0)


def test_brakes_and_policies_see_them(told: Told) -> None:
    aggregate = rebuild(told.table)
    pod = aggregate.pods["pod-1"]
    assert pod.eviction is not None
    subject = subject_of(aggregate, pod, pod.eviction, pod.eviction.due)
    assert (subject.zone, subject.node_labels, subject.traits) == ("z-a", KNOWN, WEB)


def test_without_any_there_are_none() -> None:
    scene = Scene()
    scene.node(0)
    scene.pod(0)
    assert scene.aggregate.node is not None
    assert (scene.aggregate.node.labels, scene.aggregate.node.zone) == ((), "")
    assert scene.aggregate.pods["pod-1"].traits is NO_TRAITS
