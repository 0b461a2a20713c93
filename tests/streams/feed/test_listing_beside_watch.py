"""A day after the last listing a kind is listed again, while its watch goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.streams.broker.admin import declare_topics, kept_seconds
from evictstream.streams.feed import cluster_feed, progress
from evictstream.streams.settings import Settings
from tests.conftest import MakeSettings
from tests.streams.feed.clocks import StandingClock
from tests.streams.feed.feeding import RELIST_SECONDS, assert_told, feeding, listed, wait_for
from tests.streams.feed.reading import read_one

pytestmark = pytest.mark.usefixtures("_short_watches")

SLOW_SECONDS = 4.0
"""Of a listing: more than a proof lasts here."""


@pytest.fixture
def _quick_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_feed, "PROOF_SECONDS", 3.0)
    monkeypatch.setattr(progress, "PROOF_SECONDS", 3.0)
    monkeypatch.setattr(cluster_feed, "_HEARTBEAT_SECONDS", 0.2)


def _versions(settings: Settings) -> Iterator[tuple[str, int]]:
    for record in read_one(settings, settings.pods_topic):
        value = json.loads(record.value or b"")
        if value["type"] in {"ADDED", "MODIFIED", "DELETED"}:
            meta = value["object"]["metadata"]
            yield meta["uid"], int(meta["resourceVersion"])


@pytest.mark.usefixtures("_quick_proofs")
def test_a_slow_listing_holds_back_neither_watch_nor_heartbeats(
    declared: Settings, api: FakeApi, tmp_path: Path
) -> None:
    standing = StandingClock()
    with feeding(declared, api, tmp_path, clock=lambda: standing.seconds) as feed:
        listed(feed)
        before = sum(one == "list pods" for one in api.requests)
        api.trouble["list pods"] = [Fault(delay_seconds=SLOW_SECONDS)]
        standing.seconds += RELIST_SECONDS
        wait_for(lambda: sum(one == "list pods" for one in api.requests) > before)
        began, beats = time.monotonic(), feed.heartbeats
        written = feed.counts["Pod"].events
        api.remove("Pod", "n-1-a")
        api.put("Pod", "n-2-a", spec={"nodeName": "n-2", "tolerations": [{"key": "k", "operator": "Exists"}]})
        api.put("Pod", "new", spec={"nodeName": "n-1"})
        wait_for(lambda: written["DELETED"] == 1 and written["MODIFIED"] >= 1)
        assert feed.counts["Pod"].listings == 1
        while feed.counts["Pod"].listings == 1:
            assert feed.is_proven
            time.sleep(0.02)
        assert time.monotonic() - began > SLOW_SECONDS - 1.5
        assert feed.heartbeats > beats + 3
        wait_for(lambda: feed.counts["Node"].listings == 2)
    assert_told(declared, api)
    newest: dict[str, int] = {}
    for uid, version in _versions(declared):
        assert version >= newest.get(uid, 0)
        newest[uid] = version


def test_the_topics_hold_a_second_whole_listing(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    standing = StandingClock()
    with feeding(declared, api, tmp_path, clock=lambda: standing.seconds) as feed:
        listed(feed)
        standing.seconds += RELIST_SECONDS
        listed(feed, times=2)
    for topic, count in ((declared.nodes_topic, 2), (declared.pods_topic, 4)):
        types = [json.loads(record.value or b"")["type"] for record in read_one(declared, topic)]
        changes = [one for one in types if one in {"ADDED", "LISTED"}]
        assert changes.count("ADDED") == 2 * count
        assert changes.count("LISTED") == 2


@pytest.mark.parametrize(("hours", "seconds"), [(168.0, 604_800.0), (0.5, 1_800.0)])
def test_how_long_topics_keep_is_what_kafka_says(hours: float, seconds: float, make_settings: MakeSettings) -> None:
    settings = make_settings(input_retention_hours=hours)
    declare_topics(settings)
    assert kept_seconds(settings, [settings.nodes_topic, settings.pods_topic]) == seconds
