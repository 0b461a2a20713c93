"""Processor time that each eviction costs feed, worker, executor and Kafka, while an API server sets the pace.

A real API server deletes a few dozen pods a second, and the service waits for it. So a fake one here deletes at such a
pace, over TLS, with whole pods, and tells three changes of each: marked, terminating, gone. What the processes use
without any eviction is measured before. It is told apart, because at another pace it is another part of the whole.
"""

from __future__ import annotations

import asyncio
import functools
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import FakeRequest, Fault
from tests.bench.figures import Bound, Figure, Goal, require
from tests.bench.fleet import NAMESPACE, Fleet
from tests.bench.lab import Lab, say
from tests.bench.scale.processes import MeasuredProcess, compiler_seconds, cpu_seconds, running, until
from tests.bench.whole_objects import WHOLE
from tests.harness.certificates import certificate, server_context

NODES: Final = 200
PODS_PER_NODE: Final = 30
TAINTED_NODES: Final = 60
WARMING_NODES: Final = 20  # before anything is measured: Java compiles what it runs often
QUICK_SHARE: Final = 3
DELETES_A_SECOND: Final = 31.0
"""As a real control plane that shares two cores with the service."""

TERMINATION_SECONDS: Final = 2.0
IDLE_SECONDS: Final = 30.0
SETTLING_SECONDS: Final = 15.0  # in which the worker reads what was listed
AFTER_SECONDS: Final = 5.0  # for what the last pods still cause
STARTING_SECONDS: Final = 120.0
EVICTING_SECONDS: Final = 300.0
MOST_MS: Final = 8.0
COMPILER: Final = "compiler"
TAINT: Final = {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}


class _PacedApi(FakeApi):
    """Deletes one pod after the other, `DELETES_A_SECOND`."""

    def __init__(self) -> None:
        super().__init__()
        self._next_at = 0.0
        self._pace_lock = threading.Lock()

    def take_fault(self, request: FakeRequest) -> Fault:
        if request.what != "delete pods":
            return super().take_fault(request)
        with self._pace_lock:
            now = time.monotonic()
            self._next_at = max(self._next_at, now) + 1 / DELETES_A_SECOND
            return Fault(hold_seconds=self._next_at - now)

    def deleted(self) -> int:
        return sum(write.what == "delete pods" and write.done_to is not None for write in tuple(self.writes))


async def measure(lab: Lab) -> list[Figure]:
    """Measure once."""
    tainted = TAINTED_NODES // (QUICK_SHARE if lab.is_quick else 1)
    settings = lab.settings("cost", result_silence_seconds=30.0)
    with _PacedApi() as api:
        api.termination_seconds = TERMINATION_SECONDS
        own = certificate(lab.folder, "api")
        api.tls = server_context(own)
        config = json.loads(api.kubeconfig())
        config["clusters"][0]["cluster"]["certificate-authority"] = str(own.certificate)
        file = lab.folder / "kubeconfig"
        file.write_text(json.dumps(config))
        _fill(api)
        where = ("--cluster", "lab", "--kubeconfig", str(file))
        async with (
            running(MeasuredProcess(settings, "feed", *where)) as feed,
            running(MeasuredProcess(settings, "worker")) as worker,
            running(MeasuredProcess(settings, "execute", *where, "--mode", "delete")) as executor,
        ):
            processes = {"feed": feed, "worker": worker, "executor": executor}
            for name, process in processes.items():
                await until(process.is_ready, STARTING_SECONDS, name)
            await asyncio.sleep(SETTLING_SECONDS)
            meters: dict[str, Callable[[], float]] = {
                name: functools.partial(cpu_seconds, process.pid) for name, process in processes.items()
            }
            broker = lab.broker_pid
            meters["Kafka"] = lambda: cpu_seconds(broker) - compiler_seconds(broker)
            meters[COMPILER] = lambda: compiler_seconds(broker)
            await _evict(api, range(NODES - WARMING_NODES, NODES))
            return await _compare(api, meters, tainted)


def _fill(api: FakeApi) -> None:
    """Put nodes and whole pods, as large as a small Deployment's."""
    fleet = Fleet(nodes=NODES, pods_per_node=PODS_PER_NODE, partitions=1, clusters=["lab"])
    for node in fleet.nodes:
        api.put("Node", node.name.decode(), spec={})
    for pod in fleet.pods:
        text = fleet.pod_event(pod, b"ADDED", seconds=300, at_us=0, whole=WHOLE).value
        whole: dict[str, Any] = json.loads(text)["object"]
        api.put(
            "Pod",
            pod.name,
            metadata={**whole["metadata"], "namespace": NAMESPACE},
            spec=whole["spec"],
            status=whole["status"],
        )
    api.forget_history()
    say(f"{NODES:,} nodes and {len(fleet.pods):,} pods are there")


async def _compare(api: _PacedApi, meters: Mapping[str, Callable[[], float]], tainted: int) -> list[Figure]:
    """Let the processes rest, then evict; give what each eviction costs."""
    usage = _Usage(meters)
    await asyncio.sleep(IDLE_SECONDS)
    idle = usage.shares()
    usage = _Usage(meters)
    await _evict(api, range(tainted))
    busy, seconds, expected = usage.shares(), usage.seconds, tainted * PODS_PER_NODE
    beyond = {name: (busy[name] - idle[name]) * seconds / expected * 1_000 for name in meters}
    whole = {name: ms + idle[name] / DELETES_A_SECOND * 1_000 for name, ms in beyond.items()}
    say(", ".join(f"{name} {ms:.2f} ms, {beyond[name]:.2f} beyond idle" for name, ms in whole.items()))
    return [
        Figure(
            "eviction-cost",
            f"processor time for each eviction at {DELETES_A_SECOND:g} deletes a second, Java's compiler aside",
            "ms",
            (sum(ms for name, ms in whole.items() if name != COMPILER),),
            Goal(Bound.AT_MOST, MOST_MS),
            {f"{name}_ms": ms for name, ms in whole.items()}
            | {f"{name}_beyond_idle_ms": ms for name, ms in beyond.items()},
        )
    ]


async def _evict(api: _PacedApi, nodes: range) -> None:
    """Taint nodes, and wait until their pods are gone and what they cause is over."""
    expected = api.deleted() + len(nodes) * PODS_PER_NODE
    for number in nodes:
        api.put("Node", f"node-{number:05d}", spec=TAINT)
    await until(lambda: api.deleted() >= expected, EVICTING_SECONDS, "the deletes")
    await asyncio.sleep(TERMINATION_SECONDS + AFTER_SECONDS)
    require(api.deleted() == expected, f"{api.deleted()} deletes of {expected} pods")


class _Usage:
    """What is used from now on."""

    def __init__(self, meters: Mapping[str, Callable[[], float]]) -> None:
        self._began_at = time.monotonic()
        self._meters = meters
        self._before = {name: meter() for name, meter in meters.items()}

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began_at

    def shares(self) -> dict[str, float]:
        """Give the processor time of each, as a share of a core."""
        seconds = self.seconds
        return {name: (meter() - self._before[name]) / seconds for name, meter in self._meters.items()}
