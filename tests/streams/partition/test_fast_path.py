"""The fast path does exactly what `apply_pod` would do, or nothing."""

from __future__ import annotations

import collections
import copy
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.models.eviction import Changes, NodeAggregate, Origin, PodEvent, RuleParameters, apply_pod
from evictstream.models.eviction.cluster import NO_STATE, Cluster, ClusterState
from evictstream.models.eviction.state import NodeState, TaintState
from evictstream.models.kubernetes import Taint
from evictstream.models.messages.decoding import PodWatch, decode_pod_record, read_decoded_pod
from evictstream.models.messages.envelope import DECODE_ERRORS, DEFAULT_LIMITS
from evictstream.models.messages.plain_pods import decode_plain_pod
from evictstream.models.messages.unreadable import Unreadable
from evictstream.streams.engine.core.logic import SLICE_COST, Part
from evictstream.streams.engine.core.outbox import Outbox
from evictstream.streams.partition.fast_path import LARGE_BYTES, SLICE_BYTES, FastPath, _texts
from tests.harness.examples import examples

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


def test_a_status_change_takes_the_fast_path() -> None:
    aggregate = known()
    assert fast(aggregate, with_change("status.conditions", [{"type": "Ready", "status": "True"}]))
    assert aggregate.pods["u"].version == 101


def test_an_edit_takes_the_fast_path_while_nothing_is_due() -> None:
    aggregate, twin = known(), known()
    edited = with_change("spec.tolerations", [])
    taken = fast(aggregate, edited)
    assert isinstance(taken, tuple)
    changes = step(twin, edited)
    assert isinstance(changes, Changes)
    assert list(changes.rows) == [taken]
    assert aggregate.pods == twin.pods


@pytest.mark.parametrize("tolerations", [[], [{"key": "k", "operator": "Exists", "tolerationSeconds": 7}]])
def test_an_edit_on_a_tainted_node_goes_through_apply_pod(tolerations: list[object]) -> None:
    aggregate = known()
    taint = TaintState(Taint("k", "", "NoExecute"), 10**15, 10**15, None)
    aggregate.node = NodeState(uid="n", version=1, taints=(taint,))
    assert not fast(aggregate, with_change("spec.tolerations", tolerations))


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


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("metadata.uid", "other", id="another pod of that name"),
        pytest.param("metadata.resourceVersion", "100", id="duplicate"),
        pytest.param("metadata.resourceVersion", "99", id="older"),
        pytest.param("metadata.resourceVersion", "x101", id="version that is no number"),
        pytest.param("metadata.resourceVersion", "", id="no version"),
        pytest.param("metadata.name", None, id="no name"),
        pytest.param("metadata.name", "q" * 1_100, id="name beyond the limit"),
        pytest.param("metadata.deletionTimestamp", "2026-11-21T00:00:00Z", id="terminating"),
        pytest.param("metadata.annotations", {"kubernetes.io/config.mirror": "x"}, id="mirror"),
        pytest.param("spec.nodeName", "n1", id="another node"),
        pytest.param("spec.nodeName", None, id="not bound"),
        pytest.param("spec.tolerations", "none", id="tolerations unreadable"),
        pytest.param("status.phase", "Failed", id="finished"),
        pytest.param("kind", "Node", id="another kind"),
        pytest.param("apiVersion", "v2", id="another version of the API"),
        pytest.param("metadata", None, id="no metadata"),
    ],
)
def test_everything_else_goes_through_apply_pod(path: str, value: object) -> None:
    aggregate = known()
    assert not fast(aggregate, with_change(path, value))
    assert aggregate.pods["u"].version == 100


