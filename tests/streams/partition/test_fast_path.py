"""The fast path does exactly what `apply_pod` would do, or nothing."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.models.eviction import Changes, NodeAggregate
from evictstream.models.eviction.cluster import ClusterState
from evictstream.models.messages.decoding import decode_pod_record
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.models.messages.plain_pods import decode_plain_pod
from evictstream.streams.engine.core.logic import SLICE_COST, Part
from evictstream.streams.partition.fast_path import LARGE_BYTES, SLICE_BYTES
from tests.harness.examples import examples
from tests.streams.partition.plain_pods import (
    POD,
    FakeRecord,
    annotated,
    encoded,
    fast,
    known,
    step,
    walk,
    with_change,
)


def test_a_status_change_takes_the_fast_path() -> None:
    aggregate = known()
    assert fast(aggregate, with_change("status.conditions", [{"type": "Ready", "status": "True"}]))
    assert aggregate.pods["u"].version == 101


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
