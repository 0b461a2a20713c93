"""Metrics by value, unit and sign: what a scraper reads after a short story of which every number is known."""

from __future__ import annotations

import pytest

from evictstream.models.messages.unreadable import UnreadableReason
from evictstream.models.messages.vocabulary import Outcome
from evictstream.streams.engine.core.waits import WaitKind
from evictstream.streams.partition.counters import LATENESS_BOUNDS_SECONDS, seconds_late
from evictstream.streams.partition.eviction_partition import EvictionPartition
from evictstream.streams.partition.overdue import Overdue, Waiting
from evictstream.streams.worker.gates import Closed, Gate
from evictstream.streams.worker.metrics import CLUSTERS_SHOWN
from evictstream.streams.worker.snapshot import PartitionView
from tests.streams.worker.story import NOON_US, SECOND_US, TAINT, Story


def view(**overrides: object) -> PartitionView:
    values: dict[str, object] = {
        "partition": 0,
        "caught_up": True,
        "closed": None,
        "view_age_seconds": 0.5,
        "lag_seconds": {"pods": 2.5},
        "lag_records": {"pods": 7},
        "pending": {},
        "waiting": {},
    }
    return PartitionView(**(values | overrides))  # type: ignore[arg-type]  # a table of made-up values


def told() -> Story:
    """Four pods on a node that is tainted at second 10: two leave at 20, one at once, one may stay."""
    story = Story()
    story.node(0)
    story.pod(1, "late", 10)
    story.pod(2, "later", 10)
    story.pod(3, "spared", 1000)
    story.pod(4, "now", None)
    story.node(10, TAINT)
    story.fire(10.5)  # "now", half a second late
    story.fire(22)  # "late" and "later", two seconds late
    story.pod(30, "now", None, "DELETED")  # twenty seconds after its deadline
    story.pod(31, "late", 10, "MODIFIED", deletionTimestamp="2026-11-21T12:00:31Z")  # eleven seconds after
    story.pod(32, "late", 10, "DELETED")  # known to be leaving: counted already
    story.pod(33, "spared", 1000, "MODIFIED")  # changes nothing
    story.raw(34, "pods", b"no event")
    story.node(40)
    return story


COUNTED = {
    ("evictstream_events_total", "nodes", "changed"): 3,
    ("evictstream_events_total", "pods", "changed"): 7,
    ("evictstream_events_total", "pods", "unchanged"): 1,
    ("evictstream_events_total", "pods", "dead-letter"): 1,
    ("evictstream_dead_letters_total", "BadJson"): 1,
    ("evictstream_commands_total", "Schedule"): 3,
    ("evictstream_commands_total", "Evict"): 3,
    ("evictstream_commands_total", "Cancel"): 2,
    ("evictstream_decisions_total", "Scheduled", "TolerationExpires"): 3,
    ("evictstream_decisions_total", "Due", "Untolerated"): 1,
    ("evictstream_decisions_total", "Issued", "TolerationExpires"): 2,
    ("evictstream_decisions_total", "Issued", "Untolerated"): 1,
    ("evictstream_decisions_total", "Completed", "PodGone"): 1,
    ("evictstream_decisions_total", "Completed", "PodTerminating"): 1,
    ("evictstream_decisions_total", "Cancelled", "TaintRemoved"): 2,
}


@pytest.mark.parametrize(("name", "value"), COUNTED.items(), ids=["-".join(name) for name in COUNTED])
def test_counts_after_the_story(name: tuple[str, ...], value: float) -> None:
    assert told().scrape()[name] == value


