"""Watches that show nothing while etcd goes on, and lists of which a page is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import Fault
from evictstream.streams.feed import cluster_feed, kind_feed, list_reader, progress
from evictstream.streams.settings import Settings
from tests.streams.feed.feeding import assert_told, feeding, listed, wait_for

pytestmark = pytest.mark.usefixtures("_short_watches")


@pytest.fixture
def _quick_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_feed, "PROOF_SECONDS", 3.0)
    monkeypatch.setattr(progress, "PROOF_SECONDS", 3.0)
    monkeypatch.setattr(cluster_feed, "_HEARTBEAT_SECONDS", 0.2)


@pytest.mark.usefixtures("_quick_proofs")
def test_a_watch_that_stands_still_is_listed_again(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.stuck["pods"] = api.version
        api.remove("Pod", "n-1-a")
        api.put("Pod", "new", spec={"nodeName": "n-1"})
        wait_for(lambda: feed.counts["Pod"].listings == 2)
        assert feed.counts["Node"].listings == 1
        assert not feed.is_proven
        api.stuck.clear()
        api.put("Node", "n-1")
        wait_for(lambda: feed.is_proven)
    assert_told(declared, api)


@pytest.mark.usefixtures("_quick_proofs")
def test_a_watch_that_stands_still_proves_nothing(
    declared: Settings, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind_feed, "LISTING_SHARE", 1_000_000)  # so that it is not listed again
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.stuck["pods"] = api.version
        api.put("Pod", "new", spec={"nodeName": "n-1"})
        wait_for(lambda: not feed.is_proven)
        before = feed.heartbeats
        time.sleep(1.0)  # in which nothing may happen
        assert feed.heartbeats == before


@pytest.mark.usefixtures("_quick_proofs")
def test_a_quiet_kind_is_proven_by_bookmarks(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        until = time.monotonic() + 4.0  # more than a proof lasts
        while time.monotonic() < until:
            api.put("Node", "n-1")
            time.sleep(0.1)
            assert feed.is_proven
        assert feed.counts["Pod"].listings == 1


def test_a_refused_page_is_asked_for_again(
    declared: Settings, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_reader, "PAGE_OBJECTS", 10)
    for number in range(96):
        api.put("Pod", f"pod-{number}", spec={"nodeName": "n-1"})
    api.trouble["list pods"] = [Fault(), 503, Fault(status=429, retry_after_seconds=1), "cut", Fault(), 500]
    began = time.monotonic()
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        assert time.monotonic() - began > 1.0
        assert sum(one == "list pods" for one in api.requests) == 10 + 4
        assert feed.counts["Pod"].events["ADDED"] < 100 + 10  # some twice, of the page that was cut
    assert_told(declared, api)


def test_a_token_that_has_expired_begins_the_listing_again(
    declared: Settings, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_reader, "PAGE_OBJECTS", 2)
    api.trouble["list pods"] = [Fault(), 410]
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        assert sum(one == "list pods" for one in api.requests) == 2 + 2
    assert_told(declared, api)
