"""What follows from the state of an EvictionRequest, as tables."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evictstream.models.execution.eviction_requests import (
    CLUSTER_MARK,
    EVICTION,
    NOTICED_SECONDS,
    REQUESTER,
    REQUESTS_KIND,
    REQUESTS_VERSION,
    WITHDRAWAL_SECONDS,
    WITHDRAWN,
    WITHDRAWN_MARK,
    CleanUp,
    RequestState,
    clean_up,
    cluster_label,
    is_for,
    is_ignored,
    is_leaving,
    read_eviction_request,
    request_body,
    requested_answer,
    withdrawal_body,
)
from evictstream.models.execution.last_look import SeenPod
from evictstream.models.messages.vocabulary import Outcome
from tests.models.execution.samples import command

UID = "9d0f6f0c-0c6c-4d6f-8e3a-6f6f6f6f6f6f"
FAILED = {"type": "Failed", "status": "True", "reason": "NoFurtherResponder", "message": "11 have tried"}
EVICTED = {"type": "TargetEvicted", "status": "True", "reason": "PodDeleted", "message": ""}
AWAITING = {"type": "Failed", "status": "False", "reason": "AwaitingEviction", "message": ""}


def written(*, meta: dict[str, Any] | None = None, spec: dict[str, Any] | None = None, **status: Any) -> bytes:
    """Write a request as the API server has it after its creation, with changes."""
    body: dict[str, Any] = request_body(command())
    body["metadata"] |= {"uid": UID, "resourceVersion": "77", "generation": 1} | (meta or {})
    body["spec"] |= spec or {}
    return json.dumps(body | {"status": status}).encode()


def state(**changes: Any) -> RequestState:
    return msgspec.structs.replace(read_eviction_request(written()), **changes)


def seen_pod(uid: str = "uid-a", *, is_terminating: bool = False) -> SeenPod:
    return SeenPod(
        uid=uid,
        resource_version="1",
        node="n-1",
        phase="Running",
        is_terminating=is_terminating,
        is_mirror=False,
        is_disruption_target=False,
        tolerations=(),
    )


def test_a_request_names_pod_owner_and_who_asks() -> None:
    body: Any = request_body(command())
    assert (body["apiVersion"], body["kind"]) == (REQUESTS_VERSION, REQUESTS_KIND)
    assert (body["metadata"]["name"], body["metadata"]["namespace"]) == (command().eviction_id, "shop")
    assert body["metadata"]["labels"] == {CLUSTER_MARK: cluster_label("c1")}
    assert body["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-a"}]
    pod = {"name": "a", "uid": "uid-a"}
    assert body["spec"] == {"target": {"pod": pod}, "requester": REQUESTER, "intent": EVICTION}
    assert is_for(read_eviction_request(written()), command())


@given(st.text(min_size=1))
def test_any_name_of_a_cluster_fits_a_label(name: str) -> None:
    label = cluster_label(name)
    assert len(label) <= 63
    assert label.isalnum()


@pytest.mark.parametrize(
    "changes",
    [
        {"namespace": "elsewhere"},
        {"requester": "acme.io/drainer"},
        {"cluster_label": cluster_label("c2")},
        {"pod": "b"},
        {"pod_uid": "uid-later"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_request_of_somebody_else_is_not_ours(changes: dict[str, str]) -> None:
    assert not is_for(state(**changes), command())


def test_a_withdrawal_holds_for_one_version_and_says_whose() -> None:
    body: Any = withdrawal_body(state())
    assert body["metadata"] == {"uid": UID, "resourceVersion": "77", "annotations": {WITHDRAWN_MARK: "true"}}
    assert body["spec"] == {"intent": WITHDRAWN}


READ: list[tuple[str, bytes, dict[str, Any]]] = [
    ("new", written(), {"observed_generation": None, "failure": None, "is_evicted": False, "version": 77}),
    ("noticed", written(observedGeneration=1, conditions=[AWAITING]), {"observed_generation": 1, "failure": None}),
    ("failed", written(conditions=[FAILED]), {"failure": "NoFurtherResponder: 11 have tried"}),
    (
        "failed before",
        written(meta={"generation": 3}, conditions=[FAILED | {"observedGeneration": 2}]),
        {"failure": None},
    ),
    ("evicted", written(conditions=[EVICTED]), {"is_evicted": True}),
    ("without a status", written().replace(b', "status": {}', b""), {"observed_generation": None}),
    ("withdrawn here", written(meta={"annotations": {WITHDRAWN_MARK: "true"}}), {"is_withdrawn_here": True}),
    ("withdrawn", written(spec={"intent": WITHDRAWN}), {"intent": WITHDRAWN, "is_withdrawn_here": False}),
    ("being deleted", written(meta={"deletionTimestamp": "2026-11-27T12:00:00Z"}), {"is_deleting": True}),
    ("an odd version", written(meta={"resourceVersion": "x"}), {"version": 0}),
    ("another kind of target", written(spec={"target": {}}), {"pod": "", "pod_uid": ""}),
]


@pytest.mark.parametrize(("text", "fields"), [pytest.param(*row[1:], id=row[0]) for row in READ])
def test_what_is_read_of_a_request(text: bytes, fields: dict[str, Any]) -> None:
    found = read_eviction_request(text)
    assert {name: getattr(found, name) for name in fields} == fields


def test_a_long_message_is_cut() -> None:
    failure = read_eviction_request(written(conditions=[FAILED | {"message": "x" * 32_768}])).failure
    assert failure is not None
    assert len(failure) <= 500


@pytest.mark.parametrize(
    ("pod", "expected"),
    [(None, True), (seen_pod("uid-later"), True), (seen_pod(is_terminating=True), True), (seen_pod(), False)],
    ids=["gone", "another one", "terminating", "there"],
)
def test_only_the_pod_shows_that_it_leaves(pod: SeenPod | None, expected: bool) -> None:  # noqa: FBT001
    assert is_leaving(pod, command()) is expected


LATE = NOTICED_SECONDS
ANSWERS: list[tuple[str, RequestState | None, float, bool, Outcome | None]] = [
    ("just made", state(), 0.0, False, None),
    ("not noticed yet", state(), LATE - 1, False, None),
    ("never noticed", state(), LATE, False, Outcome.FAILED),
    ("never noticed, with patience", state(), LATE, True, None),
    ("noticed, for hours", state(observed_generation=1), 36_000.0, False, None),
    ("claimed to be evicted", state(observed_generation=1, is_evicted=True), LATE, False, None),
    ("failed", state(observed_generation=1, failure="EvictionInvalid"), 1.0, True, Outcome.FAILED),
    ("withdrawn by others", state(intent=WITHDRAWN), 1.0, True, Outcome.REFUSED),
    ("deleted by others", None, 1.0, True, Outcome.REFUSED),
    ("being deleted", state(is_deleting=True), 1.0, True, Outcome.REFUSED),
    ("made once more by others", state(uid="other"), 1.0, True, Outcome.REFUSED),
]


@pytest.mark.parametrize(
    ("found", "seconds", "is_patient", "outcome"), [pytest.param(*row[1:], id=row[0]) for row in ANSWERS]
)
def test_how_a_request_ends_while_its_pod_stays(
    found: RequestState | None,
    seconds: float,
    is_patient: bool,  # noqa: FBT001
    outcome: Outcome | None,
) -> None:
    answer = requested_answer(found, UID, seconds=seconds, is_patient=is_patient)
    assert (None if answer is None else answer.outcome) is outcome
    assert is_ignored(found, seconds) == (found is not None and not found.is_noticed and seconds >= LATE)


ENDS: list[tuple[str, RequestState, float | None, CleanUp]] = [
    ("wanted until now", state(), None, CleanUp.WITHDRAW),
    ("failed", state(failure="EvictionInvalid"), None, CleanUp.DELETE),
    ("evicted", state(is_evicted=True), None, CleanUp.DELETE),
    ("withdrawn, not seen", state(intent=WITHDRAWN, generation=2, observed_generation=1), 0.0, CleanUp.WAIT),
    ("withdrawn, seen", state(intent=WITHDRAWN, generation=2, observed_generation=2), 0.0, CleanUp.DELETE),
    ("withdrawn, never seen", state(intent=WITHDRAWN, generation=2), WITHDRAWAL_SECONDS, CleanUp.DELETE),
    ("withdrawn, of before a restart", state(intent=WITHDRAWN, generation=2), None, CleanUp.WAIT),
    ("withdrawn, none to see it", state(intent=WITHDRAWN, generation=2), math.inf, CleanUp.DELETE),
    ("with finalizers", state(is_deleting=True), None, CleanUp.WAIT),
]


@pytest.mark.parametrize(("found", "seconds", "step"), [pytest.param(*row[1:], id=row[0]) for row in ENDS])
def test_a_request_of_no_use_is_withdrawn_then_deleted(
    found: RequestState, seconds: float | None, step: CleanUp
) -> None:
    assert clean_up(found, seconds) is step


def test_of_a_pod_that_has_left_nothing_is_withdrawn() -> None:
    assert clean_up(state(), None, has_left=True) is CleanUp.DELETE
    assert clean_up(state(is_deleting=True), None, has_left=True) is CleanUp.WAIT


def test_what_is_withdrawn_comes_before_what_is_deleted() -> None:
    assert CleanUp.WITHDRAW.value < CleanUp.DELETE.value


@given(st.binary() | st.sampled_from([b"{}", b"[]", b'{"metadata":{},"spec":{}}', written(spec={"target": 1})]))
def test_what_is_no_request_is_no_state(text: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        read_eviction_request(text)
