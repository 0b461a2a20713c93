"""A seed says everything, and what seeds say is varied enough to be worth the time."""

from __future__ import annotations

import json

import pytest

from evictstream.kit.oracle.reading import Statement, UnreadableRecordError, read
from evictstream.kit.oracle.records import InputRecord
from tests.faults.actor import ClusterActor
from tests.faults.generate import VIRTUAL_START_US, generate
from tests.faults.numbers import NUMBERS
from tests.faults.plan import SIMULATED_KINDS, Change, FaultKind, Shape
from tests.faults.simulated.many import simulate_many

SECOND_US = 1_000_000
MANY = range(150)
COMMAND = {
    "action": "Evict",
    "attempt": 1,
    "cluster": "c0",
    "namespace": "ns",
    "pod": "p",
    "podUid": "pod",
    "node": "n0",
    "issuedAt": "2026-11-21T02:25:53.106412Z",
}


def test_the_same_seed_gives_the_same_plan() -> None:
    assert generate(7) == generate(7)
    assert generate(7) != generate(8)


def test_the_same_seed_gives_the_same_run() -> None:
    """Or a failing seed could not be repeated."""
    first, second = (list(simulate_many([11], kinds=tuple(FaultKind), processes=1)) for _ in range(2))
    assert first == second


def test_a_plan_can_begin_at_any_time() -> None:
    early, late = generate(3), generate(3, start_at_us=VIRTUAL_START_US + 5 * SECOND_US)
    assert [change.at_us + 5 * SECOND_US for change in early.changes] == [change.at_us for change in late.changes]
    assert early.faults == late.faults


def test_a_shape_is_kept_to() -> None:
    shape = Shape(active_seconds=5, quiet_seconds=7, faults=(2, 2), kinds=(FaultKind.NETWORK_CUT,))
    plan = generate(1, shape)
    assert [fault.kind for fault in plan.faults] == [FaultKind.NETWORK_CUT] * 2
    assert plan.end_at_us == plan.start_at_us + 12 * SECOND_US
    assert all(change.at_us <= plan.end_at_us for change in plan.changes)


def test_every_fault_comes_up() -> None:
    assert {fault.kind for seed in MANY for fault in generate(seed).faults} == set(SIMULATED_KINDS)


def test_every_kind_of_record_comes_up() -> None:
    wanted = {"Node", "Pod", "HEARTBEAT", "unreadable", "deleted", "tainted", "replaced", "finished", "terminating"}
    for seed in MANY:
        if not wanted:
            break
        for said in map(heard, generate(seed).changes):
            wanted -= {"unreadable"} if said is None else {said.kind, words(said)}
    assert wanted == set()


def test_pods_of_one_name_come_up_on_two_nodes() -> None:
    def come_up(seed: int) -> bool:
        places = {
            (said.content["metadata"]["name"], said.content["spec"].get("nodeName"))
            for said in map(heard, generate(seed).changes)
            if said is not None and said.kind == "Pod"
        }
        return len({name for name, _ in places}) < len(places)

    assert any(map(come_up, MANY))


def heard(change: Change) -> Statement | None:
    partition = 0 if change.partition is None else change.partition
    try:
        return read(
            InputRecord(
                topic=change.topic,
                partition=partition,
                offset=0,
                append_at_us=change.at_us,
                key=change.key,
                value=change.value,
            ),
            NUMBERS.limits(),
            1,
        )
    except UnreadableRecordError:
        return None


def words(said: Statement) -> str:
    thing = said.content
    if said.is_deleted:
        return "deleted"
    if said.kind == "Node":
        return "tainted" if thing["spec"].get("taints") else "clean"
    if said.kind == "Pod" and "+" in thing["metadata"]["uid"]:
        return "replaced"
    if said.kind == "Pod" and thing["status"]["phase"] != "Running":
        return "finished"
    return "terminating" if thing.get("metadata", {}).get("deletionTimestamp") else "other"


@pytest.mark.parametrize("wanted", ["Succeeded", "Failed", "Gone", "waits", "nothing"])
def test_executors_answer_in_every_way(wanted: str) -> None:
    answers = set()
    for seed in range(40):
        plan = generate(seed)
        actor = ClusterActor(plan)
        command = dict(COMMAND, evictionId=f"e{seed}")
        if seed % 4:
            pod = {
                "metadata": {"uid": "pod", "name": "p", "namespace": "ns", "resourceVersion": "5"},
                "spec": {"nodeName": "n0"},
            }
            event = {"cluster": "c0", "type": "ADDED", "object": pod}
            assert actor.admit(Change(plan.start_at_us, "pods", b"c0", json.dumps(event).encode()))
        results = [change for change in actor.on_command(command, plan.start_at_us) if change.topic == "results"]
        answers |= {json.loads(change.value or b"").get("outcome", "waits") for change in results} or {"nothing"}
    assert wanted in answers
