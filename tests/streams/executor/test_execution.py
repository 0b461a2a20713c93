"""The whole executor between a real Kafka and a fake API server: each command answered, the right pods gone."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaTimeoutError

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.models.messages.vocabulary import Action
from evictstream.streams.broker.feed_states import FeedState
from evictstream.streams.broker.group_membership import finish_joining
from evictstream.streams.errors import ClusterNameTakenError, MissingRightsError
from evictstream.streams.executor import cluster_check, command_consumer, eviction
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from tests.harness.executing import EXECUTOR_THREAD, CommandWriter, RunningExecutor
from tests.harness.free_port import free_port, ready
from tests.harness.reading import TopicReader
from tests.models.execution import samples
from tests.streams.executor.conftest import TAINTED
from tests.streams.executor.serving import PATIENCE_SECONDS, command, run, said, wait_for, wait_for_results

pytestmark = pytest.mark.kafka

NEIGHBOUR = "c2"
"""Of two partitions it is in that of `c1`."""


def has(api: FakeApi, pod: str) -> bool:
    return ("Pod", pod) in api.objects


def test_each_evict_is_answered_and_nothing_else(
    declared: Settings, api: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    api.put("Node", "n-2", uid="uid-n-2", spec={})
    api.put("Pod", "there", uid="uid-there", spec={"nodeName": "n-2"})
    with run(declared, access):
        writer.write(command(pod="c"), is_aborted=True)
        writer.write_raw(b"no command")
        writer.write(command(Action.SCHEDULE, pod="b", attempt=0), command(pod="c", cluster=NEIGHBOUR))
        writer.write(command(pod="a"), command(pod="there", node="n-2", node_uid="uid-n-2"))
        found = wait_for_results(results, 2)

    assert found == [("a", 1, "Succeeded"), ("there", 1, "Obsolete")]
    assert not has(api, "a")
    assert has(api, "b")
    assert has(api, "c")
    assert has(api, "there")
    assert len(results.poll()) == 2


def test_a_cancel_that_was_there_before_the_start_comes_first(
    declared: Settings, api: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    """Many polls lie between the evictions and their cancels: whoever does not wait for those has begun long before."""
    for pod in "abc":
        writer.write(command(pod=pod))
    writer.write(*(command(Action.SCHEDULE, pod=f"other-{number}") for number in range(5_000)))
    writer.write(*(command(Action.CANCEL, pod=pod) for pod in "abc"))
    with run(declared, access):
        found = wait_for_results(results, 3)

    assert found == [(pod, 1, "Obsolete") for pod in "abc"]
    assert all(has(api, pod) for pod in "abc")


def test_a_restart_repeats_what_had_no_outcome_and_nothing_else(
    declared: Settings, api: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    api.trouble["create pods/eviction a"] = [Fault(status=429, cause="DisruptionBudget", retry_after_seconds=600)]
    with run(declared, access, ExecutorMode.EVICT):
        writer.write(command(pod="a"))
        writer.write(command(pod="b"), command(pod="c"))
        assert wait_for_results(results, 2) == [("b", 1, "Succeeded"), ("c", 1, "Succeeded")]
    for pod in "bc":  # if their commands were read again they would have another outcome
        api.put("Pod", pod, uid=f"uid-{pod}", spec={"nodeName": "n-1"})
    with run(declared, access, ExecutorMode.EVICT):
        found = wait_for_results(results, 3)
        time.sleep(1)

    assert found == [(pod, 1, "Succeeded") for pod in "abc"]
    assert len(results.poll()) == 3
    assert has(api, "b")


def test_what_is_put_off_at_a_stop_comes_again(
    declared: Settings, api: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    api.trouble["create pods/eviction a"] = [Fault(status=429, cause="DisruptionBudget", hold_seconds=1.5)]
    with run(declared, access, ExecutorMode.EVICT):
        writer.write(command(pod="a"))
        wait_for(lambda: "create pods/eviction" in api.requests)
    assert not results.quiet(0.5)
    with run(declared, access, ExecutorMode.EVICT):
        assert wait_for_results(results, 1) == [("a", 1, "Succeeded")]


def test_a_reader_that_stood_still_reads_anew_first(
    declared: Settings,
    api: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_consumer, "STALL_SECONDS", 1.0)
    monkeypatch.setattr(command_consumer, "_MOST_WAITING", 2)  # so that reading waits when it stands still
    monkeypatch.setattr(command_consumer, "RESUME_AT", 1)
    goes_on = threading.Event()
    goes_on.set()

    def stall(consumer: KafkaConsumer) -> None:
        assert threading.current_thread().name == EXECUTOR_THREAD
        goes_on.wait(PATIENCE_SECONDS)
        finish_joining(consumer)

    monkeypatch.setattr(command_consumer, "finish_joining", stall)
    with run(declared, access, rate=0.5, burst=1):
        writer.write(command(pod="a"), command(pod="b"), command(pod="c"))
        wait_for_results(results, 1)
        goes_on.clear()
        time.sleep(3)  # the fault itself: the rate allows the next one after 2 s
        assert has(api, "b")
        writer.write(command(Action.CANCEL, pod="b"))
        goes_on.set()
        seen = results.wait_for(lambda seen: len(set(said(seen))) == 3, "three results", PATIENCE_SECONDS)

    assert set(said(seen)) == {("a", 1, "Succeeded"), ("b", 1, "Obsolete"), ("c", 1, "Succeeded")}
    assert has(api, "b")


def test_of_two_executors_one_acts_and_the_other_takes_over(
    declared: Settings, api: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    """The second one does what the first has left, and nothing that it has done."""
    count = 60
    for number in range(count):
        api.put("Node", f"m-{number % 10}", uid=f"uid-m-{number % 10}", spec=TAINTED)
        api.put("Pod", f"p-{number}", uid=f"uid-p-{number}", spec={"nodeName": f"m-{number % 10}"})
    commands = [
        command(pod=f"p-{number}", node=f"m-{number % 10}", node_uid=f"uid-m-{number % 10}") for number in range(count)
    ]
    first_port, second_port = free_port(), free_port()
    with contextlib.ExitStack() as first:
        first.enter_context(run(declared.model_copy(update={"health_port": first_port}), access))
        wait_for(lambda: ready(first_port).get("role") == {"c1": "active"})
        with run(declared.model_copy(update={"health_port": second_port}), access):
            wait_for(lambda: ready(second_port).get("role") == {"c1": "standby"})
            writer.write(*commands[:20])
            wait_for_results(results, 20)
            assert ready(first_port)["role"] == {"c1": "active"}
            assert ready(second_port)["status"] == "ready"
            writer.write(*commands[20:40])
            first.close()
            writer.write(*commands[40:])
            found = wait_for_results(results, count)
            assert ready(second_port)["role"] == {"c1": "active"}

    assert [(pod, outcome) for pod, _, outcome in found if outcome != "Succeeded"] == []
    assert len([write for write in api.writes if write.what == "delete pods"]) == count


def test_an_api_server_that_comes_back_gets_what_waited(
    declared: Settings, api: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    with run(declared, access):
        writer.write(command(pod="a"))
        wait_for_results(results, 1)
        api.is_down = True
        writer.write(command(pod="b"), command(pod="c"))
        time.sleep(2)
        api.is_down = False
        found = wait_for_results(results, 3)

    assert found == [(pod, 1, "Succeeded") for pod in "abc"]


def test_a_storm_of_refusals_ends_with_each_pod_gone_once(
    declared: Settings,
    api: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(eviction, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(eviction, "_LONGEST_PAUSE_SECONDS", 0.05)
    storm: list[int | str | Fault] = [429, 500, 503] * 10
    reads, writes = ("get pods", "list pods", "get nodes"), ("patch pods/status", "delete pods")
    api.trouble = {what: storm.copy() for what in (*reads, *writes)}
    with run(declared, access):
        writer.write(*(command(pod=pod) for pod in "abc"))
        found = wait_for_results(results, 3)

    assert found == [(pod, 1, "Succeeded") for pod in "abc"]
    assert not any(api.trouble[what] for what in writes)


def test_a_kafka_that_fails_for_a_while_loses_nothing(
    declared: Settings,
    api: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing_first(monkeypatch, KafkaConsumer, "committed", 3)
    failing_first(monkeypatch, KafkaProducer, "send", 9)
    for pod in "abc":
        writer.write(command(pod=pod))
    with run(declared, access):
        found = wait_for_results(results, 3)

    assert found == [(pod, 1, "Succeeded") for pod in "abc"]


def failing_first(monkeypatch: pytest.MonkeyPatch, client: Any, method: str, times: int) -> None:
    """Let the first calls of a client's method time out, once an executor runs."""
    real, left = getattr(client, method), [times]

    def fail(self: Any, *arguments: Any, **named: Any) -> Any:
        if left[0] and threading.current_thread().name == EXECUTOR_THREAD:
            left[0] -= 1
            raise KafkaTimeoutError
        return real(self, *arguments, **named)

    monkeypatch.setattr(client, method, fail)