def answered() -> Story:
    """One pod, evicted at second 10, with all that is no news about it; its cluster is forgotten at 40."""
    story = Story()
    story.heartbeat(0)
    story.node(0, TAINT)
    story.pod(0, "a", 10, resourceVersion="500")
    story.pod(1, "a", 10, resourceVersion="500")  # again
    story.pod(2, "a", 20, resourceVersion="499")  # of before
    story.pod(3, "a", 20, resourceVersion="498")
    story.fire(10)
    story.result(11, "Failed")
    story.result(12, "Failed")  # again
    story.result(13, "Succeeded", attempt=7)  # of an attempt that never was
    story.result(14, "Succeeded")  # run twice by its executor: the success counts too
    story.heartbeat(15)
    story.forget(40)
    story.pod(39, "b", 10)  # read after the order to forget, appended before it
    return story


ANSWERED = {
    ("evictstream_events_total", "nodes", "changed"): 1,
    ("evictstream_events_total", "nodes", "signal"): 3,
    ("evictstream_events_total", "pods", "changed"): 1,
    ("evictstream_events_total", "pods", "unchanged"): 0,
    ("evictstream_events_total", "pods", "duplicate"): 1,
    ("evictstream_events_total", "pods", "stale"): 2,
    ("evictstream_events_total", "pods", "signal"): 2,
    ("evictstream_events_total", "pods", "forgotten"): 1,
    ("evictstream_events_total", "results", "changed"): 2,
    ("evictstream_events_total", "results", "duplicate"): 1,
    ("evictstream_events_total", "results", "stale"): 1,
    ("evictstream_results_total", "Failed"): 1,
    ("evictstream_results_total", "Succeeded"): 1,
}


def test_counts_of_answers_repeats_and_signals() -> None:
    """Both metrics as a whole: nothing is counted under another name."""
    seen = answered().scrape()
    counted = {"evictstream_events_total", "evictstream_results_total"}
    others = {name for name in seen if name[0] in counted} - ANSWERED.keys()
    assert {name: seen[name] for name in ANSWERED} == ANSWERED
    assert {name: seen[name] for name in others} == dict.fromkeys(others, 0)


def test_lateness_is_in_seconds_from_deadline_to_decision() -> None:
    seen = told().scrape()
    assert seen["evictstream_eviction_lateness_seconds_count",] == 3
    assert seen["evictstream_eviction_lateness_seconds_sum",] == 0.5 + 2 + 2
    assert seen["evictstream_eviction_lateness_seconds_bucket", "0.25"] == 0
    assert seen["evictstream_eviction_lateness_seconds_bucket", "0.5"] == 1
    assert seen["evictstream_eviction_lateness_seconds_bucket", "1.0"] == 1
    assert seen["evictstream_eviction_lateness_seconds_bucket", "2.5"] == 3
    assert seen["evictstream_eviction_lateness_seconds_bucket", "+Inf"] == 3


def test_nothing_is_late_that_could_not_have_been_earlier() -> None:
    """An edit puts the deadline an hour into the past; the pod is evicted at once, and gone two seconds later."""
    story = Story()
    story.node(0, TAINT)
    story.pod(0, "edited", 10_000)
    story.pod(3_610, "edited", 10)
    assert list(story.logic.overdue(story.now_us, 100)) == [
        Overdue("lab", NOON_US + 3_610 * SECOND_US, waits_for_feed=False)
    ]
    story.fire(3_610.5)
    story.pod(3_612, "edited", 10, "DELETED")
    seen = story.scrape()
    assert seen["evictstream_eviction_lateness_seconds_sum",] == 0.5
    assert seen["taint_eviction_controller_pod_deletion_duration_seconds_sum",] == 2


def test_repeats_are_not_late() -> None:
    story = told()
    story.pod(41, "retried", 10)
    story.node(50, TAINT)
    story.fire(60)
    before = story.scrape()["evictstream_eviction_lateness_seconds_count",]
    story.fire(200)
    assert story.scrape()["evictstream_decisions_total", "Retried", "TolerationExpires"] >= 1
    assert story.scrape()["evictstream_eviction_lateness_seconds_count",] == before


