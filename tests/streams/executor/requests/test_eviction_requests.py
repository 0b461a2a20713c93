"""The mode `request`: an EvictionRequest is made, followed, and withdrawn when it is of no use any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec
import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.models.execution.eviction_requests import REQUESTER, WITHDRAWN_MARK
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.executor import open_requests
from evictstream.streams.executor.eviction import PodEvictor, PutOff
from evictstream.streams.executor.open_requests import OpenRequests
from evictstream.streams.executor.request_calls import RequestCalls, RequestLine
from evictstream.streams.executor.request_keeper import RequestKeeper
from evictstream.streams.kubernetes.connection import Connection
from tests.streams.executor.braking import SetBrakes
from tests.streams.executor.requests.conftest import (
    UIDS,
    command,
    condition,
    edit,
    name_of,
    outcome,
    request_of,
    written,
)
from tests.streams.executor.serving import wait_for


def test_a_pod_that_has_to_leave_gets_a_request(requested: FakeApi, evictor: PodEvictor) -> None:
    found = evictor.evict(command(), 0)

    assert isinstance(found, PutOff)
    assert (found.is_open, found.seconds) == (True, open_requests.ACCEPTED_SECONDS)
    made = request_of(requested)
    assert made is not None
    pod = {"name": "a", "uid": UIDS["a"]}
    assert made["spec"] == {"target": {"pod": pod}, "requester": REQUESTER, "intent": "Eviction"}
    assert made["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Pod", **pod}]
    assert made["metadata"]["annotations"] == {"evictstream.io/cluster": "c1"}

    again = evictor.evict(command(), 1)
    assert isinstance(again, PutOff)
    assert again.is_open
    assert written(requested) == ["create evictionrequests"]


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "terminating"])
def test_the_pod_itself_shows_success(requested: FakeApi, evictor: PodEvictor, *, is_gone: bool) -> None:
    evictor.evict(command(), 0)
    edit(requested, conditions=[condition("TargetEvicted", "PodDeleted")], observedGeneration=1)
    wait_for(lambda: evictor.open_requests is not None and not evictor.open_requests.is_quiet(command()))

    claimed = evictor.evict(command(), 1)  # who may write the status may claim it
    assert isinstance(claimed, PutOff)
    assert claimed.is_open

    if is_gone:
        requested.remove("Pod", "a")
    else:
        requested.put("Pod", "a", metadata={"deletionTimestamp": "2026-11-27T12:00:00Z"})
    assert outcome(evictor.evict(command(), 2)) is Outcome.SUCCEEDED


@pytest.mark.parametrize("reason", ["NoFurtherResponder", "EvictionInvalid"])
def test_a_failed_request_is_answered_with_its_reason(requested: FakeApi, evictor: PodEvictor, reason: str) -> None:
    evictor.evict(command(), 0)
    edit(requested, conditions=[condition("Failed", reason, "a budget is in the way")], observedGeneration=1)
    wait_for(lambda: evictor.open_requests is not None and not evictor.open_requests.is_quiet(command()))

    found = evictor.evict(command(), 1)
    assert outcome(found) is Outcome.FAILED
    assert f"{reason}: a budget is in the way" in found.reason


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "withdrawn"])
def test_what_others_withdraw_is_refused(requested: FakeApi, evictor: PodEvictor, *, is_deleted: bool) -> None:
    evictor.evict(command(), 0)
    made = request_of(requested)
    assert made is not None
    if is_deleted:
        requested.remove("EvictionRequest", name_of())
    else:
        requested.put("EvictionRequest", name_of(), spec=made["spec"] | {"intent": "Withdrawn"})
    wait_for(lambda: evictor.open_requests is not None and not evictor.open_requests.is_quiet(command()))

    found = evictor.evict(command(), 1)
    assert outcome(found) is Outcome.REFUSED
    assert "somebody else" in found.reason


def test_a_veto_withdraws_what_was_asked_for(
    requested: FakeApi, keepers: list[RequestKeeper], evictor: PodEvictor
) -> None:
    assert all(keeper.is_alive() for keeper in keepers)
    evictor.evict(command(), 0)
    requested.put("Node", "n-1", spec={})
    edit(requested, observedGeneration=1)
    time.sleep(1.1)  # longer than the look at the node is used

    assert outcome(evictor.evict(command(), 1)) is Outcome.OBSOLETE
    wait_for(lambda: "patch evictionrequests" in written(requested))
    made = request_of(requested)
    assert made is not None
    assert made["spec"]["intent"] == "Withdrawn"
    assert WITHDRAWN_MARK in made["metadata"]["annotations"]
    time.sleep(1.0)  # a controller that has not seen it yet: it stays
    assert request_of(requested) is not None
    edit(requested, observedGeneration=2)
    wait_for(lambda: request_of(requested) is None)


class ExpiringCalls(RequestCalls):
    """Each of its watches ends at once, since its version is too old."""

    def watch(self, version: str) -> Iterator[RequestLine]:
        yield RequestLine(type="ERROR", object=msgspec.Raw(f'{{"code":410,"version":"{version}"}}'.encode()))


def test_watches_that_expire_at_once_pause_between_lists(requested: FakeApi, connection: Connection) -> None:
    watch = OpenRequests("c1", ExpiringCalls(connection, "c1")).watch
    watch.start()
    time.sleep(2.5)
    watch.stop()
    watch.join(10)
    assert 2 <= requested.requests.count("list evictionrequests") <= 4


def test_without_a_controller_it_is_failed_after_a_minute(
    monkeypatch: pytest.MonkeyPatch, requested: FakeApi, evictor: PodEvictor, requests: OpenRequests
) -> None:
    monkeypatch.setattr("evictstream.models.execution.eviction_requests.NOTICED_SECONDS", 0.2)
    evictor.evict(command(), 0)
    time.sleep(0.3)  # nobody sees the request

    found = evictor.evict(command(), 1)
    assert outcome(found) is Outcome.FAILED
    assert "nobody acts on EvictionRequests" in found.reason
    assert requests.is_ignored
    evictor.evict(command("b"), 0)
    edit(requested, "b", observedGeneration=1)
    wait_for(lambda: not requests.is_ignored)


def test_patience_withdraws_before_it_deletes(
    requested: FakeApi, make: Callable[..., PodEvictor], monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = make(delete_after_seconds=0.5)
    began_at = time.monotonic()
    found = patient.evict(command(), 0, began_at)
    assert isinstance(found, PutOff)
    assert found.is_open
    edit(requested, observedGeneration=1)
    time.sleep(0.6)  # the patience

    waits = patient.evict(command(), 1, began_at)
    assert isinstance(waits, PutOff)
    assert not waits.is_open
    assert ("Pod", "a") in requested.objects
    edit(requested, observedGeneration=2)
    wait_for(lambda: outcome(patient.evict(command(), 2, began_at)) is Outcome.SUCCEEDED)
    assert written(requested) == [
        "create evictionrequests",
        "patch evictionrequests",
        "patch pods/status",
        "delete pods",
    ]


def test_a_member_of_a_group_is_evicted(requested: FakeApi, evictor: PodEvictor) -> None:
    group = {"nodeName": "n-1", "schedulingGroup": {"podGroupName": "train"}}
    requested.put("Pod", "a", spec=group)
    assert outcome(evictor.evict(command(), 0)) is Outcome.SUCCEEDED
    assert written(requested) == ["create pods/eviction"]


def test_a_brake_lets_no_request_begin(requested: FakeApi, make: Callable[..., PodEvictor]) -> None:
    brakes = SetBrakes()
    brakes.set()
    assert outcome(make(brakes=brakes.of_cluster()).evict(command(), 0)) is Outcome.HELD
    assert not written(requested)


def test_a_pod_is_read_from_etcd_before_its_request(requested: FakeApi, evictor: PodEvictor) -> None:
    for pod in "abc":
        evictor.evict(command(pod), 0)
    assert "list pods" not in requested.requests  # a cache may not have a toleration that was just added
    for pod in "abc":
        evictor.evict(command(pod), 1)
    assert list(requested.requests).count("list pods") == 1


def test_a_full_house_lets_others_wait(
    requested: FakeApi, evictor: PodEvictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_requests, "MOST_MADE", 1)
    evictor.evict(command(), 0)
    found = evictor.evict(command("b"), 0)
    assert isinstance(found, PutOff)
    assert not found.is_open
    assert request_of(requested, "b") is None


@pytest.mark.parametrize(
    ("fault", "follows"),
    [
        (403, Outcome.REFUSED),
        (422, Outcome.FAILED),
        (500, "put off"),
        (Fault(status=404, text="404 page not found"), "put off"),
        (Fault(cut="after"), "cluster put off"),
    ],
)
def test_what_the_api_server_says_to_a_request(
    requested: FakeApi, evictor: PodEvictor, fault: int | Fault, follows: Outcome | str
) -> None:
    requested.trouble["create evictionrequests"] = [fault]
    found = evictor.evict(command(), 0)
    if isinstance(found, PutOff):
        assert ("cluster " if found.is_of_cluster else "") + "put off" == follows
        again = evictor.evict(command(), 1)
        assert isinstance(again, PutOff)
        assert again.is_open
    else:
        assert found.outcome == follows
