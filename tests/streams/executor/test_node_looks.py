"""One look serves the evictions of a node: few requests, and a list that is behind harms no pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault, deep
from evictstream.models.execution.last_look import SeenPod
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.executor import node_looks, pod_requests
from evictstream.streams.executor.eviction import ExecutorMode, PodEvictor
from evictstream.streams.executor.node_looks import LISTED_FROM, NodeLooks
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.kubernetes.connection import Connection
from tests.models.execution.samples import command
from tests.streams.executor.braking import unbraked

PODS = 30
NAMES = [f"p-{number}" for number in range(PODS)]
TOLERANT = {"nodeName": "n-1", "tolerations": [{"operator": "Exists"}]}


@pytest.fixture
def full(api: FakeApi) -> FakeApi:
    """An API server whose node has many pods."""
    for name in NAMES:
        api.put("Pod", name, uid=f"uid-{name}", spec={"nodeName": "n-1"}, status={"phase": "Running"})
    return api


def evictor(requests: PodRequests, mode: ExecutorMode = ExecutorMode.DELETE) -> PodEvictor:
    looks = NodeLooks(requests, lists=mode is not ExecutorMode.EVICT)
    return PodEvictor(requests=requests, looks=looks, mode=mode, brakes=unbraked())


def evict_all(found: PodEvictor, names: list[str]) -> Counter[Any]:
    return Counter(getattr(found.evict(command(pod=name), 0), "outcome", None) for name in names)


def test_pods_of_a_node_are_listed_once(full: FakeApi, connection: Connection) -> None:
    assert evict_all(evictor(PodRequests(connection)), NAMES) == {Outcome.SUCCEEDED: PODS}
    asked = Counter(full.requests)
    assert asked["list pods"] <= 2
    assert asked["get nodes"] <= 3
    assert asked["get pods"] <= LISTED_FROM - 1
    assert asked["delete pods"] == asked["patch pods/status"] == PODS


def test_many_threads_share_one_list(full: FakeApi, connection: Connection) -> None:
    found = evictor(PodRequests(connection))
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda name: found.evict(command(pod=name), 0), NAMES))
    assert {getattr(answer, "outcome", None) for answer in answers} == {Outcome.SUCCEEDED}
    assert Counter(full.requests)["list pods"] <= 2


def test_pods_of_different_nodes_are_not_listed(api: FakeApi, connection: Connection) -> None:
    for name in NAMES[:5]:
        api.put("Node", f"of-{name}", uid=f"uid-of-{name}", spec=api.objects["Node", "n-1"]["spec"])
        api.put("Pod", name, uid=f"uid-{name}", spec={"nodeName": f"of-{name}"}, status={"phase": "Running"})
    found = evictor(PodRequests(connection))
    for name in NAMES[:5]:
        found.evict(command(pod=name, node=f"of-{name}", node_uid=f"uid-of-{name}"), 0)
    assert Counter(api.requests)["list pods"] == 0


class StaleRequests(PodRequests):
    """Answers lists from a cache that stopped at a moment."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._stale = super().pods_of("n-1")

    def pods_of(self, node: str) -> dict[str, SeenPod] | None:
        assert node == "n-1"
        return self._stale


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param({"spec": TOLERANT}, Outcome.OBSOLETE, id="tolerates it now"),
        pytest.param({"spec": {"nodeName": "n-1"}, "status": {"phase": "Failed"}}, Outcome.OBSOLETE, id="has ended"),
        pytest.param({"uid": "uid-later", "spec": {"nodeName": "n-1"}}, Outcome.GONE, id="another has its name"),
        pytest.param(None, Outcome.GONE, id="is gone"),
        pytest.param(
            {"spec": {"nodeName": "n-1"}, "status": {"phase": "Running", "message": "1"}},
            Outcome.SUCCEEDED,
            id="has another status",
        ),
    ],
)
def test_a_list_that_is_behind_harms_no_pod(
    full: FakeApi, connection: Connection, change: Mapping[str, Any] | None, says: Outcome
) -> None:
    found = evictor(StaleRequests(connection))
    evict_all(found, NAMES[:LISTED_FROM])
    name = NAMES[-1]
    if change is None or "uid" in change:
        full.remove("Pod", name)
    if change is not None:
        full.put("Pod", name, **change)
    full.writes.clear()
    assert evict_all(found, [name]) == {says: 1}
    removed = [write for write in full.writes if write.is_removal and write.done_to is not None]
    assert len(removed) == (says is Outcome.SUCCEEDED)


def test_a_pod_that_is_newer_than_the_list_is_read(full: FakeApi, connection: Connection) -> None:
    found = evictor(StaleRequests(connection))
    evict_all(found, NAMES[:LISTED_FROM])
    full.put("Pod", "newer", uid="uid-newer", spec={"nodeName": "n-1"}, status={"phase": "Running"})
    assert evict_all(found, ["newer"]) == {Outcome.SUCCEEDED: 1}


@pytest.mark.parametrize("status", [403, 404, 410, 429, 500])
def test_a_refused_list_leaves_each_pod_to_a_request(full: FakeApi, connection: Connection, status: int) -> None:
    full.trouble["list pods"] = [Fault(status=status)] * PODS
    assert evict_all(evictor(PodRequests(connection)), NAMES) == {Outcome.SUCCEEDED: PODS}


def test_a_list_without_an_answer_is_asked_for_again(full: FakeApi, connection: Connection) -> None:
    found = evictor(PodRequests(connection))
    evict_all(found, NAMES[: LISTED_FROM - 1])
    full.trouble["list pods"] = ["cut"]
    assert evict_all(found, NAMES[LISTED_FROM : LISTED_FROM + 1]) == {None: 1}, "it is put off"
    assert evict_all(found, NAMES[LISTED_FROM:]) == {Outcome.SUCCEEDED: PODS - LISTED_FROM}


def test_a_list_beyond_the_limit_is_given_up(
    full: FakeApi, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_requests, "LARGEST_LIST_BYTES", 1_000)
    assert PodRequests(connection).pods_of("n-1") is None
    assert evict_all(evictor(PodRequests(connection)), NAMES) == {Outcome.SUCCEEDED: PODS}


def test_a_pod_too_deep_for_a_decoder_costs_no_other(full: FakeApi, connection: Connection) -> None:
    full.put(
        "Pod",
        NAMES[3],
        uid=f"uid-{NAMES[3]}",
        spec={"nodeName": "n-1"},
        metadata={"managedFields": [{"fieldsV1": deep(9_000)}]},
    )
    assert evict_all(evictor(PodRequests(connection)), NAMES) == {Outcome.SUCCEEDED: PODS}


def test_the_eviction_api_gets_pods_from_etcd(full: FakeApi, connection: Connection) -> None:
    evict_all(evictor(PodRequests(connection), ExecutorMode.EVICT), NAMES[:5])
    assert Counter(full.requests)["list pods"] == 0


def test_few_nodes_are_kept(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_looks, "MOST_NODES", 2)
    looks = NodeLooks(PodRequests(connection), lists=True)
    for number in range(9):
        looks.node(command(node=f"n-{number}"))
    assert len(looks._nodes) <= 2
