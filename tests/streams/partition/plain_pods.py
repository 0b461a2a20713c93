"""A pod as the fast path knows it, changes of it, and what the fast path and `apply_pod` make of them."""

from __future__ import annotations

import collections
import copy
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from evictstream.models.eviction import NodeAggregate, Origin, PodEvent, RuleParameters, apply_pod
from evictstream.models.eviction.cluster import NO_STATE, Cluster, ClusterState
from evictstream.models.messages.decoding import decode_pod_record, read_decoded_pod
from evictstream.models.messages.envelope import DEFAULT_LIMITS
from evictstream.models.messages.unreadable import Unreadable
from evictstream.streams.engine.core.logic import Part
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.fast_path import FastPath

KEY = b"lab"
RULES = RuleParameters()
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"namespace": "d", "name": "a", "uid": "u", "resourceVersion": "100"},
    "spec": {"nodeName": "n0", "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}]},
    "status": {"phase": "Running"},
}


def with_change(path: str, value: object) -> dict[str, Any]:
    """A newer pod with one thing changed; `None` takes it out."""
    pod = copy.deepcopy(POD)
    pod["metadata"]["resourceVersion"] = "101"
    *parents, last = path.split(".")
    place = pod
    for parent in parents:
        place = place[parent]
    if value is None:
        place.pop(last, None)
    else:
        place[last] = value
    return pod


def known() -> NodeAggregate:
    aggregate = NodeAggregate("lab", "n0")
    step(aggregate, POD)
    return aggregate


class FakeRecord(NamedTuple):
    """A record of the pods topic."""

    value: bytes | None
    key: bytes | None = KEY
    offset: int = 7
    timestamp: int = 10**12


def encoded(pod: dict[str, Any], **more: object) -> bytes:
    return json.dumps({"cluster": "lab", "type": "MODIFIED", "object": pod, **more}).encode()


def step(aggregate: NodeAggregate, pod: dict[str, Any]) -> object:
    """Apply it by `apply_pod`; returns the changes, or the error."""
    try:
        event = read_decoded_pod(decode_pod_record(encoded(pod)), KEY, 10**15, Origin("pods", 0, 0))
    except Unreadable as error:
        return error
    assert isinstance(event, PodEvent)
    return apply_pod(aggregate, event, RULES)


def walk(
    aggregate: NodeAggregate, *records: FakeRecord, state: ClusterState = NO_STATE
) -> tuple[list[object], Outbox, list[Part]]:
    """Take records along the fast path; returns the records that it has left, what it has written, and its parts."""
    left: list[object] = []
    outbox = Outbox()

    def leave(record: object, _decoded: object) -> Iterator[Part]:
        left.append(record)
        return iter(())

    cluster = Cluster("lab", state)
    cluster.add(aggregate)
    path = FastPath({KEY: cluster}, DEFAULT_LIMITS, 65_536)
    parts = list(path.apply(records, outbox, collections.Counter(), leave))
    return left, outbox, parts


def fast(aggregate: NodeAggregate, pod: dict[str, Any]) -> tuple[bytes, bytes | None] | bool:
    """Take one pod along the fast path; returns the row, whether it was applied without one, or `False`."""
    left, outbox, _ = walk(aggregate, FakeRecord(encoded(pod)))
    assert len(left) + outbox.entries <= 1
    return not left and next(iter(outbox.rows.items()), True)


def annotated(seconds: int, in_the_spec: int | None = None, version: int = 101) -> dict[str, Any]:
    """The pod with its seconds moved into the annotation."""
    entry = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
    spec = entry if in_the_spec is None else entry | {"tolerationSeconds": in_the_spec}
    built_in = {} if in_the_spec is None else {"builtInSeconds": in_the_spec}
    pod = with_change("spec.tolerations", [spec])
    annotations = {"evictstream.io/tolerations": json.dumps([entry | {"tolerationSeconds": seconds} | built_in])}
    pod["metadata"] |= {"annotations": annotations, "resourceVersion": str(version)}
    return pod