def annotated(seconds: int, in_the_spec: int | None = None, version: int = 101) -> dict[str, Any]:
    """The pod with its seconds moved into the annotation."""
    entry = {"key": "k", "operator": "Exists", "effect": "NoExecute"}
    spec = entry if in_the_spec is None else entry | {"tolerationSeconds": in_the_spec}
    built_in = {} if in_the_spec is None else {"builtInSeconds": in_the_spec}
    pod = with_change("spec.tolerations", [spec])
    annotations = {"evictstream.io/tolerations": json.dumps([entry | {"tolerationSeconds": seconds} | built_in])}
    pod["metadata"] |= {"annotations": annotations, "resourceVersion": str(version)}
    return pod


@pytest.mark.parametrize("in_the_spec", [None, 3605], ids=["handover", "backstop"])
def test_pods_with_moved_seconds_take_the_fast_path(in_the_spec: int | None) -> None:
    aggregate, twin = known(), known()
    for one in (aggregate, twin):
        step(one, annotated(5, in_the_spec))
    assert fast(aggregate, annotated(5, in_the_spec, version=102)) is True
    edited = annotated(7, in_the_spec, version=103)
    taken, changes = fast(aggregate, edited), step(twin, edited)
    assert isinstance(changes, Changes)
    assert list(changes.rows) == [taken]
    assert [one.toleration_seconds for one in aggregate.pods["u"].tolerations] == [7]


@pytest.mark.parametrize("is_into_annotation", [True, False], ids=["into-annotation", "back"])
def test_seconds_that_only_move_go_through_apply_pod(*, is_into_annotation: bool) -> None:
    entry = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    aggregate, in_spec, moved = known(), with_change("spec.tolerations", [entry]), annotated(5, 3605)
    before, after = (in_spec, moved) if is_into_annotation else (moved, in_spec)
    step(aggregate, before)
    before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"] = "102", "103"
    assert fast(aggregate, before) is True
    assert not fast(aggregate, after)


def test_unreadable_annotation_goes_through_apply_pod() -> None:
    pod = with_change("metadata.annotations", {"evictstream.io/tolerations": "no JSON"})
    aggregate = known()
    assert not fast(aggregate, pod)
    assert isinstance(step(aggregate, pod), Changes)


def test_foreign_annotation_leaves_the_text_of_the_common_list() -> None:
    aggregate = known()
    assert fast(aggregate, with_change("x", 1)) is True
    kept = _texts[id(aggregate.pods["u"].tolerations)]
    pod = with_change("metadata.annotations", {"evictstream.io/tolerations": '[{"key":"x"}]'})
    pod["metadata"]["resourceVersion"] = "102"
    assert fast(aggregate, pod) is True
    assert _texts[id(aggregate.pods["u"].tolerations)] is kept


LISTS = POD["spec"]["tolerations"], [{"kind": "Job", "name": "j", "controller": True}]
PODS = st.builds(annotated, st.integers(5, 7), st.sampled_from([None, 5, 3605])) | st.builds(
    with_change,
    st.sampled_from(
        [
            "metadata.uid",
            "metadata.resourceVersion",
            "metadata.labels",
            "metadata.ownerReferences",
            "spec.nodeName",
            "spec.tolerations",
            "spec.priority",
            "spec.schedulingGroup",
            "status.phase",
        ]
    ),
    st.sampled_from([None, "u", "n0", "101", "7", 7, "Running", "Succeeded", [], {}, *LISTS, {"podGroupName": "g"}]),
)


