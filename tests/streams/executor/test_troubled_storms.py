"""A storm at an API server in trouble: nothing is lost, nothing is asked for again too soon, the rest goes on."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.models.execution.command_log import CommandAnswer
from evictstream.models.execution.work_queue import QueuedEviction
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.eviction import ExecutorMode, PodEvictor
from evictstream.streams.executor.node_looks import NodeLooks
from evictstream.streams.executor.pod_requests import PodRequests
from evictstream.streams.kubernetes.connection import Connection
from tests.streams.executor.braking import unbraked
from tests.streams.executor.conftest import TAINTED, command_now

pytestmark = pytest.mark.slow

PODS = 200
NODES = 10
PATIENCE_SECONDS = 60.0
SLOW_SECONDS = 5.0
SLOW_EVERY = 16  # fewer of them than places of a namespace at the start


class Storm:
    """Evictions of a cluster that are all due, and the executor without Kafka."""

    def __init__(self, api: FakeApi, connection: Connection) -> None:
        for number in range(NODES):
            api.put("Node", f"m-{number}", uid=f"uid-m-{number}", spec=TAINTED)
        requests = PodRequests(connection)
        looks, brakes = NodeLooks(requests, lists=True), unbraked()
        evictor: Any = PodEvictor(requests=requests, looks=looks, mode=ExecutorMode.DELETE, brakes=brakes)
        self.answers: queue.SimpleQueue[tuple[str, Outcome]] = queue.SimpleQueue()
        self.executor = ClusterExecutor("c1", evictor, brakes=brakes, rate=1_000, burst=1_000, respond=self._note)
        self._api = api

    def _note(self, eviction: QueuedEviction, answer: CommandAnswer) -> None:
        self.answers.put((eviction.command.pod, answer.outcome))

    def begin(self, namespace: Callable[[int], str] = lambda _: "shop") -> None:
        now = time.monotonic()
        self.executor.permit(now + 10 * PATIENCE_SECONDS)
        for number in range(PODS):
            pod, node = f"p-{number}", f"m-{number % NODES}"
            metadata = {"namespace": namespace(number)}
            self._api.put("Pod", pod, uid=f"uid-{pod}", metadata=metadata, spec={"nodeName": node})
            command = command_now(pod, node=node, node_uid=f"uid-{node}", namespace=namespace(number))
            self.executor.put(QueuedEviction(command=command, reading=1, offset=number, queued_at=now, seen_at=now))

    def ended(self, count: int = PODS) -> list[str]:
        """Wait for so many answers; returns the pods in order, which all have gone."""
        found = [self.answers.get(timeout=PATIENCE_SECONDS) for _ in range(count)]
        assert {outcome for _, outcome in found} == {Outcome.SUCCEEDED}
        return [pod for pod, _ in found]

    def deletes(self) -> dict[str, list[float]]:
        """When each pod was asked to be deleted."""
        asked: dict[str, list[float]] = {}
        for write in list(self._api.writes):
            if write.what == "delete pods":
                asked.setdefault(write.name, []).append(write.at)
        return asked


@pytest.fixture
def storm(api: FakeApi, connection: Connection) -> Iterator[Storm]:
    found = Storm(api, connection)
    yield found
    found.executor.stop()
    found.executor.join(PATIENCE_SECONDS)


def test_half_of_a_storm_refused_comes_again_when_told(storm: Storm, api: FakeApi) -> None:
    for number in range(0, PODS, 2):
        api.trouble[f"delete pods p-{number}"] = [Fault(status=429, retry_after_seconds=1)]
    storm.begin()
    assert len(set(storm.ended())) == PODS
    for number in range(PODS):
        first, *again = storm.deletes()[f"p-{number}"]
        assert len(again) == (number % 2 == 0)
        assert all(at - first >= 0.99 for at in again)


def test_a_slow_namespace_keeps_no_other_from_its_end(storm: Storm, api: FakeApi) -> None:
    for number in range(0, PODS, SLOW_EVERY):
        api.trouble[f"patch pods/status p-{number}"] = [Fault(hold_seconds=SLOW_SECONDS)]
    storm.begin(lambda number: "slow" if number % SLOW_EVERY == 0 else "shop")
    quick = [f"p-{number}" for number in range(PODS) if number % SLOW_EVERY]
    assert sorted(storm.ended(len(quick))) == sorted(quick)
    storm.ended(PODS - len(quick))


def test_a_server_that_dies_gets_the_rest_once(storm: Storm, api: FakeApi) -> None:
    storm.begin()
    first = storm.ended(PODS // 4)
    api.is_down = True
    time.sleep(2)
    api.is_down = False
    assert len({*first, *storm.ended(PODS - len(first))}) == PODS
    assert {len(asked) for asked in storm.deletes().values()} == {1}
