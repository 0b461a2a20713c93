"""An API server that is away is noticed while nothing is due; a single lost request is no outage."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.streams.executor import cluster_proof
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.cluster_identity import ClusterIdentity, IdentifiedEvictor
from evictstream.streams.executor.cluster_proof import ASKED_AGAIN_SECONDS, ASKED_EACH_SECONDS, ClusterProof
from evictstream.streams.executor.eviction import ExecutorMode, PodEvictor
from evictstream.streams.executor.node_looks import NodeLooks
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.kubernetes import exchange
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.settings import Settings
from tests.models.execution.samples import command
from tests.streams.executor.braking import unbraked

QUESTION = "get namespaces"


@pytest.fixture
def identity(api: FakeApi, connection: Connection) -> ClusterIdentity:
    return ClusterIdentity("c1", api.uid, connection=connection, settings=Settings())


@pytest.fixture
def executor(connection: Connection, identity: ClusterIdentity) -> Iterator[ClusterExecutor]:
    requests = PodRequests(connection)
    looks, brakes = NodeLooks(requests, lists=True), unbraked()
    evictor = PodEvictor(requests=requests, looks=looks, mode=ExecutorMode.DELETE, brakes=brakes)
    found = ClusterExecutor(
        "c1", IdentifiedEvictor(evictor, identity), brakes=brakes, rate=10, burst=10, respond=lambda *_: None
    )
    yield found
    found.stop()


@pytest.fixture
def proof(executor: ClusterExecutor, identity: ClusterIdentity) -> ClusterProof:
    return ClusterProof(executor, identity)


def ask(proof: ClusterProof, executor: ClusterExecutor) -> tuple[float, bool]:
    """Ask; give the pause that follows, and whether the cluster is hindered."""
    return proof.ask(), executor.hindrance is not None


def go_down(api: FakeApi) -> None:
    api.is_down = True


def forbid(api: FakeApi) -> None:
    api.trouble[QUESTION] = [403] * 4


def want_another_token(api: FakeApi) -> None:
    api.token = "another"


@pytest.mark.parametrize("harm", [go_down, forbid, want_another_token])
def test_an_api_server_that_is_away_is_noticed_without_evictions(
    harm: Callable[[FakeApi], None], api: FakeApi, executor: ClusterExecutor, proof: ClusterProof
) -> None:
    assert ask(proof, executor) == (ASKED_EACH_SECONDS, False)
    harm(api)
    assert ask(proof, executor) == (ASKED_AGAIN_SECONDS, False)
    assert ask(proof, executor) == (ASKED_EACH_SECONDS, True)
    api.is_down, api.token = False, None
    api.trouble.clear()
    assert ask(proof, executor) == (ASKED_EACH_SECONDS, False)


def test_one_request_that_fails_is_no_outage(api: FakeApi, executor: ClusterExecutor, proof: ClusterProof) -> None:
    for _ in range(3):
        api.trouble[QUESTION] = [503]
        assert ask(proof, executor) == (ASKED_AGAIN_SECONDS, False)
        assert ask(proof, executor) == (ASKED_EACH_SECONDS, False)


def test_an_answer_that_does_not_come_counts_at_once(
    api: FakeApi, executor: ClusterExecutor, proof: ClusterProof, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "_REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(cluster_proof, "ASKED_EACH_SECONDS", 0.1)
    api.trouble[QUESTION] = [Fault(hold_seconds=0.5)]
    assert ask(proof, executor)[1]


def test_nothing_is_asked_while_an_eviction_waits(api: FakeApi, executor: ClusterExecutor, proof: ClusterProof) -> None:
    now = time.monotonic()
    executor.put(QueuedEviction(command=command(), reading=1, offset=0, queued_at=now, seen_at=now))
    api.is_down = True
    assert [proof.ask() for _ in range(3)] == [ASKED_EACH_SECONDS] * 3
    assert (executor.hindrance, list(api.requests)) == (None, [])
