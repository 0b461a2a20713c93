from __future__ import annotations

import json

import msgspec
import pytest

from evictstream.kit.replay.simulated_executor import DELETION_US, FAILS_ONE_IN, SimulatedExecutor
from evictstream.models.messages.result import decode_result
from evictstream.models.messages.watch_event import decode_watch_event
from tests.kit.demo.samples import Event, at, command, node, pod, tolerates, us

encode = msgspec.json.encode


@pytest.fixture
def executor() -> SimulatedExecutor:
    found = SimulatedExecutor(fails_one_in=0)
    assert found.admit(encode(node(0, version=7000)), us(0)) == []
    assert found.admit(encode(pod(1, tolerates(seconds=3), version=6000)), us(1)) == []
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
    assert (version(terminating), version(gone)) == (6001, 6001)
    assert not executor.busy


def test_what_it_writes_keeps_the_contracts(executor: SimulatedExecutor) -> None:
    answer = executor.evict(evict(), us(4))
    for event in (*answer.events, *executor.gone(us(9))):
        decode_watch_event(_json(event))
    result = decode_result(_json(answer.result))
    assert (result.eviction_id, result.attempt, result.pod_uid, result.node) == ("e1", 1, "pod-1", "n-1")


def test_later_events_of_a_deleted_pod_did_not_happen(executor: SimulatedExecutor) -> None:
    executor.evict(evict(), us(4))
    assert executor.admit(encode(pod(5, version=8000)), us(5)) is None
    executor.gone(us(6))
    assert executor.admit(encode(pod(7, kind="DELETED", version=9000)), us(7)) is None
    assert executor.admit(encode(pod(8, uid="pod-2", version=9001)), us(8)) == []
    assert executor.admit(encode(node(8, version=9002)), us(8)) == []


@pytest.mark.parametrize("newest", [6001, 6002, 12_000])
def test_a_pod_ends_once_another_has_its_name(executor: SimulatedExecutor, newest: int) -> None:
    """Whatever its version: that of what is played is no higher than any that follows."""
    executor.evict(evict(), us(4))
    (gone,) = executor.admit(encode(pod(4.5, uid="pod-2", version=newest)), us(4.5)) or []
    assert (gone["type"], gone["object"]["metadata"]["uid"], gone["observedAt"]) == ("DELETED", "pod-1", at(4.5))
    assert executor.gone(us(9)) == []
    assert not executor.busy


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod(4.5, uid="pod-0", version=5000), id="an earlier pod of its name"),
        pytest.param(pod(4.5, uid="pod-2", name="p-2", version=9000), id="a pod of another name"),
        pytest.param(pod(4.5, uid="pod-2", version=9000) | {"cluster": "other"}, id="a pod of another cluster"),
        pytest.param(pod(4.5, uid="pod-2", version=9000, kind="DELETED"), id="the end of a pod"),
    ],
)
def test_nothing_else_ends_a_terminating_pod(executor: SimulatedExecutor, other: Event) -> None:
    executor.evict(evict(), us(4))
    assert executor.admit(encode(other), us(4.5)) == []
    assert len(executor.gone(us(9))) == 1


def test_two_pods_of_a_name_may_end_at_once(executor: SimulatedExecutor) -> None:
    """An earlier pod was heard of late, on another node."""
    executor.evict(evict(), us(4))
    assert executor.admit(encode(pod(4.2, uid="pod-0", version=5000, node_name="n-2")), us(4.2)) == []
    executor.evict(evict(podUid="pod-0", node="n-2"), us(4.5))
    assert [one["object"]["metadata"]["uid"] for one in executor.gone(us(9))] == ["pod-1", "pod-0"]


def test_clusters_share_nothing_but_the_executor(executor: SimulatedExecutor) -> None:
    """Two clusters may have a UID in common, and versions of quite another size."""
    executor.admit(encode(pod(1, version=10**9) | {"cluster": "other"}), us(1))
    (terminating,) = executor.evict(evict(), us(4)).events
    assert version(terminating) == 6001
    assert executor.admit(encode(pod(5, version=10**9 + 1) | {"cluster": "other"}), us(5)) == []
    answer = executor.evict(evict(cluster="other"), us(6))
    assert [one["cluster"] for one in answer.events] == ["other"]
    assert version(answer.events[0]) == 10**9 + 2


def test_an_older_record_is_no_news_of_a_pod(executor: SimulatedExecutor) -> None:
    executor.admit(encode(pod(2, tolerates(seconds=9), version=5999)), us(2))
    executor.admit(encode(pod(2, kind="DELETED", version=5999)), us(2))
    (terminating,) = executor.evict(evict(), us(4)).events
    assert (version(terminating), terminating["object"]["spec"]["tolerations"]) == (6001, [tolerates(seconds=3)])


def test_what_is_played_is_of_the_newest_epoch(executor: SimulatedExecutor) -> None:
    """Else the service would drop it, and the pod would never end."""
    executor.admit(encode(node(3, version=7) | {"epoch": 2}), us(3))
    (terminating,) = executor.evict(evict(), us(4)).events
    assert terminating["epoch"] == 2
    (gone,) = executor.admit(encode(pod(4.5, uid="pod-2", version=8) | {"epoch": 2}), us(4.5)) or []
    assert (gone["type"], gone["epoch"]) == ("DELETED", 2)


def test_a_version_without_number_is_followed_by_another() -> None:
    executor = SimulatedExecutor(fails_one_in=0)
    odd = pod(1)
    odd["object"]["metadata"]["resourceVersion"] = "x7"
    executor.admit(encode(odd), us(1))
    (terminating,) = executor.evict(evict(), us(4)).events
    assert terminating["object"]["metadata"]["resourceVersion"] == "x7+"
    (gone,) = executor.gone(us(9))
    assert gone["type"] == "DELETED"


def test_uid_is_the_precondition(executor: SimulatedExecutor) -> None:
    answer = executor.evict(evict(podUid="an earlier pod of that name"), us(4))
    assert (answer.result["outcome"], answer.events) == ("Gone", ())


def test_pod_deleted_by_somebody_else_is_gone(executor: SimulatedExecutor) -> None:
    executor.admit(encode(pod(3, kind="DELETED", version=6500)), us(3))
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
        executor.admit(encode(pod(0, uid=uid, name=uid)), us(0))
    failing = [uid for uid in uids if _outcome(executor, uid, 1) == "Failed"]
    assert 10 <= len(failing) <= 30
    assert len(executor.failed) == len(failing)
    # The next attempt works, also if it is the first of another eviction.
    assert {_outcome(executor, uid, 2) for uid in failing[:3]} == {"Succeeded"}
    assert {_outcome(executor, uid, 1) for uid in failing[3:]} == {"Succeeded"}
    other = SimulatedExecutor(fails_one_in=FAILS_ONE_IN)
    for uid in uids:
        other.admit(encode(pod(0, uid=uid, name=uid)), us(0))
    assert [uid for uid in uids if _outcome(other, uid, 1) == "Failed"] == failing


def _outcome(executor: SimulatedExecutor, uid: str, attempt: int) -> object:
    return executor.evict(evict(podUid=uid, evictionId=f"e-{uid}", attempt=attempt), us(4)).result["outcome"]


def _json(value: object) -> str:
    return json.dumps(value)