def test_deletion_takes_seconds_from_deadline_to_confirmed_deletion() -> None:
    """semantics.md 13 row 18 (#142617, #141742, #141311): right unit and sign; one pod counts once."""
    seen = told().scrape()
    name = "taint_eviction_controller_pod_deletion_duration_seconds"
    assert seen["taint_eviction_controller_pod_deletions_total",] == 2
    assert seen[f"{name}_count",] == 2
    assert seen[f"{name}_sum",] == 20 + 11
    assert seen[f"{name}_bucket", "10.0"] == 0
    assert seen[f"{name}_bucket", "30.0"] == 2


def test_a_deletion_never_takes_less_than_nothing() -> None:
    assert seconds_late("2026-11-21T12:00:10.000000Z", "2026-11-21T12:00:12.500000Z") == 2.5
    assert seconds_late("2026-11-21T12:00:10.000000Z", "2026-11-21T12:00:09.000000Z") == 0


def test_pending_evictions_follow_their_life_and_a_restart() -> None:
    story = Story()
    story.node(0, TAINT)
    story.pod(1, "a", 10)
    story.pod(2, "b", 20)
    story.pod(3, "c", None)
    assert story.logic.open_evictions() == {"lab": 3}
    story.fire(12)  # issued is still open
    assert story.logic.open_evictions() == {"lab": 3}
    story.pod(13, "a", 10, "DELETED")
    assert story.logic.open_evictions() == {"lab": 2}
    again = EvictionPartition(0, story.config)
    for key, value in story.outbox.rows.items():
        again.load(key, value)
    again.loaded()
    assert again.open_evictions() == {"lab": 2}
    story.node(14)
    assert story.logic.open_evictions() == {"lab": 0}, "0 is a value: a series that ends looks like a worker that ended"
    again = EvictionPartition(0, story.config)
    for key, value in story.outbox.rows.items():
        again.load(key, value)
    again.loaded()
    assert again.open_evictions() == {"lab": 0}


def test_an_empty_cluster_leaves_no_series() -> None:
    story = Story()
    story.node(0, TAINT)
    story.pod(1, "a", 10)
    story.pod(2, "a", 10, "DELETED")
    story.event(
        3, "nodes", "DELETED", {"kind": "Node", "metadata": {"name": "n", "uid": "node", "resourceVersion": "999"}}
    )
    assert story.logic.open_evictions() == {"lab": 0}, "the pod's UID is remembered still"
    story.fire(100_000)
    assert story.logic.open_evictions() == {}


def test_a_forgotten_cluster_leaves_no_series_until_its_next_record() -> None:
    story = Story()
    story.heartbeat(0)
    assert story.logic.open_evictions() == {"lab": 0}, "its feed says that it is there"
    story.node(1, TAINT)
    story.pod(2, "a", 10)
    assert story.logic.open_evictions() == {"lab": 1}
    story.forget(3)
    assert story.logic.open_evictions() == {}
    assert story.logic.open_evictions() == {}
    story.node(4)
    assert story.logic.open_evictions() == {"lab": 0}


def test_series_of_alerts_exist_before_anything_happens() -> None:
    story = Story()
    story.views = (view(),)
    seen = story.scrape()
    zeros = [
        *(("evictstream_dead_letters_total", str(reason)) for reason in UnreadableReason),
        ("evictstream_dead_letters_total", "Undecidable"),
        ("evictstream_dead_letters_total", "WrongPartition"),
        *(("evictstream_commands_total", action) for action in ("Schedule", "Evict", "Cancel")),
        ("evictstream_decisions_total", "Issued", "Untolerated"),
        ("evictstream_decisions_total", "Retried", "TolerationExpires"),
        ("evictstream_decisions_total", "Completed", "PodReplaced"),
        ("evictstream_decisions_total", "Cancelled", "Undecidable"),
        *(("evictstream_results_total", str(outcome)) for outcome in Outcome),
        *(
            ("evictstream_events_total", topic, outcome)
            for topic in ("nodes", "pods", "results")
            for outcome in ("changed", "unchanged", "duplicate", "stale", "forgotten", "dead-letter", "signal")
        ),
        *(("evictstream_partition_gate_closed", str(gate), "0") for gate in Gate if gate is not Gate.FEED),
    ]
    assert {name: seen.get(name) for name in zeros} == dict.fromkeys(zeros, 0)


