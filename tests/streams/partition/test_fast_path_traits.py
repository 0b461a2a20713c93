"""The fast path takes pods with the traits that are known, in any spelling, and leaves others alone."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import pytest

from evictstream.models.eviction import Origin, PodEvent
from evictstream.models.eviction.cluster import Cluster
from evictstream.models.messages.decoding import PodWatch, read_decoded_pod
from evictstream.models.messages.envelope import DEFAULT_LIMITS
from evictstream.streams.engine.core.logic import Part
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.fast_path import FastPath
from tests.streams.partition.plain_pods import (
    KEY,
    FakeRecord,
    encoded,
    fast,
    known,
    step,
    with_change,
)


def owned(version: int, name: str = "web", **more: Any) -> dict[str, Any]:
    """The pod with an owner."""
    pod = with_change("metadata.ownerReferences", [{"kind": "ReplicaSet", "name": name, "controller": True} | more])
    pod["metadata"]["resourceVersion"] = str(version)
    return pod


def test_an_owned_pod_takes_the_fast_path() -> None:
    aggregate = known()
    step(aggregate, owned(101))
    assert fast(aggregate, owned(102))
    assert fast(aggregate, owned(103, blockOwnerDeletion=True)), "another spelling"
    assert fast(aggregate, owned(104)), "the text of before"
    traits = aggregate.pods["u"].traits
    assert traits is not None
    assert (traits.owner, aggregate.pods["u"].version) == ("ReplicaSet/web", 104)


@pytest.mark.parametrize("seen", [False, True], ids=["", "its text was seen"])
@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("metadata.ownerReferences", None, id="orphaned"),
        pytest.param("metadata.ownerReferences", owned(1, "other")["metadata"]["ownerReferences"], id="another owner"),
        pytest.param("metadata.labels", {"scheduling.x-k8s.io/pod-group": "g"}, id="group"),
        pytest.param("spec.schedulingGroup", {"podGroupName": "g"}, id="group of the spec"),
        pytest.param("spec.priority", 7, id="priority"),
    ],
)
def test_other_traits_go_through_apply_pod(path: str, value: object, seen: bool) -> None:  # noqa: FBT001 - a case
    aggregate = known()
    step(aggregate, owned(101))
    if seen:
        assert fast(aggregate, owned(102))
    pod = with_change(path, value)
    if path != "metadata.ownerReferences":
        pod["metadata"]["ownerReferences"] = owned(1)["metadata"]["ownerReferences"]
    pod["metadata"]["resourceVersion"] = "103"
    before = aggregate.pods["u"].traits
    assert not fast(aggregate, pod)
    step(aggregate, pod)
    assert aggregate.pods["u"].traits not in (None, before)
    assert not fast(aggregate, owned(104)), "nor do those of before"


def test_a_pod_of_older_rows_goes_through_apply_pod_once() -> None:
    aggregate = known()
    aggregate.pods["u"].traits = None
    assert not fast(aggregate, owned(101))
    step(aggregate, owned(101))
    assert fast(aggregate, owned(102))


def test_what_was_left_aside_is_read_whole() -> None:
    """`apply_pod` gets the record as the fast path has decoded it."""
    decoded: list[PodWatch] = []

    def leave(_record: object, watch: PodWatch | None) -> Iterator[Part]:
        assert watch is not None
        decoded.append(watch)
        return iter(())

    cluster = Cluster("lab")
    cluster.add(known())
    record = FakeRecord(encoded(owned(101)))
    list(FastPath({KEY: cluster}, DEFAULT_LIMITS, 65_536).apply([record], Outbox(), collections.Counter(), leave))
    event = read_decoded_pod(decoded[0], KEY, 10**15, Origin("pods", 0, 0))
    assert isinstance(event, PodEvent)
    assert event.pod.traits.owner == "ReplicaSet/web"
