"""The mode `request`: an EvictionRequest is made, followed, and withdrawn when it is of no use any more."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault, Object
from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.eviction_requests import REQUESTER, WITHDRAWN_MARK, cluster_label, request_key
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.executor import open_requests, request_watch
from evictstream.streams.executor.eviction import ExecutorMode, PodEvictor, PutOff
from evictstream.streams.executor.node_looks import NodeLooks
from evictstream.streams.executor.open_requests import OpenRequests
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.executor.request_calls import RequestCalls, RequestLine
from evictstream.streams.executor.request_keeper import KEEPERS, RequestKeeper
from evictstream.streams.kubernetes.connection import Connection
from tests.models.execution.samples import command as any_command
from tests.streams.executor.braking import SetBrakes, unbraked
from tests.streams.executor.serving import wait_for

UIDS = {letter: str(uuid.uuid5(uuid.NAMESPACE_OID, f"pod {letter}")) for letter in "abc"}
PERMITTED: Any = SimpleNamespace(is_permitted=True)


def command(pod: str = "a", **changes: Any) -> EvictionCommand:
    return any_command(pod=pod, **({"pod_uid": UIDS[pod]} | changes))


def name_of(pod: str = "a", **changes: Any) -> str:
    """Return the name by which the API server stores a pod's request."""
    return "/".join(request_key(command(pod, **changes)))


def request_of(api: FakeApi, pod: str = "a") -> Object | None:
    return api.objects.get(("EvictionRequest", name_of(pod)))


def outcome(found: CommandAnswer | PutOff) -> Outcome | None:
    return found.outcome if isinstance(found, CommandAnswer) else None


def written(api: FakeApi) -> list[str]:
    return [write.what for write in api.writes]


def edit(api: FakeApi, pod: str = "a", **status: Any) -> None:
    """Write the status of a pod's request, as a controller does."""
    api.put("EvictionRequest", name_of(pod), status=status)


def condition(type_: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": type_, "status": "True", "reason": reason, "message": message}


@pytest.fixture
def serving(api: FakeApi) -> FakeApi:
    """Give an API server with the gate on, whose pods have UIDs as real ones."""
    api.serves_requests = True
    for letter, uid in UIDS.items():
        api.remove("Pod", letter)
        api.put("Pod", letter, uid=uid, spec={"nodeName": "n-1"}, status={"phase": "Running"})
    return api


@pytest.fixture
def requests(serving: FakeApi, connection: Connection) -> Iterator[OpenRequests]:
    found = OpenRequests("c1", RequestCalls(connection, "c1"))
    found.watch.start()
    wait_for(lambda: found.watch.problem is None)
    yield found
    found.watch.stop()
    serving.end_watches()


@pytest.fixture
def keepers(requests: OpenRequests) -> Iterator[list[RequestKeeper]]:
    found = [RequestKeeper("c1", requests, PERMITTED, number=number) for number in range(KEEPERS)]
    for keeper in found:
        keeper.start()
    yield found
    for keeper in found:
        keeper.stop()
        keeper.join(10)


@pytest.fixture
def make(connection: Connection, requests: OpenRequests) -> Callable[..., PodEvictor]:
    def evictor(**changes: Any) -> PodEvictor:
        calls = PodRequests(connection)
        fields: Any = {"brakes": unbraked(), "open_requests": requests} | changes
        return PodEvictor(requests=calls, looks=NodeLooks(calls, lists=True), mode=ExecutorMode.REQUEST, **fields)

    return evictor


@pytest.fixture
def evictor(make: Callable[..., PodEvictor]) -> PodEvictor:
    return make()


def test_a_pod_that_has_to_leave_gets_a_request(serving: FakeApi, evictor: PodEvictor) -> None:
    found = evictor.evict(command(), 0)

    assert isinstance(found, PutOff)
    assert (found.is_open, found.seconds) == (True, open_requests.ACCEPTED_SECONDS)
    made = request_of(serving)
    assert made is not None
    pod = {"name": "a", "uid": UIDS["a"]}
    assert made["spec"] == {"target": {"pod": pod}, "requester": REQUESTER, "intent": "Eviction"}
    assert made["metadata"]["ownerReferences"] == [{"apiVersion": "v1", "kind": "Pod", **pod}]
    assert made["metadata"]["annotations"] == {"evictstream.io/cluster": "c1"}

    again = evictor.evict(command(), 1)
    assert isinstance(again, PutOff)
    assert again.is_open
    assert written(serving) == ["create evictionrequests"]


@pytest.mark.parametrize("is_gone", [True, False], ids=["gone", "terminating"])
def test_the_pod_itself_shows_success(serving: FakeApi, evictor: PodEvictor, *, is_gone: bool) -> None:
    evictor.evict(command(), 0)
    edit(serving, conditions=[condition("TargetEvicted", "PodDeleted")], observedGeneration=1)
    wait_for(lambda: evictor.open_requests is not None and not evictor.open_requests.is_quiet(command()))

    claimed = evictor.evict(command(), 1)  # who may write the status may claim it
    assert isinstance(claimed, PutOff)
    assert claimed.is_open

    if is_gone:
        serving.remove("Pod", "a")
    else:
        serving.put("Pod", "a", metadata={"deletionTimestamp": "2026-11-27T12:00:00Z"})
    assert outcome(evictor.evict(command(), 2)) is Outcome.SUCCEEDED


@pytest.mark.parametrize("reason", ["NoFurtherResponder", "EvictionInvalid"])
def test_a_failed_request_is_answered_with_its_reason(serving: FakeApi, evictor: PodEvictor, reason: str) -> None:
    evictor.evict(command(), 0)
    edit(serving, conditions=[condition("Failed", reason, "a budget is in the way")], observedGeneration=1)
    wait_for(lambda: evictor.open_requests is not None and not evictor.open_requests.is_quiet(command()))

    found = evictor.evict(command(), 1)
    assert outcome(found) is Outcome.FAILED
    assert f"{reason}: a budget is in the way" in found.reason


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "withdrawn"])
def test_what_others_withdraw_is_refused(serving: FakeApi, evictor: PodEvictor, *, is_deleted: bool) -> None:
    evictor.evict(command(), 0)
    made = request_of(serving)
    assert made is not None
    if is_deleted:
        serving.remove("EvictionRequest", name_of())
    else:
        serving.put("EvictionRequest", name_of(), spec=made["spec"] | {"intent": "Withdrawn"})
    wait_for(lambda: evictor.open_requests is not None and not evictor.open_requests.is_quiet(command()))

    found = evictor.evict(command(), 1)
    assert outcome(found) is Outcome.REFUSED
    assert "somebody else" in found.reason


