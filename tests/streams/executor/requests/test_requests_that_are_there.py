"""Requests that an executor finds: those of an earlier one are its own, those of others are not."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault, Object
from evictstream.models.execution.eviction_requests import REQUESTER, cluster_label, request_key
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.executor import request_watch
from evictstream.streams.executor.eviction import ExecutorMode, PodEvictor, PutOff
from evictstream.streams.executor.node_looks import NodeLooks
from evictstream.streams.executor.open_requests import OpenRequests
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.executor.request_calls import RequestCalls
from evictstream.streams.executor.request_keeper import RequestKeeper
from evictstream.streams.kubernetes.connection import Connection
from tests.streams.executor.braking import unbraked
from tests.streams.executor.requests.conftest import (
    UIDS,
    command,
    edit,
    name_of,
    outcome,
    request_of,
    written,
)
from tests.streams.executor.serving import wait_for


def test_a_successor_adopts_what_it_finds(requested: FakeApi, connection: Connection, evictor: PodEvictor) -> None:
    evictor.evict(command(), 0)
    requested.trouble["watch evictionrequests"] = [Fault(delay_seconds=60)]
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
    assert [write.status for write in requested.writes] == [201, 409]
    requested.remove("Pod", "a")
    assert outcome(other.evict(command(), 1)) is Outcome.SUCCEEDED


def test_a_foreign_request_of_the_name_is_failed(requested: FakeApi, evictor: PodEvictor) -> None:
    requested.put(
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
    requested: FakeApi, evictor: PodEvictor, requests: OpenRequests, meta: Object
) -> None:
    copied = name_of(namespace="of-a-tenant")
    labels = {"evictstream.io/cluster": cluster_label("c1")}
    spec = {"target": {"pod": {"name": "a", "uid": UIDS["a"]}}, "requester": REQUESTER, "intent": "Eviction"}
    requested.put("EvictionRequest", copied, metadata={"generation": 1, "labels": labels} | meta, spec=spec)
    wait_for(lambda: len(requests) == 1)

    found = evictor.evict(command(), 0)
    assert isinstance(found, PutOff)
    assert found.is_open
    assert written(requested) == ["create evictionrequests"]
    assert request_of(requested) is not None
    requested.remove("EvictionRequest", copied)
    wait_for(lambda: len(requests) == 1)
    again = evictor.evict(command(), 1)
    assert isinstance(again, PutOff)
    assert again.is_open


def test_a_flood_of_requests_hides_none_of_ours(
    requested: FakeApi, evictor: PodEvictor, requests: OpenRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_watch, "MOST_KNOWN", 3)
    meta = {"generation": 1, "labels": {"evictstream.io/cluster": cluster_label("c1")}}
    spec = {"target": {"pod": {"name": "b", "uid": UIDS["b"]}}, "requester": REQUESTER, "intent": "Eviction"}
    for number in range(5):
        requested.put("EvictionRequest", f"a-tenant/r-{number}", metadata=meta, spec=spec)
    wait_for(lambda: len(requests) == 3)

    def is_open() -> bool:
        found = evictor.evict(command(), 0)
        return isinstance(found, PutOff) and found.is_open

    assert is_open()
    assert is_open()
    with requested.changing():  # a watch that is too old: all is listed again
        edit(requested, observedGeneration=1)
        requested.put("EvictionRequest", "a-tenant/r-5", metadata=meta, spec=spec)
        requested.forget_history()
    wait_for(lambda: requested.requests.count("list evictionrequests") == 2 and len(requests) == 4)
    wait_for(lambda: (known := requests.watch.get(request_key(command()))) is not None and known.is_noticed)
    assert is_open()
    requested.remove("EvictionRequest", name_of())
    wait_for(lambda: not requests.is_quiet(command()))
    assert outcome(evictor.evict(command(), 0)) is Outcome.REFUSED


def test_a_successor_out_of_patience_withdraws_first(
    requested: FakeApi, make: Callable[..., PodEvictor], requests: OpenRequests
) -> None:
    make().evict(command(), 0)
    wait_for(lambda: len(requests) == 1)
    requests.abandon()
    late = make(delete_after_seconds=0.0)

    waits = late.evict(command(), 0, time.monotonic() - 1)
    assert isinstance(waits, PutOff)
    assert written(requested) == ["create evictionrequests", "patch evictionrequests"]


def test_orphans_of_an_earlier_executor_are_withdrawn(
    requested: FakeApi, keepers: list[RequestKeeper], evictor: PodEvictor, requests: OpenRequests
) -> None:
    assert all(keeper.is_alive() for keeper in keepers)
    for pod in "ab":
        evictor.evict(command(pod), 0)
    meta = {"generation": 1, "labels": {"evictstream.io/cluster": cluster_label("c2")}}
    requested.put(
        "EvictionRequest", "shop/of-another-cluster", metadata=meta, spec=(request_of(requested) or {})["spec"]
    )
    wait_for(lambda: len(requests) == 2)
    requests.abandon()

    requests.release_others(requests.known(), {request_key(command("b"))})
    wait_for(lambda: (request_of(requested) or {}).get("spec", {}).get("intent") == "Withdrawn")
    edit(requested, observedGeneration=2)
    wait_for(lambda: request_of(requested) is None)
    assert (request_of(requested, "b") or {})["spec"]["intent"] == "Eviction"
    assert ("EvictionRequest", "shop/of-another-cluster") in requested.objects
