"""What is wrong with a cluster is seen: evictions without an answer, and a silent feed that holds something due."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
import structlog

from evictstream.streams.engine.core.waits import WaitKind
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.partition.overdue import Waiting
from evictstream.streams.settings import Settings
from evictstream.streams.worker.cluster_signs import UNANSWERED_LIMIT_SECONDS, ClusterSigns, cluster_signs
from evictstream.streams.worker.gates import Gate
from evictstream.streams.worker.health import Health
from evictstream.streams.worker.snapshot import PartitionView, Snapshot, view_of
from evictstream.streams.worker.watchdog import Watchdog, wait_limits
from tests.streams.worker.story import NOON_US, SECOND_US, TAINT, Story
from tests.streams.worker.test_metrics import view

if TYPE_CHECKING:
    from evictstream.streams.engine.core.writer import PartitionWriter
    from evictstream.streams.worker.freshness import Freshness
    from evictstream.streams.worker.served_partition import ServedPartition

LIMIT = UNANSWERED_LIMIT_SECONDS


def at(seconds: float) -> int:
    return NOON_US + round(seconds * SECOND_US)


class Owed(Story):
    """Two pods of a tainted node that were evicted at second 1 and 2."""

    def __init__(self) -> None:
        super().__init__()
        self.heartbeat(0)
        self.node(0, TAINT)
        self.pod(1, "a", None)
        self.fire(1)
        self.pod(2, "b", None)
        self.fire(2)

    def unanswered(self) -> tuple[int, float] | None:
        """Count and age of the oldest, seconds, 0 being noon."""
        found = self.logic.unanswered(self.now_us).get("lab")
        return None if found is None else (found.count, (found.oldest_at_us - NOON_US) / SECOND_US)

    def restarted(self) -> EvictionPartition:
        logic = EvictionPartition(0, self.config)
        for key, value in self.outbox.rows.items():
            logic.load(key, value)
        logic.loaded()
        return logic


def test_what_was_issued_is_unanswered_until_a_result_comes() -> None:
    story = Owed()
    assert story.unanswered() == (2, 1)
    story.result(3, "Accepted")  # of `b`, the newest command
    assert story.unanswered() == (1, 1)
    story.fire(40)
    assert story.unanswered() == (1, 1), "a repeat is no answer"
    story.result(41, "Failed")
    assert story.unanswered() is None


@pytest.mark.parametrize("end", ["taint", "pod", "cluster"])
def test_what_has_ended_is_not_unanswered(end: str) -> None:
    story = Owed()
    if end == "taint":
        story.node(3)
    elif end == "cluster":
        story.forget(3)
    else:
        story.pod(3, "a", None, "DELETED")
        story.pod(3, "b", None, "MODIFIED", deletionTimestamp="2026-11-21T12:00:31Z")
    assert story.unanswered() is None


def test_an_attempt_after_a_result_is_unanswered_anew() -> None:
    story = Owed()
    story.result(3, "Failed")
    story.fire(5)
    assert story.unanswered() == (2, 1)
    story.pod(6, "a", None, "DELETED")
    found = story.unanswered()
    assert found is not None
    assert found[0] == 1
    assert 3 < found[1] <= 5


def test_since_when_is_the_same_after_a_restart() -> None:
    story = Owed()
    story.fire(40)  # both are repeated
    assert (
        story.restarted().unanswered(story.now_us) == story.logic.unanswered(story.now_us) == {"lab": Waiting(2, at(1))}
    )


def test_metrics_show_what_is_unanswered() -> None:
    story = Owed()
    story.views = (view(pending={"lab": 2, "calm": 0}, unanswered=story.logic.unanswered(story.now_us)),)
    story.now_us = at(31)
    seen = story.scrape()
    assert seen["evictstream_evictions_unanswered", "lab"] == 2
    assert seen["evictstream_evictions_unanswered_oldest_seconds", "lab"] == 30
    assert seen["evictstream_evictions_unanswered", "calm"] == 0
    assert seen["evictstream_evictions_unanswered_oldest_seconds", "calm"] == 0


def snapshot(now: float, *views: PartitionView) -> Snapshot:
    return Snapshot(is_settled=True, partitions=views, at_us=at(now))


def owing(count: int, since: float) -> PartitionView:
    return view(unanswered={"lab": Waiting(count, at(since))} if count else {})


def silent(count: int, since: float) -> PartitionView:
    waiting = {(Gate.FEED, "lab"): Waiting(count, at(since))} if count else {}
    return view(silent_since_us={"lab": at(since)}, waiting=waiting)


def test_owed_evictions_are_a_sign_beyond_the_limit() -> None:
    two = (owing(3, 10), dataclasses.replace(owing(1, 5), partition=1))
    assert cluster_signs(snapshot(5 + LIMIT, *two)) == []
    (sign,) = cluster_signs(snapshot(6 + LIMIT, *two))
    assert (sign.cluster, sign.gate, sign.evictions) == ("lab", None, 4)
    assert "executor" in sign.reason


def test_what_a_brake_holds_is_a_sign_and_names_it() -> None:
    held = view(held={("b-1", "lab"): Waiting(3, at(0)), ("b-2", "lab"): Waiting(1, at(5))})
    first, second = cluster_signs(snapshot(70, held))
    assert (first.cluster, first.gate, first.brake, first.evictions) == ("lab", None, "b-1", 3)
    assert (second.brake, "b-2" in second.reason) == ("b-2", True)
    signs = ClusterSigns()
    for seen, events in ((held, ["evictions held"] * 2), (held, []), (view(), ["evictions released"] * 2)):
        with structlog.testing.capture_logs() as logged:
            signs.look(snapshot(71, seen))
        assert [line["event"] for line in logged] == events
        assert {line["brake"] for line in logged} <= {"b-1", "b-2"}


@pytest.mark.parametrize(
    ("holder", "command"), [("b-1", "`evictstream holds`"), ("policy/p", "`evictstream policy get`")]
)
def test_a_sign_names_the_command_that_shows_the_holder(holder: str, command: str) -> None:
    (sign,) = cluster_signs(snapshot(70, view(held={(holder, "lab"): Waiting(3, at(0))})))
    assert (holder in sign.reason, sign.reason.endswith(command)) == (True, True)


def test_each_sign_is_logged_once_when_it_begins_and_ends() -> None:
    signs = ClusterSigns()
    story = [
        (snapshot(70, owing(3, 0)), 1),
        (snapshot(71, owing(4, 0)), 0),
        (snapshot(72, owing(4, 0), silent(2, 0)), 1),
        (snapshot(73, owing(4, 0), silent(1, 0)), 0),
        (snapshot(74, silent(1, 0)), 1),
        (snapshot(75, silent(0, 0)), 1),
        (snapshot(76), 0),
    ]
    for seen, lines in story:
        with structlog.testing.capture_logs() as logged:
            signs.look(seen)
        assert len(logged) == lines
        assert all(line["cluster"] == "lab" for line in logged)


def test_a_feed_that_holds_nothing_is_in_no_log() -> None:
    signs = ClusterSigns()
    signs.look(snapshot(90, silent(0, 0)))
    assert signs.shown == {}


def test_readyz_names_a_cluster_and_stays_ready() -> None:
    watchdog = Watchdog(lambda _: dict.fromkeys(WaitKind, 0.0), wait_limits(Settings()), print)
    report = Health(watchdog, lambda: snapshot(85, silent(48, 0), owing(3, 0))).ready(0.0)
    assert report.status == 200
    body = cast("dict[str, list[dict[str, object]]]", report.body)
    found = [(one["cluster"], one.get("gate"), one["evictions"]) for one in body["clusters"]]
    assert found == [("lab", None, 3), ("lab", "feed", 48)]
    assert "85 s" in str(body["clusters"][1]["reason"])


def test_a_silent_feed_is_seen_by_its_partition() -> None:
    story = Owed()
    assert story.logic.silent_since_us(at(30)) == {}
    assert story.logic.silent_since_us(at(100)) == {"lab": at(0)}


@pytest.mark.parametrize(
    ("unread_seconds", "is_silent"),
    [
        pytest.param(1.0, True, id="all is read"),
        pytest.param(50.0, False, id="heartbeats may be there, unread"),
        pytest.param(math.inf, False, id="nothing was read yet"),
    ],
)
def test_a_feed_is_silent_only_where_its_topics_are_read(unread_seconds: float, is_silent: bool) -> None:  # noqa: FBT001 - a case
    writer = SimpleNamespace(logic=Owed().logic, partition=0, positions={}, appended_ms={}, caught_up=True)
    freshness = SimpleNamespace(age_seconds=lambda _: unread_seconds, lag=None)
    found = view_of(cast("PartitionWriter[ServedPartition]", writer), None, cast("Freshness", freshness), at(100))
    assert bool(found.silent_since_us) is is_silent
