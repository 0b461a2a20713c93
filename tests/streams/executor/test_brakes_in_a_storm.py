"""Brakes while hundreds of pods leave: each stops its cluster within a second, and no other one.

No worker runs: the test writes commands, and the next attempts after a release. `python -m tests.faults.brakes` has the
whole service, 9,000 pods and 200 brakes.
"""

from __future__ import annotations

import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.conformance.brake_rules import write_brake
from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions
from evictstream.streams.settings import Settings
from tests.harness.executing import CommandWriter, executing
from tests.harness.reading import TopicReader
from tests.streams.executor.conftest import TAINTED, cluster, command_now
from tests.streams.executor.serving import results_in, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.alone]

BRAKES = 5
PODS = 250
NODES = 20
STOP_SECONDS = 1.0


class Storm:
    """All pods of `c1` have to leave, and somebody sends the next attempts of those that were held."""

    def __init__(self, api: FakeApi, writer: CommandWriter, results: TopicReader) -> None:
        self._api = api
        self._writer = writer
        self._results = results
        self._attempts = dict.fromkeys((f"p-{number}" for number in range(PODS)), 0)
        for number in range(NODES):
            api.put("Node", f"n-{number}", uid=f"uid-n-{number}", spec=TAINTED)
        for number, pod in enumerate(self._attempts):
            api.put("Pod", pod, uid=f"uid-{pod}", spec={"nodeName": f"n-{number % NODES}"})

    def issue(self, pods: list[str]) -> None:
        for pod in pods:
            self._attempts[pod] += 1
        if pods:
            self._writer.write(*(self._command(pod) for pod in pods))

    def has_deletes(self, count: int) -> bool:
        """Whether so many were done; the next attempt of each that was answered `Held` is sent."""
        held = {(one.value["pod"], one.value["attempt"]) for one in results_in(self._results.poll()) if _is_held(one)}
        self.issue([pod for pod, attempt in self._attempts.items() if (pod, attempt) in held])
        return len(self.deletes()) >= count

    def _command(self, pod: str) -> Any:
        node = f"n-{int(pod.removeprefix('p-')) % NODES}"
        return command_now(pod, node=node, node_uid=f"uid-{node}", attempt=self._attempts[pod])

    def deletes(self) -> list[tuple[str, float]]:
        return [(one.name, one.at) for one in list(self._api.writes) if one.what == "delete pods" and one.done_to]


def _is_held(one: Any) -> bool:
    return one.value["cluster"] == "c1" and bool(one.value.get("heldBy"))


def test_each_brake_stops_its_cluster_within_a_second(
    declared: Settings, tmp_path: Path, writer: CommandWriter, results: TopicReader
) -> None:
    with cluster("c1", tmp_path) as (api, access), cluster("c2", tmp_path) as (calm, calm_access):
        storm = Storm(api, writer, results)
        orders = [
            ClusterOrder(name=name, access=way, mode=ExecutorMode.DELETE)
            for name, way in (("c1", access), ("c2", calm_access))
        ]
        with executing(
            declared, orders, ExecutionOptions(group=f"{declared.application_id}-executor", rate=60.0, burst=1)
        ):
            storm.issue([f"p-{number}" for number in range(PODS)])
            last = []
            for number in range(BRAKES):
                count = len(storm.deletes())
                wait_for(partial(storm.has_deletes, count + 10))
                appended_at = write_brake(declared, "b1", "c1")
                node = f"m-{number}"
                writer.write(command_now(f"p-{number}", cluster="c2", node=node, node_uid=f"uid-{node}"))
                time.sleep(STOP_SECONDS * 1.2)
                last.append(max((at - appended_at for _, at in storm.deletes()), default=0.0))
                wait_for(lambda: ("Pod", f"p-{number}") not in calm.objects)  # noqa: B023
                write_brake(declared, "b1", "c1", releasedBy="anna")
            wait_for(partial(storm.has_deletes, PODS))
    assert max(last) <= STOP_SECONDS
    assert set(Counter(name for name, _ in storm.deletes()).values()) == {1}