def test_a_veto_withdraws_what_was_asked_for(
    serving: FakeApi, keepers: list[RequestKeeper], evictor: PodEvictor
) -> None:
    assert all(keeper.is_alive() for keeper in keepers)
    evictor.evict(command(), 0)
    serving.put("Node", "n-1", spec={})
    edit(serving, observedGeneration=1)
    time.sleep(1.1)  # longer than the look at the node is used

    assert outcome(evictor.evict(command(), 1)) is Outcome.OBSOLETE
    wait_for(lambda: "patch evictionrequests" in written(serving))
    made = request_of(serving)
    assert made is not None
    assert made["spec"]["intent"] == "Withdrawn"
    assert WITHDRAWN_MARK in made["metadata"]["annotations"]
    time.sleep(1.0)  # a controller that has not seen it yet: it stays
    assert request_of(serving) is not None
    edit(serving, observedGeneration=2)
    wait_for(lambda: request_of(serving) is None)


def test_a_successor_adopts_what_it_finds(serving: FakeApi, connection: Connection, evictor: PodEvictor) -> None:
    evictor.evict(command(), 0)
    serving.trouble["watch evictionrequests"] = [Fault(delay_seconds=60)]
    successor = OpenRequests("c1", RequestCalls(connection, "c1"))
    successor.watch.problem = None  # it has not seen the request in its list
    calls = PodRequests(connection)
    looks = NodeLooks(calls, lists=True)
    other = PodEvictor(
        requests=calls, looks=looks, mode=ExecutorMode.REQUEST, brakes=unbraked(), open_requests=successor
    )

    found = other.evict(command(), 0)
    assert isinstance(found, PutOff)
    assert found.is_open
    assert [write.status for write in serving.writes] == [201, 409]
    serving.remove("Pod", "a")
    assert outcome(other.evict(command(), 1)) is Outcome.SUCCEEDED