@settings(max_examples=examples(300), deadline=None)
@given(PODS)
def test_the_fast_path_changes_what_apply_pod_would_change(pod: dict[str, Any]) -> None:
    short, long = known(), known()
    taken = fast(short, pod)
    if taken:
        changes = step(long, pod)
        assert isinstance(changes, Changes)
        assert list(changes.rows) == ([] if taken is True else [taken])
        assert [*changes.commands, *changes.decisions, *changes.wakeups] == []
        assert short.pods == long.pods
    else:
        assert short.pods == known().pods


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(FakeRecord(None), id="no value"),
        pytest.param(FakeRecord(b"{"), id="broken"),
        pytest.param(FakeRecord(encoded(with_change("x", 1)), key=None), id="no key"),
        pytest.param(FakeRecord(encoded(with_change("x", 1)), key=b"other"), id="unknown cluster"),
        pytest.param(FakeRecord(encoded(with_change("spec.nodeName", "n1"))), id="unknown node"),
        pytest.param(FakeRecord(encoded(with_change("x", 1), type="DELETED")), id="deletion"),
        pytest.param(FakeRecord(encoded(with_change("x", 1), cluster="other")), id="another cluster"),
        pytest.param(FakeRecord(encoded(with_change("x", 1), observedAt="noon")), id="no time"),
        pytest.param(FakeRecord(encoded(with_change("x", "." * 65_536))), id="large"),
    ],
)
def test_other_records_are_left_as_they_are(record: FakeRecord) -> None:
    aggregate = known()
    left, outbox, _ = walk(aggregate, record)
    assert left == [record]
    assert not outbox
    assert aggregate.pods == known().pods


def test_records_of_an_ended_epoch_are_left() -> None:
    old, new = FakeRecord(encoded(with_change("x", 1))), FakeRecord(encoded(with_change("x", 1), epoch=1))
    assert walk(known(), old, new, state=ClusterState(epoch=1))[0] == [old]


def test_records_from_before_a_forgetting_are_left() -> None:
    record = FakeRecord(encoded(with_change("x", 1)))
    later = record._replace(timestamp=record.timestamp + 1)
    state = ClusterState(forgotten_at_us=record.timestamp * 1_000)
    assert walk(known(), record, later, state=state)[0] == [record]


def test_a_pod_that_was_left_alone_goes_through_apply_pod() -> None:
    aggregate = NodeAggregate("lab", "n0")
    step(aggregate, {**POD, "status": {"phase": "Failed"}})
    assert not fast(aggregate, with_change("x", 1))


def test_another_spelling_of_known_tolerations_is_no_edit() -> None:
    aggregate = known()
    for version, spelled in enumerate((b'"operator": "Exists"', b'"operator":"Exists"', b'"operator" :"Exists"'), 101):
        pod = {**POD, "metadata": {**POD["metadata"], "resourceVersion": str(version)}}
        left, outbox, _ = walk(aggregate, FakeRecord(encoded(pod).replace(b'"operator": "Exists"', spelled)))
        assert (left, outbox.entries) == ([], 0)
        assert aggregate.pods["u"].version == version


def test_other_tasks_may_run_behind_a_large_record() -> None:
    large = FakeRecord(encoded(with_change("x", "." * LARGE_BYTES)))
    assert walk(known(), large)[2] == [Part(large.offset + 1, SLICE_COST)]


def test_other_tasks_may_run_behind_some_plain_records() -> None:
    one = len(encoded(with_change("metadata.resourceVersion", "1000")))
    each = SLICE_BYTES // one + 1
    records = [
        FakeRecord(encoded(with_change("metadata.resourceVersion", str(1000 + number))), offset=number)
        for number in range(2 * each)
    ]
    assert [part.position for part in walk(known(), *records)[2]] == [each, 2 * each]


WATCHES = st.fixed_dictionaries(
    {"cluster": st.sampled_from(["lab", None, 1]), "type": st.sampled_from(["ADDED", "MODIFIED", "DELETED", None])},
    optional={
        "object": PODS,
        "epoch": st.sampled_from([0, 1, -1, "1"]),
        "observedAt": st.sampled_from(["2026-11-24T00:00:00Z", "noon", None]),
        "listedAt": st.sampled_from(["2026-11-24T00:00:00Z", "noon"]),
    },
)


@settings(max_examples=examples(300), deadline=None)
@given(WATCHES)
def test_what_the_fast_paths_types_take_all_readers_take(watch: dict[str, Any]) -> None:
    value = json.dumps(watch).encode()
    try:
        plain = decode_plain_pod(value)
    except DECODE_ERRORS:
        return
    every = decode_pod_record(value)
    assert json.loads(msgspec.json.encode(plain)) == json.loads(msgspec.json.encode(every))
