"""The kit for feeds on a real Kafka: a naive feed is found out. That ours passes is in `test_command.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evictstream.kit.conformance.feed_play import FeedPlay
from evictstream.kit.conformance.feed_rules import FEED_RULES
from evictstream.kit.conformance.findings import judge_rules
from evictstream.kit.conformance.playground import open_playground
from evictstream.streams.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.kit]

NAIVE = [sys.executable, str(Path(__file__).with_name("naive_feed.py"))]


def test_a_naive_feed_is_found_out(settings: Settings) -> None:
    with open_playground(
        settings, ["nodes", "pods"], NAIVE, report=lambda _: None, is_stopped=lambda: False
    ) as playground:
        found = FeedPlay(playground, situation_seconds=3.0, listing_seconds=4.0, silent_seconds=5.0).run()
    standings = {one.name: one.standing.value for one in judge_rules(FEED_RULES, found)}
    assert {name for name, standing in standings.items() if standing == "BROKEN"} == {
        "readable",
        "kind",
        "keys",
        "listing",
        "heartbeats",
        "silence",
        "changes",
        "cut",
        "half-line",
        "garbage",
        "error-event",
        "no-errors",
        "forgotten",
        "away",
        "epoch",
        "not-cached",
        "cluster-uid",
        "stops",
    }
    assert {name for name, standing in standings.items() if standing == "not shown"} == {"listed"}
