"""One object that cannot be read costs no other object anything: in lists, in watches, in questions for a version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.kit.conformance.fake_faults import deep
from evictstream.streams.feed.cluster_feed import ClusterFeed
from evictstream.streams.settings import Settings
from tests.harness.known_cluster import KnownCluster
from tests.streams.feed.feeding import assert_told, feeding, listed, wait_for

pytestmark = pytest.mark.usefixtures("_short_watches")

UNREADABLE: dict[str, Any] = {"labels": ["no labels"]}
"""Metadata of another type than Kubernetes has."""


def nested(levels: int) -> dict[str, Any]:
    return {"managedFields": [{"fieldsV1": deep(levels)}]}


def written(feed: ClusterFeed) -> int:
    return sum(feed.counts["Pod"].events.values())


@pytest.mark.parametrize("levels", [*(pytest.param(few, marks=pytest.mark.kit) for few in (990, 1_500)), 9_995])
def test_objects_of_any_depth_are_fed(levels: int, declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    api.put("Pod", "deep", spec={"nodeName": "n-1"}, metadata=nested(levels))
    api.put(
        "Node", "n-0", spec={}, metadata=nested(levels)
    )  # the first of the list, with which etcd's version is asked
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        before = written(feed)
        api.put("Pod", "deeper", spec={"nodeName": "n-2"}, metadata=nested(levels))
        api.put("Pod", "after", spec={"nodeName": "n-2"})
        wait_for(lambda: written(feed) == before + 2)
        assert feed.counts["Pod"].broken == feed.counts["Pod"].unread == 0
        assert feed.is_proven
    assert_told(declared, api)


@pytest.mark.kit
def test_a_listed_object_that_cannot_be_read_stays_known(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
    api.put("Pod", "n-1-a", metadata=UNREADABLE)
    api.put("Node", "n-2", status={"conditions": "none"})
    api.put("Pod", "new", spec={"nodeName": "n-2"})
    api.forget_history()
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        assert (feed.counts["Pod"].unread, feed.counts["Node"].unread) == (1, 1)
    assert_told(declared, api)


def test_a_watch_passes_over_what_it_cannot_read_twice(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.put("Pod", "n-1-a", metadata=UNREADABLE)
        api.put("Pod", "after", spec={"nodeName": "n-2"})
        wait_for(lambda: feed.counts["Pod"].events["ADDED"] == 5)
        assert (feed.counts["Pod"].broken, feed.counts["Pod"].unread) == (2, 1)
        api.remove("Pod", "n-1-a")
        wait_for(lambda: feed.counts["Pod"].events["DELETED"] == 1)
        listings = feed.counts["Pod"].listings
        wait_for(lambda: feed.is_proven)
    assert listings == 1
    assert_told(declared, api)


def test_a_line_that_says_nothing_has_the_kind_listed(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.trouble["watch pods"] = ["garbage", "garbage"]
        api.end_watches()
        api.put("Pod", "new", spec={"nodeName": "n-1"})
        listed(feed, 1)
        wait_for(lambda: feed.counts["Pod"].listings == 2)
    assert feed.counts["Pod"].broken == 2
    assert_told(declared, api)


def test_nothing_is_proven_while_a_line_is_outstanding(declared: Settings, api: FakeApi, tmp_path: Path) -> None:
    with feeding(declared, api, tmp_path) as feed:
        listed(feed)
        api.put("Pod", "n-1-a", metadata=UNREADABLE)
        api.trouble["watch pods"] = [500] * 1_000
        wait_for(lambda: not feed.is_proven)
        assert feed.counts["Pod"].unread == 0
        api.trouble.clear()
        wait_for(lambda: feed.is_proven)
        assert feed.counts["Pod"].unread == 1
    assert set(KnownCluster(declared, "lab").epochs) == {0}
