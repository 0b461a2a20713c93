"""The fast path does exactly what `apply_pod` would do, or nothing."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evictstream.models.eviction import Changes, NodeAggregate, Origin, PodEvent, RuleParameters, apply_pod
from evictstream.models.eviction.state import NodeState, TaintState
from evictstream.models.kubernetes import Taint
from evictstream.models.messages.decoding import decode_pod_record, read_decoded_pod
from evictstream.models.messages.envelope import DEFAULT_LIMITS
from evictstream.models.messages.unreadable import Unreadable
from evictstream.streams.service.fast_path import apply_plain_change

KEY = b"lab/n0"
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


def step(aggregate: NodeAggregate, pod: dict[str, Any]) -> object:
    """Apply it by `apply_pod`; returns the changes, or the error."""
    try:
        opened = decode_pod_record(json.dumps({"cluster": "lab", "type": "MODIFIED", "object": pod}).encode())
        event = read_decoded_pod(opened, KEY, 10**15, Origin("pods", 0, 0))
    except Unreadable as error:
        return error
    assert isinstance(event, PodEvent)
    return apply_pod(aggregate, event, RULES)


def fast(aggregate: NodeAggregate, pod: dict[str, Any]) -> tuple[bytes, bytes] | bool:
    opened = decode_pod_record(json.dumps({"cluster": "lab", "type": "MODIFIED", "object": pod}).encode())
    assert opened.object is not None
    return apply_plain_change(aggregate, opened, opened.object, 10**15, DEFAULT_LIMITS)


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


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("metadata.uid", "other", id="another pod of that name"),
        pytest.param("metadata.resourceVersion", "100", id="duplicate"),
        pytest.param("metadata.resourceVersion", "99", id="older"),
        pytest.param("metadata.resourceVersion", "x101", id="version that is no number"),
        pytest.param("metadata.resourceVersion", "", id="no version"),
        pytest.param("metadata.name", None, id="no name"),
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


PODS = st.builds(
    with_change,
    st.sampled_from(["metadata.uid", "metadata.resourceVersion", "spec.nodeName", "spec.tolerations", "status.phase"]),
    st.sampled_from([None, "u", "n0", "101", "7", "Running", "Succeeded", [], POD["spec"]["tolerations"]]),
)


@settings(max_examples=300, deadline=None)
@given(PODS)
def test_the_fast_path_changes_what_apply_pod_would_change(pod: dict[str, Any]) -> None:
    short, long = known(), known()
    try:
        taken = fast(short, pod)
    except Unreadable:
        return
    if taken:
        changes = step(long, pod)
        assert isinstance(changes, Changes)
        assert list(changes.rows) == ([] if taken is True else [taken])
        assert [*changes.commands, *changes.decisions, *changes.wakeups] == []
        assert short.pods == long.pods
    else:
        assert short.pods == known().pods
