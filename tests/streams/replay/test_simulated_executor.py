from __future__ import annotations

import json

import msgspec
import pytest

from evictstream.models.messages.result import decode_result
from evictstream.models.messages.watch_event import decode_watch_event
from evictstream.streams.replay.simulated_executor import DELETION_US, FAILS_ONE_IN, SimulatedExecutor
from tests.streams.demo.samples import Event, command, node, pod, tolerates, us

encode = msgspec.json.encode


@pytest.fixture
def executor() -> SimulatedExecutor:
    found = SimulatedExecutor(fails_one_in=0)
    assert found.admit(encode(node(0, version=7000)))
    assert found.admit(encode(pod(1, tolerates(seconds=3), version=6000)))
    return found


def evict(**more: object) -> Event:
    return command("Evict", 4, **more)


def version(event: Event) -> int:
    return int(event["object"]["metadata"]["resourceVersion"])


def test_evicted_pod_is_seen_terminating_and_then_gone(executor: SimulatedExecutor) -> None:
    answer = executor.evict(evict(), us(4))
    assert answer.result["outcome"] == "Succeeded"
    (terminating,) = answer.events
    assert terminating["type"] == "MODIFIED"
    assert terminating["object"]["metadata"]["deletionTimestamp"]
    assert terminating["object"]["spec"]["tolerations"] == [tolerates(seconds=3)]
    assert executor.busy
    assert executor.gone(us(4) + DELETION_US - 1) == []
    (gone,) = executor.gone(us(4) + DELETION_US)
    assert gone["type"] == "DELETED"
    assert 7000 < version(terminating) < version(gone)
    assert not executor.busy


def test_what_it_writes_keeps_the_contracts(executor: SimulatedExecutor) -> None:
    answer = executor.evict(evict(), us(4))
    for event in (*answer.events, *executor.gone(us(9))):
        decode_watch_event(_json(event))
    result = decode_result(_json(answer.result))
    assert (result.eviction_id, result.attempt, result.pod_uid, result.node) == ("e1", 1, "pod-1", "n-1")


def test_later_events_of_a_deleted_pod_did_not_happen(executor: SimulatedExecutor) -> None:
    executor.evict(evict(), us(4))
    assert not executor.admit(encode(pod(5, version=8000)))
    executor.gone(us(6))
    assert not executor.admit(encode(pod(7, kind="DELETED", version=9000)))
    assert executor.admit(encode(pod(8, uid="pod-2", version=9001)))
    assert executor.admit(encode(node(8, version=9002)))


def test_recorded_version_is_never_passed_by_what_comes_after(executor: SimulatedExecutor) -> None:
    executor.admit(encode(node(5, version=12_000)))
    (terminating,) = executor.evict(evict(), us(6)).events
    assert version(terminating) == 12_001


def test_uid_is_the_precondition(executor: SimulatedExecutor) -> None:
    answer = executor.evict(evict(podUid="an earlier pod of that name"), us(4))
    assert (answer.result["outcome"], answer.events) == ("Gone", ())


def test_pod_deleted_by_somebody_else_is_gone(executor: SimulatedExecutor) -> None:
    assert executor.admit(encode(pod(3, kind="DELETED")))
    assert executor.evict(evict(), us(4)).result["outcome"] == "Gone"


def test_second_delete_of_a_terminating_pod_changes_nothing(executor: SimulatedExecutor) -> None:
    executor.evict(evict(), us(4))
    answer = executor.evict(evict(evictionId="e2"), us(4.5))
    assert (answer.result["outcome"], answer.events) == ("Succeeded", ())
    assert len(executor.gone(us(9))) == 1


def test_some_pods_fail_once_always_the_same_ones() -> None:
    executor = SimulatedExecutor(fails_one_in=FAILS_ONE_IN)
    uids = [f"pod-{number}" for number in range(500)]
    for uid in uids:
        executor.admit(encode(pod(0, uid=uid, name=uid)))
    failing = [uid for uid in uids if _outcome(executor, uid, 1) == "Failed"]
    assert 10 <= len(failing) <= 30
    assert len(executor.failed) == len(failing)
    # The next attempt works, also if it is the first of another eviction.
    assert {_outcome(executor, uid, 2) for uid in failing[:3]} == {"Succeeded"}
    assert {_outcome(executor, uid, 1) for uid in failing[3:]} == {"Succeeded"}
    other = SimulatedExecutor(fails_one_in=FAILS_ONE_IN)
    for uid in uids:
        other.admit(encode(pod(0, uid=uid, name=uid)))
    assert [uid for uid in uids if _outcome(other, uid, 1) == "Failed"] == failing


def _outcome(executor: SimulatedExecutor, uid: str, attempt: int) -> object:
    return executor.evict(evict(podUid=uid, evictionId=f"e-{uid}", attempt=attempt), us(4)).result["outcome"]


def _json(value: object) -> str:
    return json.dumps(value)
