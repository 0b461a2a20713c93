"""A feed of a fake API server into a real Kafka: what the topics say at the end is what the cluster holds."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.conformance.fake_api import FakeApi
from evictstream.streams.conformance.fake_faults import Fault
from evictstream.streams.errors import ClusterNameTakenError
from evictstream.streams.feed import kind_feed
from evictstream.streams.feed.cluster_feed import ClusterFeed
from evictstream.streams.feed.publisher import open_publisher
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from tests.harness.known_cluster import KnownCluster

PATIENCE_SECONDS = 60.0


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as found:
        for node in ("n-1", "n-2"):
            found.put("Node", node, spec={})
            for letter in "ab":
                found.put("Pod", f"{node}-{letter}", spec={"nodeName": node})
        yield found


@pytest.fixture
def declared(settings: Settings) -> Settings:
    declare_topics(settings)
    return settings


@pytest.fixture(autouse=True)
def _short_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind_feed, "WATCH_SECONDS", 1.0)


@contextlib.contextmanager
def feeding(settings: Settings, api: FakeApi, folder: Path, *, new_epoch: bool = False) -> Iterator[ClusterFeed]:
    file = folder / "kubeconfig"
    file.write_text(api.kubeconfig())
    with open_publisher(settings, also=[settings.feeds_topic]) as publisher:
        feed = ClusterFeed(
            "lab",
            ClusterAccess(kubeconfig=str(file)),
            settings=settings,
            publisher=publisher,
            keep_whole=False,
            new_epoch=new_epoch,
        )
        feed.start()
        try:
            yield feed
        finally:
            feed.stop()
            feed.join(PATIENCE_SECONDS)
            publisher.flush()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def listed(feed: ClusterFeed, times: int = 1) -> None:
    wait_for(lambda: all(counts.listings >= times for counts in feed.counts.values()))
    wait_for(lambda: feed.heartbeats >= times)


def assert_told(settings: Settings, api: FakeApi) -> KnownCluster:
    known = KnownCluster(settings, "lab")
    held = {one["metadata"]["uid"] for one in api.objects.values() if one.get("spec", {}).get("nodeName") != ""}
    assert set(known.objects) == held
    return known


def test_what_is_there_and_what_changes(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.put("Node", "n-3", spec={"taints": [{"key": "k", "effect": "NoExecute"}]})
        api.put("Pod", "later", spec={"nodeName": "n-3"})
        api.put("Pod", "unbound", spec={"nodeName": ""})
        api.remove("Pod", "n-1-a")
        wait_for(lambda: feed.counts["Pod"].events["DELETED"] == 1 and feed.counts["Node"].events["ADDED"] == 3)
    known = assert_told(declared, api)
    assert known.heartbeats >= 2 * declared.partitions
    assert feed.failure is None


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param({"list pods": [500, 503]}, id="lists-refused"),
        pytest.param({"list pods": ["cut"], "list nodes": [429]}, id="list-cut"),
        pytest.param({"watch pods": ["cut"]}, id="watch-cut-in-an-object"),
        pytest.param({"watch pods": ["half"]}, id="watch-ended-in-an-object"),
        pytest.param({"watch pods": ["error"]}, id="410-as-event"),
        pytest.param({"watch pods": [410], "watch nodes": [410]}, id="410-as-status"),
        pytest.param({"watch pods": ["garbage"]}, id="a-line-that-is-none"),
        pytest.param({"watch pods": [500, 401, 403]}, id="watches-refused"),
    ],
)
def test_trouble_of_the_api_server_loses_nothing(
    trouble: dict[str, list[int | str | Fault]], declared: Settings, api: FakeApi, tmp_path: Path
) -> None:
    lines_that_are_none = trouble.get("watch pods", []).count("garbage")
    api.trouble = trouble
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.put("Pod", "new", spec={"nodeName": "n-1"})
        api.remove("Pod", "n-2-b")
        wait_for(lambda: not any(trouble.values()))
        watches = api.watches("pods")
        api.put("Pod", "newer", spec={"nodeName": "n-2"})
        wait_for(lambda: api.watches("pods") >= watches + 2)
    assert_told(declared, api)
    assert feed.counts["Pod"].broken == lines_that_are_none


def test_what_vanished_while_the_feed_was_away(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    api.remove("Pod", "n-1-a")
    api.remove("Node", "n-2")
    api.remove("Pod", "n-2-a")
    moved = api.objects["Pod", "n-2-b"]["metadata"]["uid"]
    api.remove("Pod", "n-2-b")
    api.put("Pod", "n-2-b", spec={"nodeName": "n-1"})
    api.forget_history()
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    known = assert_told(declared, api)
    assert moved not in known.objects


def test_a_quiet_watch_that_cannot_be_opened_again_stops_heartbeats(
    declared: Settings, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evictstream.streams.feed.cluster_feed.PROOF_SECONDS", 3.0)
    monkeypatch.setattr("evictstream.streams.feed.cluster_feed.HEARTBEAT_SECONDS", 0.2)
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.trouble = {"watch pods": [500] * 1_000}
        wait_for(lambda: not feed.is_proven)
        before = feed.heartbeats
        time.sleep(1.0)
        assert feed.heartbeats == before
        api.trouble.clear()
        wait_for(lambda: feed.heartbeats > before)


@pytest.mark.parametrize("uid", [None, "another-cluster"])
def test_versions_that_go_back_begin_an_epoch(
    uid: str | None, declared: Settings, api: FakeApi, tmp_path: Path
) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        kept = api.objects["Pod", "n-1-a"]["metadata"]["uid"]
        api.rebuild(uid=uid)
        api.put("Node", "n-1", spec={})
        api.put("Pod", "n-1-a", uid=kept, spec={"nodeName": "n-1"})
        listed(feed, 2)
    assert assert_told(declared, api).epochs == {0, 1}
    assert feed.epochs == 1


def test_versions_that_went_back_but_not_behind_what_was_kept(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    """What counts is how far the watches came; it is kept with each heartbeat only."""
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        restored = api.version + 1
        for number in range(20):
            api.put("Pod", f"new-{number}", spec={"nodeName": "n-1"})
        wait_for(lambda: feed.counts["Pod"].events["ADDED"] == 24)
        assert feed.heartbeats == 1
        api.rebuild(version=restored)
        api.put("Node", "n-1", spec={})
        api.end_watches()
        listed(feed, 2)
    assert assert_told(declared, api).epochs == {0, 1}


def test_versions_that_went_back_while_the_feed_was_away(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    api.rebuild()
    api.put("Node", "n-1", spec={})
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    assert assert_told(declared, api).epochs == {0, 1}


def test_a_name_of_another_cluster_is_refused(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    api.uid = "another"
    with feeding(declared, api, tmp_path) as feed:
        wait_for(lambda: feed.failure is not None)
    assert isinstance(feed.failure, ClusterNameTakenError)
    with feeding(declared, api, tmp_path, new_epoch=True) as feed:
        listed(feed)
    assert assert_told(declared, api).epochs == {0, 1}


def test_a_second_feed_stands_by_until_the_first_one_ends(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as first:
        listed(first)
        with feeding(declared, api, tmp_path) as second:
            time.sleep(3.0)
            assert second.heartbeats == 0
            first.stop()
            first.join(PATIENCE_SECONDS)
            api.remove("Pod", "n-1-a")
            listed(second)
    assert_told(declared, api)
