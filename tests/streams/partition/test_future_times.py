"""Append times from the future count as now: for heartbeats, orders to forget, and windows, stored ones too."""

from __future__ import annotations

import collections

from evictstream.models.eviction import RowKind, row_key
from evictstream.models.instants import SECOND_US
from evictstream.streams.partition.eviction_partition import EvictionPartition
from tests.streams.worker.story import NOON_US, TAINT, FakeRecord, Story

DAY_US = 86_400 * SECOND_US
SILENCE_SECONDS = 60


class Ahead(Story):
    """A story some of whose records get append times that are a day ahead."""

    def __init__(self, brokers_ahead_us: int = 0) -> None:
        super().__init__()
        self.is_ahead = False
        self.logic = EvictionPartition(0, self.config, brokers_now_us=lambda: self.now_us + brokers_ahead_us)

    def raw(self, at: float, topic: str, value: bytes, key: bytes = b"lab") -> None:
        self.now_us = NOON_US + round(at * SECOND_US)
        self.offset += 1
        appended_us = self.now_us + (DAY_US if self.is_ahead else 0)
        records = [FakeRecord(self.offset, appended_us // 1000, key, value)]
        collections.deque(self.logic.apply(topic, records, self.outbox), maxlen=0)

    def deadlines(self) -> list[float]:
        """Of all open evictions, seconds after noon."""
        found = [
            pod.eviction.due.deadline_us
            for node in self.logic.known_nodes()
            for pod in node.pods.values()
            if pod.eviction is not None
        ]
        return [(at_us - NOON_US) / SECOND_US for at_us in found]


def test_a_heartbeat_from_the_future_does_not_hide_silence() -> None:
    story = Ahead()
    story.is_ahead = True
    story.heartbeat(0)
    story.is_ahead = False
    story.node(1, TAINT)
    story.pod(SILENCE_SECONDS + 10, "a", None)
    story.fire(SILENCE_SECONDS + 10)
    assert story.logic.firing.waiting_for_feed


def test_a_cluster_forgotten_in_the_future_can_be_fed_again() -> None:
    story = Ahead()
    story.node(0, TAINT)
    story.is_ahead = True
    story.forget(1)
    story.is_ahead = False
    story.node(2, TAINT)
    story.pod(3, "a", 300)
    assert story.deadlines() == [303]


def test_a_window_that_begins_in_the_future_begins_now() -> None:
    story = Ahead()
    story.pod(0, "a", 300)
    story.is_ahead = True
    story.node(1, TAINT)
    assert story.deadlines() == [301]


def test_the_gate_is_closed_until_clocks_are_known() -> None:
    story = Ahead()
    story.is_ahead = True
    story.heartbeat(0)
    assert story.logic.clock_objection() is not None
    story.now_us += 11 * SECOND_US
    assert story.logic.clock_objection() is None


def test_a_worker_behind_its_brokers_caps_nothing() -> None:
    """What it stored would be early to the next owner."""
    story = Ahead(brokers_ahead_us=DAY_US)
    story.pod(0, "a", 300)
    story.is_ahead = True
    story.node(1, TAINT)
    assert story.deadlines() == [301 + 86_400]


def test_stored_times_from_the_future_are_capped_when_loaded() -> None:
    story = Ahead(brokers_ahead_us=DAY_US)  # nothing is capped yet
    story.is_ahead = True
    story.heartbeat(0)
    story.node(1, TAINT)
    story.pod(1, "a", 300)
    again = Ahead()
    again.now_us = story.now_us
    for key, value in story.outbox.rows.items():
        again.logic.load(key, value)
    again.logic.loaded()
    collections.deque(again.logic.caught_up(again.now_us, again.outbox), maxlen=0)
    assert again.deadlines() == [301]
    assert row_key(RowKind.POD, "lab/n", "a") in again.outbox.rows
    again.fire(SILENCE_SECONDS + 302)
    assert again.logic.firing.waiting_for_feed
