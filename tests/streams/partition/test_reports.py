"""What executors report of their queues, as a partition takes it in: rows, repeats, metrics, dead letters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evictstream.models.instants import instant_text
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.streams.worker.story import NOON_US, SECOND_US, TAINT, Story

ROW = b"cluster\0lab"


def instant(seconds: float) -> str:
    return instant_text(NOON_US + round(seconds * SECOND_US))


class Queued(Story):
    """Two pods of a tainted node, evicted at second 1."""

    def __init__(self) -> None:
        super().__init__()
        self.node(0, TAINT)
        self.pod(1, "a", None)
        self.pod(1, "b", None)
        self.fire(1)

    def report(self, at: float, *, to: float = 1, key: bytes = b"lab", **change: Any) -> None:
        value = {
            "apiVersion": "evictstream.io/v1",
            "kind": "ExecutorReport",
            "cluster": key.decode(),
            "executor": "x-1",
            "waiting": 2,
            "readTo": instant(to),
            **change,
        }
        self.raw(at, "results", json.dumps(value).encode(), key)

    def observe(self, at: float) -> None:
        for place in (-1, -2):
            self.result(at, "Observed", place=place)

    def attempts(self) -> list[int]:
        return [json.loads(sent.value)["attempt"] for sent in self.outbox.messages["commands"]]

    def take_over(self) -> None:
        """Another worker goes on from the rows."""
        self.logic = EvictionPartition(0, self.config)
        for key, value in self.outbox.rows.items():
            self.logic.load(key, value)
        self.logic.loaded()

    def counted(self) -> dict[str, int]:
        return dict(self.config.counters.of_input("results"))


def test_a_report_is_one_row_and_holds_every_repeat() -> None:
    story = Queued()
    for at in (12, 22, 32, 42):
        before = {key: value for key, value in story.outbox.rows.items() if key != ROW}
        story.report(at)
        story.fire(at + 9)
        assert {key: value for key, value in story.outbox.rows.items() if key != ROW} == before
    assert story.attempts() == [1, 1]
    assert story.counted() == {"signal": 4}
    story.fire(72)
    assert story.attempts() == [1, 1, 2, 2], "30 s after the last report"


def test_a_new_owner_of_the_partition_believes_the_same() -> None:
    story = Queued()
    story.report(25)
    story.take_over()
    story.fire(54)
    assert story.attempts() == [1, 1]
    story.fire(55)
    assert story.attempts() == [1, 1, 2, 2]


def test_the_newest_report_counts() -> None:
    """A successor has read less than the one that it replaces."""
    story = Queued()
    story.report(20)
    story.report(25, to=0)
    story.fire(31)
    assert story.attempts() == [1, 1, 2, 2]


def test_what_waits_in_a_queue_is_not_unanswered() -> None:
    story = Queued()
    story.pod(5, "c", None)
    story.fire(5)
    assert story.logic.unanswered(story.now_us)["lab"].count == 3
    story.report(20)
    (left,) = story.logic.unanswered(story.now_us).values()
    assert (left.count, left.oldest_at_us) == (1, NOON_US + 5 * SECOND_US)
    story.report(21, to=5)
    assert story.logic.unanswered(story.now_us) == {}
    assert story.logic.unanswered(story.now_us + 30 * SECOND_US)["lab"].count == 3, "the report is old"


def test_what_was_only_observed_waits_for_a_report() -> None:
    story = Queued()
    story.observe(2)
    rows = dict(story.outbox.rows)
    for at in (31, 1_000, 90_000):
        story.fire(at)
    assert (story.attempts(), story.outbox.rows) == ([1, 1], rows)
    assert story.logic.unanswered(story.now_us) == {}, "an observer has answered, and nobody acts"
    assert story.logic.issued_since_us() == {}
    assert not list(story.logic.overdue(story.now_us, 10))
    story.take_over()
    story.fire(90_001)
    assert story.attempts() == [1, 1]
    assert not list(story.logic.overdue(story.now_us, 10))
    story.report(90_002, to=0)
    story.fire(90_002)
    assert story.attempts() == [1, 1, 2, 2]
    story.observe(90_003)
    story.fire(95_000)
    assert story.attempts() == [1, 1, 2, 2]
    assert story.logic.unanswered(story.now_us)["lab"].count == 2, "someone has acted, and does not"
    assert story.logic.issued_since_us() == {"lab": NOON_US + SECOND_US}


def test_reports_of_clusters_without_nodes_make_no_row() -> None:
    story = Queued()
    story.report(2, key=b"elsewhere")
    assert story.counted() == {"stale": 1}
    assert b"cluster\0elsewhere" not in story.outbox.rows


def test_a_report_from_before_a_forget_counts_no_more() -> None:
    story = Queued()
    story.report(2)
    story.forget(3)
    row = story.outbox.rows[ROW]
    story.report(3)
    assert story.outbox.rows[ROW] == row
    assert b"queue" not in (row or b"")
    assert story.counted() == {"signal": 1, "forgotten": 1}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cluster": "other"}, "ForeignCluster"),
        ({"cluster": ""}, "MissingField"),
        ({"readTo": "noon"}, "BadTime"),
        ({"readTo": None}, "WrongType"),
        ({"waiting": -1}, "WrongType"),
        ({"apiVersion": "evictstream.io/v9"}, "WrongKind"),
    ],
)
def test_a_report_that_cannot_be_read_is_a_dead_letter(change: dict[str, Any], reason: str) -> None:
    story = Queued()
    story.report(2, **change)
    assert story.config.counters.dead_letters == {reason: 1}


def test_a_cluster_whose_nodes_are_gone_keeps_no_report() -> None:
    story = Queued()
    story.report(2)
    story.pod(3, "a", None, "DELETED")
    story.pod(3, "b", None, "DELETED")
    meta = {"name": "n", "uid": "node", "resourceVersion": "900"}
    story.event(4, "nodes", "DELETED", {"kind": "Node", "metadata": meta})
    story.fire(4_000)
    assert story.outbox.rows[ROW] is None
