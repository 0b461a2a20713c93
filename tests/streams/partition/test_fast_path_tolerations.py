"""The fast path takes edits of tolerations for which nothing is due, and no move of their seconds."""

from __future__ import annotations

import pytest

from evictstream.models.eviction import Changes
from evictstream.models.eviction.state import NodeState, TaintState
from evictstream.models.kubernetes import Taint
from evictstream.streams.partition import fast_path
from evictstream.streams.partition.fast_path import _texts
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


def test_another_spelling_of_known_tolerations_is_no_edit() -> None:
    aggregate = known()
    for version, spelled in enumerate((b'"operator": "Exists"', b'"operator":"Exists"', b'"operator" :"Exists"'), 101):
        pod = {**POD, "metadata": {**POD["metadata"], "resourceVersion": str(version)}}
        left, outbox, _ = walk(aggregate, FakeRecord(encoded(pod).replace(b'"operator": "Exists"', spelled)))
        assert (left, outbox.entries) == ([], 0)
        assert aggregate.pods["u"].version == version


def test_edits_between_known_lists_decode_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    aggregate = known()
    lists = [[{"key": "k", "operator": "Exists", "tolerationSeconds": seconds}] for seconds in (5, 7)]
    edits = [with_change("spec.tolerations", lists[number % 2]) for number in range(5)]
    for version, edit in enumerate(edits, 101):
        edit["metadata"]["resourceVersion"] = str(version)
    assert fast(aggregate, edits[0]) is True
    assert fast(aggregate, edits[1])
    monkeypatch.setattr(fast_path, "read_handed_over", None)
    for edit in edits[2:]:
        assert isinstance(fast(aggregate, edit), tuple)