def test_a_foreign_request_of_the_name_is_failed(serving: FakeApi, evictor: PodEvictor) -> None:
    serving.put(
        "EvictionRequest",
        name_of(),
        metadata={"generation": 1},
        spec={"target": {"pod": {"name": "b", "uid": UIDS["b"]}}, "requester": "acme.io/drainer", "intent": "Eviction"},
    )
    found = evictor.evict(command(), 0)
    assert outcome(found) is Outcome.FAILED
    assert "another EvictionRequest has the name" in found.reason


@pytest.mark.parametrize("meta", [{}, {"deletionTimestamp": "2026-11-27T12:00:00Z"}], ids=["there", "being deleted"])
def test_a_copy_in_another_namespace_is_not_ours(
    serving: FakeApi, evictor: PodEvictor, requests: OpenRequests, meta: Object
) -> None:
    copied = name_of(namespace="of-a-tenant")
    labels = {"evictstream.io/cluster": cluster_label("c1")}
    spec = {"target": {"pod": {"name": "a", "uid": UIDS["a"]}}, "requester": REQUESTER, "intent": "Eviction"}
    serving.put("EvictionRequest", copied, metadata={"generation": 1, "labels": labels} | meta, spec=spec)
    wait_for(lambda: len(requests) == 1)

    found = evictor.evict(command(), 0)
    assert isinstance(found, PutOff)
    assert found.is_open
    assert written(serving) == ["create evictionrequests"]
    assert request_of(serving) is not None
    serving.remove("EvictionRequest", copied)
    wait_for(lambda: len(requests) == 1)
    again = evictor.evict(command(), 1)
    assert isinstance(again, PutOff)
    assert again.is_open


class ExpiringCalls(RequestCalls):
    """Each of its watches ends at once, since its version is too old."""

    def watch(self, version: str) -> Iterator[RequestLine]:
        yield RequestLine(type="ERROR", object=msgspec.Raw(f'{{"code":410,"version":"{version}"}}'.encode()))


def test_watches_that_expire_at_once_pause_between_lists(serving: FakeApi, connection: Connection) -> None:
    watch = OpenRequests("c1", ExpiringCalls(connection, "c1")).watch
    watch.start()
    time.sleep(2.5)
    watch.stop()
    watch.join(10)
    assert 2 <= serving.requests.count("list evictionrequests") <= 4


def test_a_flood_of_requests_hides_none_of_ours(
    serving: FakeApi, evictor: PodEvictor, requests: OpenRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_watch, "MOST_KNOWN", 3)
    meta = {"generation": 1, "labels": {"evictstream.io/cluster": cluster_label("c1")}}
    spec = {"target": {"pod": {"name": "b", "uid": UIDS["b"]}}, "requester": REQUESTER, "intent": "Eviction"}
    for number in range(5):
        serving.put("EvictionRequest", f"a-tenant/r-{number}", metadata=meta, spec=spec)
    wait_for(lambda: len(requests) == 3)

    def is_open() -> bool:
        found = evictor.evict(command(), 0)
        return isinstance(found, PutOff) and found.is_open

    assert is_open()
    assert is_open()
    with serving.changing():  # a watch that is too old: all is listed again
        edit(serving, observedGeneration=1)
        serving.put("EvictionRequest", "a-tenant/r-5", metadata=meta, spec=spec)
        serving.forget_history()
    wait_for(lambda: serving.requests.count("list evictionrequests") == 2 and len(requests) == 4)
    wait_for(lambda: (known := requests.watch.get(request_key(command()))) is not None and known.is_noticed)
    assert is_open()
    serving.remove("EvictionRequest", name_of())
    wait_for(lambda: not requests.is_quiet(command()))
    assert outcome(evictor.evict(command(), 0)) is Outcome.REFUSED


def test_without_a_controller_it_is_failed_after_a_minute(
    monkeypatch: pytest.MonkeyPatch, serving: FakeApi, evictor: PodEvictor, requests: OpenRequests
) -> None:
    monkeypatch.setattr("evictstream.models.execution.eviction_requests.NOTICED_SECONDS", 0.2)
    evictor.evict(command(), 0)
    time.sleep(0.3)  # nobody sees the request

    found = evictor.evict(command(), 1)
    assert outcome(found) is Outcome.FAILED
    assert "nobody acts on EvictionRequests" in found.reason
    assert requests.is_ignored
    evictor.evict(command("b"), 0)
    edit(serving, "b", observedGeneration=1)
    wait_for(lambda: not requests.is_ignored)


