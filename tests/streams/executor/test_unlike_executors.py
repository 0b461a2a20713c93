"""Executors that differ, on a real Kafka: none takes a command away from another one, or holds it up."""

from __future__ import annotations

import contextlib
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from prometheus_client.parser import text_string_to_metric_families

from evictstream.kit.conformance.fake_faults import Fault
from evictstream.streams.broker.consumers import open_as
from evictstream.streams.broker.group_membership import GroupConsumer, subscribe
from evictstream.streams.errors import BrokerRefusedError, InstanceReplacedError
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.harness.executing import CommandWriter, RunningExecutor, executing
from tests.harness.free_port import free_port, ready
from tests.harness.reading import Seen, TopicReader
from tests.streams.executor.conftest import PODS, cluster, command_now
from tests.streams.executor.pod_stream import PodStream
from tests.streams.executor.serving import results_in

pytestmark = pytest.mark.kafka

LONGEST_WAIT_SECONDS = 2.0
"""A second, and another one for a machine with other tests; what it holds off took 13 s."""

JOINED_SECONDS = 4.0
REPLACED_SECONDS = 30.0


def order(name: str, access: ClusterAccess, mode: ExecutorMode = ExecutorMode.DELETE) -> ClusterOrder:
    return ClusterOrder(name=name, access=access, mode=mode)


def run(settings: Settings, *orders: ClusterOrder) -> contextlib.AbstractContextManager[RunningExecutor]:
    return executing(settings, orders, ExecutionOptions(group=f"{settings.application_id}-executor"))


def commands(name: str) -> list[Any]:
    return [
        command_now(f"p-{number}", cluster=name, node=f"m-{number}", node_uid=f"uid-m-{number}")
        for number in range(PODS)
    ]


def outcomes(seen: list[Seen], name: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in results_in(seen):
        if one.value["cluster"] == name:
            found.setdefault(one.value["pod"], set()).add(one.value["outcome"])
    return found


def has_all(seen: list[Seen], name: str, outcome: str) -> bool:
    found = outcomes(seen, name)
    return len(found) == PODS and all(outcome in each for each in found.values())


def active(port: int) -> list[tuple[dict[str, str], float]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    (found,) = [one.samples for one in families if one.name == "evictstream_executor_active"]
    return [(sample.labels, sample.value) for sample in found]


def test_executors_of_other_clusters_take_nothing_away(
    declared: Settings, writer: CommandWriter, results: TopicReader, tmp_path: Path
) -> None:
    with (
        cluster("c1", tmp_path) as (_, c1),
        cluster("us", tmp_path) as (_, us),
        run(declared, order("c1", c1)),
        run(declared, order("us", us)),
    ):
        assert len({partition_of(name.encode(), declared.partitions) for name in ("c1", "us")}) == 1
        writer.write(*commands("c1"), *commands("us"))
        for name in ("c1", "us"):
            results.wait_for(lambda seen, name=name: has_all(seen, name, "Succeeded"), f"each pod of {name}")  # type: ignore[misc]


def test_an_observer_takes_nothing_from_one_that_acts(
    declared: Settings, writer: CommandWriter, results: TopicReader, tmp_path: Path
) -> None:
    ports = {mode: free_port() for mode in (ExecutorMode.OBSERVE, ExecutorMode.DELETE)}
    with cluster("c1", tmp_path) as (api, access), contextlib.ExitStack() as both:
        for mode, port in ports.items():
            settings = declared.model_copy(update={"health_port": port})
            both.enter_context(run(settings, order("c1", access, mode)))
        writer.write(*commands("c1"))
        results.wait_for(lambda seen: has_all(seen, "c1", "Succeeded"), "each pod gone")
        results.wait_for(lambda seen: has_all(seen, "c1", "Observed"), "each command observed")
        for mode, port in ports.items():
            assert active(port) == [({"cluster": "c1", "mode": str(mode)}, 1.0)]
    assert not any(kind == "Pod" for kind, _ in api.objects)


def test_nothing_waits_for_a_member_that_joins_or_leaves(
    declared: Settings, writer: CommandWriter, results: TopicReader, tmp_path: Path
) -> None:
    with cluster("c1", tmp_path) as (api, access), contextlib.ExitStack() as first:
        first.enter_context(run(declared, order("c1", access)))
        with PodStream(api, writer, PODS) as stream:
            results.wait_for(bool, "the first result")
            begun = len(stream.written)
            with run(declared, order("c1", access)):
                time.sleep(JOINED_SECONDS)  # in which it joins
                first.close()
                time.sleep(JOINED_SECONDS)
                stream.stop()
                results.wait_for(lambda seen: len(seen) >= len(stream.written), "each result")
    done = stream.deletes()
    waits = {name: at - stream.written[name] for name, at in done if name in list(stream.written)[begun:]}
    assert len(done) == len(stream.written)
    assert max(waits.values()) < LONGEST_WAIT_SECONDS, sorted(waits.items(), key=lambda each: -each[1])[:5]


def test_a_member_that_joins_takes_nothing_from_the_active_one(
    declared: Settings, writer: CommandWriter, results: TopicReader, tmp_path: Path
) -> None:
    port = free_port()
    with cluster("c1", tmp_path) as (api, access), run(declared, order("c1", access)):
        api.trouble["delete pods"] = [Fault(delay_seconds=0.3)] * 1_000
        with PodStream(api, writer, PODS) as stream:
            results.wait_for(bool, "the first result")
            with run(declared.model_copy(update={"health_port": port}), order("c1", access)):
                time.sleep(JOINED_SECONDS)  # in which it joins
                assert ready(port)["role"] == {"c1": "standby"}
                stream.stop()
                seen = results.wait_for(lambda seen: len(seen) >= len(stream.written), "each result")
    assert {outcome for each in outcomes(seen, "c1").values() for outcome in each} == {"Succeeded"}
    assert sorted(name for name, _ in stream.deletes()) == sorted(stream.written)


def test_of_two_executors_with_one_instance_the_first_ends(
    declared: Settings, writer: CommandWriter, results: TopicReader, tmp_path: Path
) -> None:
    with cluster("c1", tmp_path) as (_, access), contextlib.ExitStack() as stack:
        options = ExecutionOptions(group=f"{declared.application_id}-executor", instance="same")
        first, second = (executing(declared, [order("c1", access)], options) for _ in range(2))
        with contextlib.suppress(InstanceReplacedError), first as running:
            time.sleep(JOINED_SECONDS)  # in which it joins; without commands nothing is committed, which would show it
            stack.enter_context(second)
            wait_until(lambda: running.failure is not None)
        assert isinstance(running.failure, InstanceReplacedError)
        assert "--instance same" in str(running.failure)
        writer.write(*commands("c1"))
        results.wait_for(lambda seen: has_all(seen, "c1", "Succeeded"), "each pod gone")


def test_a_member_with_another_assignor_is_named(declared: Settings, tmp_path: Path) -> None:
    other = open_as(
        GroupConsumer,
        declared,
        group_id=f"{declared.application_id}-executor-c1",
        partition_assignment_strategy=[CooperativeStickyAssignor],
    )
    with cluster("c1", tmp_path) as (_, access), contextlib.closing(other):
        subscribe(other, declared.commands_topic)
        wait_until(lambda: bool(other.poll(timeout_ms=50) or other.assignment()))
        with contextlib.suppress(BrokerRefusedError), run(declared, order("c1", access)) as running:
            wait_until(lambda: running.failure is not None)
    assert isinstance(running.failure, BrokerRefusedError)
    assert "members of its group" in running.failure.next_step


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + REPLACED_SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)