def test_reading_waits_while_the_queue_is_full(
    declared: Settings,
    api: FakeApi,
    access: ClusterAccess,
    writer: CommandWriter,
    results: TopicReader,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_consumer, "_MOST_WAITING", 4)
    monkeypatch.setattr(command_consumer, "RESUME_AT", 2)
    for number in range(40):
        api.put("Pod", f"p-{number}", uid=f"uid-p-{number}", spec={"nodeName": "n-1"})
    with run(declared, access, rate=100.0, burst=1):
        for number in range(40):
            writer.write(command(pod=f"p-{number}"))
        found = wait_for_results(results, 40)

    assert {outcome for _, _, outcome in found} == {"Succeeded"}


def test_an_old_command_is_obsolete_whatever_the_start(
    declared: Settings, api: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    writer.write(command(pod="a", issued_at=samples.command().issued_at))
    with run(declared, access, start_us=0):
        assert wait_for_results(results, 1) == [("a", 1, "Obsolete")]

    assert has(api, "a")


def test_missing_rights_are_named_at_the_start(
    declared: Settings, api: FakeApi, access: ClusterAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_check, "RIGHTS_SECONDS", 0.0)
    api.forbidden = {"delete pods", "create events"}
    with pytest.raises(MissingRightsError) as raised, run(declared, access) as running:
        wait_for(lambda: running.failure is not None)

    assert raised.value.missing == ("delete pods", "create events")


def test_rights_that_come_late_are_waited_for(
    declared: Settings, api: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    api.trouble["create selfsubjectaccessreviews"] = [403]
    with run(declared, access):
        writer.write(command())
        assert wait_for_results(results, 1) == [("a", 1, "Succeeded")]


def test_a_name_of_another_cluster_is_refused(declared: Settings, api: FakeApi, access: ClusterAccess) -> None:
    from evictstream.streams.feed.publisher import open_publisher  # noqa: PLC0415 - only here

    state = FeedState(cluster_uid="another", epoch=0, resource_version=1)
    with open_publisher(declared, also=[declared.feeds_topic]) as publisher:
        value = json.dumps({"clusterUid": state.cluster_uid, "epoch": 0, "resourceVersion": 1}).encode()
        publisher.send(declared.feeds_topic, b"c1", value)
        publisher.flush()
    running: RunningExecutor
    with pytest.raises(ClusterNameTakenError), run(declared, access) as running:
        wait_for(lambda: running.failure is not None)

    assert len(api.objects) == 4


def test_events_tell_of_evictions_and_what_is_ahead(
    declared: Settings, api: FakeApi, access: ClusterAccess, writer: CommandWriter, results: TopicReader
) -> None:
    with run(declared, access, events="all"):
        writer.write(command(Action.SCHEDULE, pod="b", attempt=0), command(pod="a"))
        writer.write(command(Action.CANCEL, pod="b", attempt=0))
        wait_for_results(results, 1)
        wait_for(lambda: len(api.events) == 3)

    found = {(one["involvedObject"]["name"], one["reason"]) for one in api.events.values()}
    assert found == {
        ("a", "TaintManagerEviction"),
        ("b", "TaintEvictionScheduled"),
        ("b", "TaintEvictionCancelled"),
    }