def test_waiting_evictions_are_those_behind_a_closed_gate() -> None:
    story = Story()
    story.node(0, TAINT)
    story.pod(1, "a", 10)
    story.pod(2, "b", 20)
    story.pod(3, "c", 10)
    story.pod(4, "c", 10, "DELETED")  # its wake-up is still on the heap
    assert list(story.logic.overdue(NOON_US + 10 * SECOND_US, 100)) == []
    assert list(story.logic.overdue(NOON_US + 15 * SECOND_US, 100)) == [
        Overdue("lab", NOON_US + 11 * SECOND_US, waits_for_feed=False)
    ]


def test_evictions_behind_a_silent_feed_are_counted_apart() -> None:
    story = Story()
    story.heartbeat(0)
    story.node(1, TAINT)
    story.pod(2, "a", 100)
    story.fire(150)  # the last heartbeat is 150 s old
    assert list(story.logic.overdue(NOON_US + 150 * SECOND_US, 100)) == [
        Overdue("lab", NOON_US + 102 * SECOND_US, waits_for_feed=True)
    ]


def test_a_wakeup_behind_a_silent_feed_is_kept_once() -> None:
    story = Story()
    story.heartbeat(0)
    story.node(1, TAINT)
    story.pod(2, "a", 100)
    for minute in range(3, 6):
        story.fire(60 * minute)
        story.logic._timers.rebuild()
    assert [len(kept) for kept in story.logic.firing.waiting_for_feed.values()] == [1]


def test_partitions_lag_and_waiting() -> None:
    story = Story()
    closed = Closed(Gate.FRESH_VIEW, "too old")
    waiting = {(Gate.FRESH_VIEW, "lab"): Waiting(4, NOON_US), (Gate.FEED, "dev"): Waiting(1, NOON_US + SECOND_US)}
    story.views = (
        view(pending={"lab": 5}, waiting=waiting, closed=closed),
        view(
            partition=3, caught_up=False, pending={"lab": 2, "dev": 1}, waiting={}, lag_seconds={"pods": float("inf")}
        ),
    )
    story.now_us = NOON_US + 90 * SECOND_US
    seen = story.scrape()
    wanted = {
        ("evictstream_partitions",): 8,
        ("evictstream_partitions_owned",): 2,
        ("evictstream_partition_caught_up", "0"): 1,
        ("evictstream_partition_caught_up", "3"): 0,
        ("evictstream_partition_gate_closed", "fresh-view", "0"): 1,
        ("evictstream_view_age_seconds", "0"): 0.5,
        ("evictstream_lag_seconds", "pods", "0"): 2.5,
        ("evictstream_lag_seconds", "pods", "3"): float("inf"),
        ("evictstream_lag_records", "pods", "0"): 7,
        ("evictstream_evictions_pending", "lab"): 7,
        ("evictstream_evictions_pending", "dev"): 1,
        ("evictstream_evictions_waiting", "lab", "fresh-view"): 4,
        ("evictstream_evictions_waiting", "dev", "feed"): 1,
        ("evictstream_evictions_waiting_oldest_seconds", "lab", "fresh-view"): 90,
        ("evictstream_evictions_waiting_oldest_seconds", "dev", "feed"): 89,
    }
    assert {name: seen[name] for name in wanted} == wanted
    assert seen["evictstream_partition_gate_closed", "fresh-view", "3"] == 0


