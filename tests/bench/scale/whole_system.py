"""A cluster of 5,000 nodes and 150,000 pods through feed, worker and executor: listed, in steady state, 9,000 at once.

The API server is a fake one in this process, which answers some 700 requests a second and takes one of two cores for
it; feed, worker and executor are processes as operators run them. In steady state 3,000 pods change each second, and
each second the pods of one node have to leave; then 300 nodes with 30 pods each are tainted in one go. The time of each
pod runs from its node's taint to its accepted delete.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping
from typing import Final

from kafka import KafkaConsumer, TopicPartition

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.models.messages.command import decode_command
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.broker.clients import client_arguments
from evictstream.streams.settings import Settings
from tests.bench.figures import Bound, Figure, Goal, require
from tests.bench.lab import Lab, say
from tests.bench.scale.processes import MeasuredProcess, running, until

NODES: Final = 5_000
PODS_PER_NODE: Final = 30
TAINTED_NODES: Final = 300
QUICK_SHARE: Final = 10
LISTING_SECONDS: Final = 300.0
EVICTING_SECONDS: Final = 300.0
QUIET_SECONDS: Final = 40.0  # after the last delete: longer than the service waits for an answer
SETTLING_SECONDS: Final = 15.0  # in which the worker reads what was listed
STEADY_SECONDS: Final = 30
STEADY_EVENTS: Final = 3_000  # each second
SLICE_EVENTS: Final = 30  # written between two looks at the clock
TAINT: Final = {"taints": [{"key": "maintenance", "effect": "NoExecute"}]}


async def measure(lab: Lab) -> list[Figure]:
    """Measure once; there is one round, since it takes minutes."""
    share = QUICK_SHARE if lab.is_quick else 1
    nodes, tainted = NODES // share, TAINTED_NODES // share
    settings = lab.settings("whole", result_silence_seconds=30.0)
    with FakeApi() as api:
        file = lab.folder / "kubeconfig"
        file.write_text(api.kubeconfig())
        for number in range(nodes):
            name = f"n-{number:04}"
            api.put("Node", name, spec={})
            for pod in range(PODS_PER_NODE):
                api.put("Pod", f"{name}-{pod}", spec={"nodeName": name}, status={"phase": "Running"})
        api.forget_history()
        say(f"{nodes:,} nodes and {nodes * PODS_PER_NODE:,} pods are there")
        where = ("--cluster", "lab", "--kubeconfig", str(file))
        began_at = time.monotonic()
        async with running(MeasuredProcess(settings, "feed", *where)) as feed:
            await until(feed.is_ready, LISTING_SECONDS, "the first listing")
            listed_seconds = time.monotonic() - began_at
            listed = {"processor_s": feed.cpu_seconds, "resident_mb": feed.megabytes}
            say(f"listed after {listed_seconds:.1f} s")
            async with (
                running(MeasuredProcess(settings, "worker")) as worker,
                running(MeasuredProcess(settings, "execute", *where, "--mode", "delete", "--rate", "1000")) as executor,
            ):
                await until(worker.is_ready, LISTING_SECONDS, "the worker")
                await until(executor.is_ready, LISTING_SECONDS, "the executor")
                await asyncio.sleep(SETTLING_SECONDS)
                return [
                    Figure(
                        "listing",
                        f"from the start of a feed until {nodes * PODS_PER_NODE:,} pods are listed into Kafka",
                        "s",
                        (listed_seconds,),
                        None,
                        listed,
                    ),
                    await _steady(api, {"feed": feed, "worker": worker, "executor": executor}, nodes),
                    *await _evict(settings, api, executor, tainted),
                ]


async def _steady(api: FakeApi, processes: Mapping[str, MeasuredProcess], nodes: int) -> Figure:
    """Change pods at a steady rate; the pods of the last nodes have to leave meanwhile, those of one each second."""
    leaving = [f"n-{number:04}" for number in range(nodes - STEADY_SECONDS, nodes)]
    used_before = {name: process.cpu_seconds for name, process in processes.items()}
    names = itertools.cycle(
        f"n-{node:04}-{pod}" for pod in range(PODS_PER_NODE) for node in range(nodes - STEADY_SECONDS)
    )

    def change() -> dict[str, float]:
        tainted_at, began_at, count = dict[str, float](), time.monotonic(), 0
        while count < STEADY_SECONDS * STEADY_EVENTS:
            if count % STEADY_EVENTS == 0:
                name = leaving[count // STEADY_EVENTS]
                tainted_at[name] = time.time()
                api.put("Node", name, spec=TAINT)
            for name in itertools.islice(names, SLICE_EVENTS):
                api.put("Pod", name, status={"phase": "Running", "message": str(count)})
            count += SLICE_EVENTS
            time.sleep(max(0.0, began_at + count / STEADY_EVENTS - time.monotonic()))
        require(time.monotonic() - began_at < STEADY_SECONDS * 1.05, "this process cannot change as many pods a second")
        return tainted_at

    tainted_at = await asyncio.to_thread(change)
    used = {name: process.cpu_seconds - used_before[name] for name, process in processes.items()}
    await until(lambda: len(_deletes(api)) >= len(leaving) * PODS_PER_NODE, EVICTING_SECONDS, "the deletes")
    took = sorted(at - tainted_at[name.rsplit("-", 1)[0]] for name, at in _deletes(api))
    say(f"{STEADY_EVENTS:,} changes a second for {STEADY_SECONDS} s: {used}")
    return Figure(
        "steady",
        f"from a taint to the deletes of its node's {PODS_PER_NODE} pods, p99, at {STEADY_EVENTS:,} changes a second",
        "s",
        (took[len(took) * 99 // 100],),
        None,
        {"p50_s": took[len(took) // 2], "max_s": took[-1]}
        | {f"{name}_core_share": seconds / STEADY_SECONDS for name, seconds in used.items()},
    )


def _deletes(api: FakeApi) -> list[tuple[str, float]]:
    """List names and times of pods that were deleted."""
    found = [write for write in tuple(api.writes) if write.what == "delete pods"]
    return [(write.name, write.at) for write in found if write.done_to is not None]


async def _evict(settings: Settings, api: FakeApi, executor: MeasuredProcess, tainted: int) -> list[Figure]:
    expected = tainted * PODS_PER_NODE
    used_before, earlier = executor.cpu_seconds, len(_deletes(api))
    tainted_at = {}
    for number in range(tainted):
        name = f"n-{number:04}"
        tainted_at[name] = time.time()
        api.put("Node", name, spec=TAINT)

    await until(lambda: len(_deletes(api)) - earlier >= expected, EVICTING_SECONDS, "all deletes")
    used = executor.cpu_seconds - used_before
    await asyncio.sleep(QUIET_SECONDS)
    done = _deletes(api)[earlier:]
    require(len({name for name, _ in done}) == len(done) == expected, f"{len(done)} deletes of {expected} pods")
    took = sorted(at - tainted_at[name.rsplit("-", 1)[0]] for name, at in done)
    seconds = max(at for _, at in done) - min(at for _, at in done)
    repeats = await asyncio.to_thread(_evicts, settings) - expected - earlier
    beside = {
        "executor_processor_ms_each": used / expected * 1_000,
        "executor_resident_mb": executor.megabytes,
        "repeats": float(repeats),
        "taint_to_delete_p50_s": took[len(took) // 2],
        "taint_to_delete_p99_s": took[len(took) * 99 // 100],
        "taint_to_first_delete_s": took[0],
    }
    say(f"{expected:,} deleted in {seconds:.1f} s, {repeats} repeats")
    return [
        Figure(
            "deletes",
            f"deletes a second by one executor, {expected:,} pods due at once",
            "1/s",
            (expected / seconds,),
            Goal(Bound.AT_LEAST, 200.0),
            beside,
        ),
        Figure("repeats", f"further `Evict` for {expected:,} pods due at once", "", (repeats,), Goal(Bound.BELOW, 1.0)),
    ]


def _evicts(settings: Settings) -> int:
    consumer = KafkaConsumer(**client_arguments(settings), isolation_level="read_committed", enable_auto_commit=False)
    try:
        partitions = [TopicPartition(settings.commands_topic, number) for number in range(settings.partitions)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        count = 0
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for records in consumer.poll(timeout_ms=200).values():
                count += sum(decode_command(record.value).action is Action.EVICT for record in records)
        return count
    finally:
        consumer.close()
