"""What an observing service would have done beside what Kubernetes did, from records alone."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from evictstream.kit.recordings.record import RecordedRecord, Role
from evictstream.kit.replay.comparison import DifferenceKind
from evictstream.kit.replay.replay import Replay
from evictstream.kit.replay.shadow import ShadowReport, shadow_of
from evictstream.models.instants import instant_text, instant_us
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.harness.incidents import incidents
from tests.kit.replay.recorded import CLUSTER, EVICTED, PARTITIONS, incident
from tests.kit.replay.test_comparison import RECORDED, deletions

SAME, EARLIER, LATER, ONLY_HERE, ONLY_THERE = DifferenceKind
SECOND_US = 1_000_000
BEGIN_US = 1_700_000_000 * SECOND_US
NEVER_US = 2**62
APART_US = 100_000
"""A watcher may have seen a deletion before the audit log's time of it."""

BY_TAINT = "DeletionByTaintManager"
TERMINATING_ROW = 14
DEADLINE_ROWS = (4, 5, 33, 37)
KEY = CLUSTER.encode()
Json = dict[str, object]


def decided(records: list[RecordedRecord], run_on: float) -> list[RecordedRecord]:
    """Return the decisions of a service that had these records, and in which nobody acts."""
    replay = Replay(Settings(), partitions=PARTITIONS, plays_executor=False)
    messages = sorted((*replay.run(records), *replay.run_on(run_on)))
    return [
        RecordedRecord(
            topic="decisions",
            partition=one.partition,
            offset=number,
            timestamp=-(-one.at_us // 1_000),
            key=one.key,
            value=one.value,
        )
        for number, one in enumerate(messages)
        if one.topic == "decisions"
    ]


def shadow(
    records: list[RecordedRecord], run_on: float = 0.0, more: list[RecordedRecord] | None = None
) -> ShadowReport:
    everything = sorted([*records, *decided(records, run_on), *(more or ())], key=lambda one: one.timestamp)
    return shadow_of(Settings(), lambda: everything, partitions=PARTITIONS)


def told(report: ShadowReport) -> Counter[tuple[DifferenceKind, int | None]]:
    """Count kinds and rows, as `test_comparison` does."""
    found = Counter((one.kind, one.reason.row if one.reason else None) for one in report.differences)
    return found + Counter({(SAME, None): report.same})


def with_disruptions(name: str) -> list[RecordedRecord]:
    """Return an incident with the condition that its controller set, which the recording lacks."""
    deleted = dict[str, int]()
    for one in deletions(EVICTED / name):
        deleted.setdefault(one.pod_uid, one.at_us)
    found = []
    for record in incident(EVICTED / name):
        event = json.loads(record.value or b"")
        meta = event["object"]["metadata"]
        seen_us = instant_us(event["observedAt"]) + APART_US
        if "deletionTimestamp" in meta and seen_us >= deleted.get(meta["uid"], NEVER_US):
            conditions = [{"type": "DisruptionTarget", "status": "True", "reason": BY_TAINT}]
            event["object"].setdefault("status", {})["conditions"] = conditions
        found.append(msgspec.structs.replace(record, value=json.dumps(event).encode()))
    return found


def observed(counted: dict[tuple[DifferenceKind, int | None], int]) -> Counter[tuple[DifferenceKind, int | None]]:
    """Return what an observer sees of a comparison with a replay.

    A pod that was terminating has left before, and a pod that the controller deleted before evictstream's deadline has
    one nevertheless.
    """
    found = Counter[tuple[DifferenceKind, int | None]]()
    for (kind, row), count in counted.items():
        if row != TERMINATING_ROW:
            found[LATER if kind is ONLY_THERE and row in DEADLINE_ROWS else kind, row] += count
    return found


@pytest.mark.parametrize("name", incidents(RECORDED))
def test_recorded_controllers_did_what_a_replay_beside_them_says(name: str) -> None:
    assert told(shadow(with_disruptions(name))) == observed(RECORDED[name])


@dataclasses.dataclass
class Cluster:
    """A node `n` with a taint from second 10 on, and pods on it, as a feed tells of them."""

    records: list[RecordedRecord] = dataclasses.field(default_factory=list)

    def tell(self, topic: Role, at: float, kind: str, shown: Json | None) -> Cluster:
        at_us = BEGIN_US + round(at * SECOND_US)
        event: Json = {"cluster": CLUSTER, "type": kind, "observedAt": instant_text(at_us)}
        if shown is not None:
            event["object"] = shown
        offset = sum(one.topic == topic for one in self.records)
        self.records.append(
            RecordedRecord(
                topic=topic,
                partition=partition_of(KEY, PARTITIONS),
                offset=offset,
                timestamp=at_us // 1_000,
                key=KEY,
                value=json.dumps(event).encode(),
            )
        )
        return self

    def node(self, at: float, *, is_tainted: bool) -> Cluster:
        taints = [{"key": "k", "effect": "NoExecute"}] if is_tainted else []
        meta = {"name": "n", "uid": "node", "resourceVersion": str(len(self.records) + 1)}
        return self.tell(
            "nodes", at, "MODIFIED", {"kind": "Node", "apiVersion": "v1", "metadata": meta, "spec": {"taints": taints}}
        )

    def pod(
        self, at: float, seconds: int | None, by: str | None = None, kind: str = "MODIFIED", **status: object
    ) -> Cluster:
        """Show the pod; `by` lets it terminate for this reason, empty for none."""
        meta: Json = {"name": "p", "namespace": "ns", "uid": "pod", "resourceVersion": str(len(self.records) + 1)}
        if by is not None:
            meta["deletionTimestamp"] = "2023-11-14T22:14:00Z"
        conditions = [{"type": "DisruptionTarget", "status": "True", "reason": by}] if by else []
        tolerations = [] if seconds is None else [{"key": "k", "operator": "Exists", "tolerationSeconds": seconds}]
        shown: Json = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": meta,
            "spec": {"nodeName": "n", "tolerations": tolerations},
            "status": {"phase": "Running", "conditions": conditions, **status},
        }
        return self.tell("pods", at, kind, shown)

    def beat(self, at: float) -> Cluster:
        return self.tell("nodes", at, "HEARTBEAT", None).tell("pods", at, "HEARTBEAT", None)

    def result(self, outcome: str) -> list[RecordedRecord]:
        """Return a result of the first attempt, a tenth of a second after it."""
        (issued,) = [one for one in decided(self.records, 0) if b'"Issued"' in (one.value or b"")]
        it = json.loads(issued.value or b"")
        same = ("apiVersion", "evictionId", "attempt", "cluster", "namespace", "pod", "podUid", "node")
        value = {name: it[name] for name in same} | {"kind": "EvictionResult", "outcome": outcome}
        return [
            RecordedRecord(
                topic="results",
                partition=issued.partition,
                offset=0,
                timestamp=issued.timestamp + 100,
                key=KEY,
                value=json.dumps(value).encode(),
            )
        ]


