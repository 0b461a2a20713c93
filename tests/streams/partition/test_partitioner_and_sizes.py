"""Which records a partition lets in: those whose key hashes to it, and whose rows and messages fit."""

from __future__ import annotations

import msgspec
import pytest
from kafka.partitioner import DefaultPartitioner

from evictstream.models.eviction import EventType, NodeEvent, Origin, PodEvent
from evictstream.models.kubernetes.objects import Node, Pod
from evictstream.models.kubernetes.taints import Taint
from evictstream.models.kubernetes.tolerations import Toleration
from evictstream.models.kubernetes.traits import NO_TRAITS, PodTraits
from evictstream.streams.partition.record_sizes import fitting
from evictstream.streams.partitioner import partition_of


class OneTopic:
    """What kafka-python's partitioner asks of a cluster."""

    def __init__(self, partitions: int) -> None:
        self.partitions = set(range(partitions))

    def topics(self) -> set[str]:
        return {"pods"}

    def partitions_for_topic(self, topic: str) -> set[int]:
        assert topic == "pods"
        return self.partitions

    available_partitions_for_topic = partitions_for_topic


@pytest.mark.parametrize("partitions", [1, 2, 8, 64])
def test_partitions_are_those_of_the_default_partitioner(partitions: int) -> None:
    for number in range(500):
        key = f"cluster-{number % 7}/node-{number:05d}".encode()
        theirs = DefaultPartitioner().partition("pods", key, key, None, None, OneTopic(partitions))
        assert partition_of(key, partitions) == theirs


def node_event(*taints: Taint) -> NodeEvent:
    node = Node(name="n", uid="u", resource_version="1", taints=taints, ready=None)
    return NodeEvent(type=EventType.ADDED, node=node, at_us=0, origin=Origin("nodes", 0, 0))


@pytest.mark.parametrize(
    ("taints", "fit"),
    [
        pytest.param((), True, id="none"),
        pytest.param((Taint(key="k" * 1000, effect="NoExecute"),), True, id="small"),
        pytest.param((Taint(key="k" * 25_001, effect="NoExecute"),), False, id="one above a quarter"),
        pytest.param((Taint(key="k" * 900, effect="NoExecute"),) * 60, False, id="together above a half"),
    ],
)
def test_taints_that_would_not_fit_are_undecidable(taints: tuple[Taint, ...], *, fit: bool) -> None:
    event = node_event(*taints)
    found = fitting(event, 100_000)
    assert found is not None
    assert (found is event) is fit
    assert found.is_undecidable is not fit
    assert found.node.taints == (taints if fit else ())


POD = Pod("x", "p", "u", "1", "n")


def pod_event(pod: Pod) -> PodEvent:
    return PodEvent(type=EventType.ADDED, pod=pod, at_us=0, origin=Origin("pods", 0, 0))


def test_a_pod_with_too_large_tolerations_is_undecidable_without_them() -> None:
    large = msgspec.structs.replace(POD, tolerations=(Toleration("k" * 25_001),))
    found = fitting(pod_event(large), 100_000)
    assert found is not None
    assert found.is_undecidable
    assert found.pod == POD


@pytest.mark.parametrize("name", ["namespace", "name", "uid", "resource_version"])
def test_a_pod_whose_names_do_not_fit_is_refused(name: str) -> None:
    assert fitting(pod_event(msgspec.structs.replace(POD, **{name: "k" * 25_001})), 100_000) is None


@pytest.mark.parametrize(("characters", "are_kept"), [(100, True), (500, False)])
def test_labels_and_traits_that_would_not_fit_are_absent(characters: int, *, are_kept: bool) -> None:
    text = "x" * characters
    node = node_event(Taint(key="k", effect="NoExecute"))
    node = msgspec.structs.replace(node, node=msgspec.structs.replace(node.node, labels={"a": text}))
    traits = PodTraits("Job", text)
    pod = pod_event(Pod("d", "p", "u", "1", "n", traits=traits))
    found_node, found_pod = fitting(node, 2_000), fitting(pod, 2_000)
    assert found_node is not None
    assert found_pod is not None
    assert (found_node.node.labels, found_pod.pod.traits) == (({"a": text}, traits) if are_kept else ({}, NO_TRAITS))
    assert found_node.node.taints == node.node.taints
    assert not found_node.is_undecidable
    assert not found_pod.is_undecidable