def test_an_issued_eviction_is_owed_until_it_has_ended() -> None:
    story = Story()
    story.node(0, TAINT)
    story.pod(1, "a", 10)
    story.pod(2, "b", 20)
    assert story.logic.issued_since_us() == {}
    story.fire(30)
    assert story.logic.issued_since_us() == {"lab": NOON_US + 11 * SECOND_US}
    story.result(31, "Failed")  # an answer, and the pod is still there
    again = EvictionPartition(0, story.config)
    for key, value in story.outbox.rows.items():
        again.load(key, value)
    again.loaded()
    assert again.issued_since_us() == {"lab": NOON_US + 11 * SECOND_US}
    story.pod(32, "a", 10, "DELETED")
    assert story.logic.issued_since_us() == {"lab": NOON_US + 22 * SECOND_US}
    story.node(33)
    assert story.logic.issued_since_us() == {}


def test_ages_of_what_is_owed_and_of_silent_feeds() -> None:
    story = Story()
    story.views = (
        view(pending={"lab": 1, "dev": 0}, owed_since_us={"lab": NOON_US}),
        view(pending={"lab": 1}, owed_since_us={"lab": NOON_US + SECOND_US}, silent_since_us={"lab": NOON_US}),
    )
    story.now_us = NOON_US + 90 * SECOND_US
    seen = story.scrape()
    assert seen["evictstream_evictions_owed_oldest_seconds", "lab"] == 90
    assert seen["evictstream_evictions_owed_oldest_seconds", "dev"] == 0
    assert seen["evictstream_cluster_feed_silent_seconds", "lab"] == 90
    assert seen["evictstream_cluster_feed_silent_seconds", "dev"] == 0


def test_labels_of_clusters_are_limited() -> None:
    story = Story()
    at_limit = {f"c{n:03}": 2 for n in range(CLUSTERS_SHOWN)}
    story.views = (view(pending=at_limit),)
    names = [name for name in story.scrape() if name[0] == "evictstream_evictions_pending"]
    assert (len(names), ("evictstream_evictions_pending", "_other") in names) == (CLUSTERS_SHOWN, False)
    story.views = (view(pending={**at_limit, "small": 1, "tiny": 1}, waiting={(Gate.FEED, "tiny"): Waiting(1, 0)}),)
    seen = story.scrape()
    assert len([name for name in seen if name[0] == "evictstream_evictions_pending"]) == CLUSTERS_SHOWN + 1
    assert seen["evictstream_evictions_pending", "_other"] == 2
    assert seen["evictstream_evictions_waiting", "_other", "feed"] == 1


def test_ages_limits_and_the_worker_itself() -> None:
    story = Story()
    story.ages[WaitKind.FETCH] = 12.5
    story.engine.transaction_seconds.observe(0.006)
    story.engine.transaction_seconds.observe(0.5)
    story.engine.waits.pauses.observe(0.03)
    seen = story.scrape()
    wanted = {
        ("evictstream_worker_wait_seconds", "fetch"): 12.5,
        ("evictstream_worker_wait_seconds", "loop"): 0,
        ("evictstream_worker_wait_limit_seconds", "loop"): 60,
        ("evictstream_worker_wait_limit_seconds", "commit"): 120,
        ("evictstream_worker_wait_limit_seconds", "fetch"): 300,
        ("evictstream_build_info", "worker", "1.2.3"): 1,
        ("evictstream_takeovers_total",): 3,
        ("evictstream_partitions_lost_total",): 1,
        ("evictstream_loop_pause_seconds_bucket", "0.02"): 0,
        ("evictstream_loop_pause_seconds_bucket", "0.05"): 1,
        ("evictstream_transaction_duration_seconds_bucket", "0.01"): 1,
        ("evictstream_transaction_duration_seconds_bucket", "0.1"): 1,
        ("evictstream_transaction_duration_seconds_bucket", "+Inf"): 2,
        ("evictstream_transaction_duration_seconds_sum",): 0.506,
    }
    assert {name: seen[name] for name in wanted} == wanted


def test_buckets_of_lateness_are_ascending() -> None:
    assert list(LATENESS_BOUNDS_SECONDS) == sorted(set(LATENESS_BOUNDS_SECONDS))