def tainted(seconds: int | None) -> Cluster:
    return Cluster().node(0, is_tainted=False).pod(1, seconds).node(10, is_tainted=True)


CASES: list[tuple[str, Callable[[], Cluster], DifferenceKind, int | None, float | None, str]] = [
    (
        "shortened",
        lambda: tainted(30).pod(12, 5).pod(40, 5, BY_TAINT).node(50, is_tainted=True),
        EARLIER,
        5,
        -25.0,
        "edited",
    ),
    ("extended", lambda: tainted(5).pod(12, 30).pod(15, 30, BY_TAINT), LATER, 5, 25.0, "edited"),
    ("finished", lambda: tainted(5).pod(12, 5, phase="Failed").pod(15, 5, BY_TAINT), ONLY_THERE, 12, None, "finished"),
    ("never", lambda: tainted(5).node(60, is_tainted=True), ONLY_HERE, None, None, "is it on?"),
    ("slow", lambda: tainted(None).pod(40, None, BY_TAINT), EARLIER, None, -30.0, "was late"),
    (
        "gate",
        lambda: tainted(100).beat(11).pod(140, 100, BY_TAINT),
        ONLY_THERE,
        None,
        None,
        "had not issued it by then",
    ),
]


@pytest.mark.parametrize(
    ("made", "kind", "row", "seconds", "reason"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_each_difference_has_its_reason(
    made: Callable[[], Cluster], kind: DifferenceKind, row: int | None, seconds: float | None, reason: str
) -> None:
    report = shadow(made().records)
    (one,) = report.differences
    assert one.reason is not None
    assert (one.kind, one.reason.row, one.seconds) == (kind, row, seconds)
    assert reason in one.reason.text
    assert report.same == 0


@pytest.mark.parametrize("at", [14.2, 15.0, 15.9])
def test_within_a_second_is_the_same(at: float) -> None:
    report = shadow(tainted(5).pod(at, 5, BY_TAINT).node(20, is_tainted=True).records)
    assert (report.same, report.differences) == (1, [])


@pytest.mark.parametrize(("by", "counted"), [("", "deleted"), ("PreemptionByScheduler", "PreemptionByScheduler")])
def test_what_another_one_deletes_is_counted_alone(by: str, counted: str) -> None:
    for made in (tainted(5).pod(12, 5, by), tainted(None).pod(10.5, None, by)):
        report = shadow(made.node(20, is_tainted=True).records)
        assert (report.otherwise, report.same, report.differences) == ({counted: 1}, 0, [])


def test_what_an_executor_of_evictstream_did_is_not_compared() -> None:
    made = tainted(5).node(15.05, is_tainted=True)
    acted = made.result("Succeeded")
    records = sorted([*made.pod(15.3, 5, BY_TAINT).records, *acted], key=lambda one: one.timestamp)
    report = shadow(records)
    assert (report.done, report.same, report.differences) == (1, 0, [])


def test_what_comes_with_the_last_records_is_not_compared() -> None:
    report = shadow(tainted(None).records, run_on=5)
    assert (report.not_due, report.differences) == (1, [])


def test_what_was_cancelled_is_counted_alone() -> None:
    report = shadow(tainted(30).node(12, is_tainted=False).records)
    assert (report.cancelled, report.not_due, report.differences) == (1, 0, [])


def test_an_eviction_begun_before_the_range_is_not_compared() -> None:
    made = tainted(5).node(16, is_tainted=True).pod(17, 5, BY_TAINT)
    late = [one for one in decided(made.records, 0) if b'"Completed"' in (one.value or b"")]
    everything = sorted([*made.records, *late], key=lambda one: one.timestamp)
    report = shadow_of(Settings(), lambda: everything, partitions=PARTITIONS)
    assert (report.begun_before, report.same, report.differences) == (1, 0, [])


def test_an_empty_recording_is_an_empty_report() -> None:
    report = shadow_of(Settings(), list, partitions=PARTITIONS)
    assert report.summary() == {
        "firstAt": None,
        "lastAt": None,
        "same": 0,
        "done": 0,
        "otherwise": {},
        "cancelled": 0,
        "notDue": 0,
        "begunBefore": 0,
    }
