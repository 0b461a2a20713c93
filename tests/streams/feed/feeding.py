"""Feeds of a fake API server in threads of the test, and what the topics have to say of them at the end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.feed.cluster_feed import ClusterFeed
from evictstream.streams.feed.publisher import open_publisher
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from tests.harness.known_cluster import KnownCluster

PATIENCE_SECONDS = 60.0
RELIST_SECONDS = 86_400.0


@contextlib.contextmanager
def feeding(
    settings: Settings,
    api: FakeApi,
    folder: Path,
    *,
    new_epoch: bool = False,
    labels: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[ClusterFeed]:
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
            relist_seconds=RELIST_SECONDS,
            labels=labels,
            clock=clock,
        )
        feed.start()
        try:
            yield feed
        finally:
            feed.stop()
            feed.join(PATIENCE_SECONDS)
            publisher.flush()


def wait_for(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    until = time.monotonic() + seconds
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