def test_patience_withdraws_before_it_deletes(
    serving: FakeApi, make: Callable[..., PodEvictor], monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = make(delete_after_seconds=0.5)
    began_at = time.monotonic()
    found = patient.evict(command(), 0, began_at)
    assert isinstance(found, PutOff)
    assert found.is_open
    edit(serving, observedGeneration=1)
    time.sleep(0.6)  # the patience

    waits = patient.evict(command(), 1, began_at)
    assert isinstance(waits, PutOff)
    assert not waits.is_open
    assert ("Pod", "a") in serving.objects
    edit(serving, observedGeneration=2)
    wait_for(lambda: outcome(patient.evict(command(), 2, began_at)) is Outcome.SUCCEEDED)
    assert written(serving) == ["create evictionrequests", "patch evictionrequests", "patch pods/status", "delete pods"]


def test_a_successor_out_of_patience_withdraws_first(
    serving: FakeApi, make: Callable[..., PodEvictor], requests: OpenRequests
) -> None:
    make().evict(command(), 0)
    wait_for(lambda: len(requests) == 1)
    requests.abandon()
    late = make(delete_after_seconds=0.0)

    waits = late.evict(command(), 0, time.monotonic() - 1)
    assert isinstance(waits, PutOff)
    assert written(serving) == ["create evictionrequests", "patch evictionrequests"]


def test_a_member_of_a_group_is_evicted(serving: FakeApi, evictor: PodEvictor) -> None:
    group = {"nodeName": "n-1", "schedulingGroup": {"podGroupName": "train"}}
    serving.put("Pod", "a", spec=group)
    assert outcome(evictor.evict(command(), 0)) is Outcome.SUCCEEDED
    assert written(serving) == ["create pods/eviction"]


def test_a_brake_lets_no_request_begin(serving: FakeApi, make: Callable[..., PodEvictor]) -> None:
    brakes = SetBrakes()
    brakes.set()
    assert outcome(make(brakes=brakes.of_cluster()).evict(command(), 0)) is Outcome.HELD
    assert not written(serving)


def test_orphans_of_an_earlier_executor_are_withdrawn(
    serving: FakeApi, keepers: list[RequestKeeper], evictor: PodEvictor, requests: OpenRequests
) -> None:
    assert all(keeper.is_alive() for keeper in keepers)
    for pod in "ab":
        evictor.evict(command(pod), 0)
    meta = {"generation": 1, "labels": {"evictstream.io/cluster": cluster_label("c2")}}
    serving.put("EvictionRequest", "shop/of-another-cluster", metadata=meta, spec=(request_of(serving) or {})["spec"])
    wait_for(lambda: len(requests) == 2)
    requests.abandon()

    requests.release_others(requests.known(), {request_key(command("b"))})
    wait_for(lambda: (request_of(serving) or {}).get("spec", {}).get("intent") == "Withdrawn")
    edit(serving, observedGeneration=2)
    wait_for(lambda: request_of(serving) is None)
    assert (request_of(serving, "b") or {})["spec"]["intent"] == "Eviction"
    assert ("EvictionRequest", "shop/of-another-cluster") in serving.objects


def test_a_pod_is_read_from_etcd_before_its_request(serving: FakeApi, evictor: PodEvictor) -> None:
    for pod in "abc":
        evictor.evict(command(pod), 0)
    assert "list pods" not in serving.requests  # a cache may not have a toleration that was just added
    for pod in "abc":
        evictor.evict(command(pod), 1)
    assert list(serving.requests).count("list pods") == 1


def test_a_full_house_lets_others_wait(serving: FakeApi, evictor: PodEvictor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_requests, "MOST_MADE", 1)
    evictor.evict(command(), 0)
    found = evictor.evict(command("b"), 0)
    assert isinstance(found, PutOff)
    assert not found.is_open
    assert request_of(serving, "b") is None


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
    serving: FakeApi, evictor: PodEvictor, fault: int | Fault, follows: Outcome | str
) -> None:
    serving.trouble["create evictionrequests"] = [fault]
    found = evictor.evict(command(), 0)
    if isinstance(found, PutOff):
        assert ("cluster " if found.is_of_cluster else "") + "put off" == follows
        again = evictor.evict(command(), 1)
        assert isinstance(again, PutOff)
        assert again.is_open
    else:
        assert found.outcome == follows
