"""A feed of a real Kafka tells what a ClusterProfile says, and what the feed before has read while its hub is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.feed import cluster_feed
from evictstream.streams.feed.cluster_profile import FollowedProfile
from evictstream.streams.feed.profile_reader import ProfileReader
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from tests.harness.reading import TopicReader
from tests.streams.feed.feeding import feeding, listed, wait_for
from tests.streams.feed.test_cluster_profile import KNOWN, PLACE, PROFILE

pytestmark = pytest.mark.usefixtures("_short_watches")


def told(settings: Settings) -> list[dict[str, Any]]:
    """The heartbeats on nodes, in order."""
    reader = TopicReader(settings, settings.nodes_topic)
    found = [one.value for one in reader.to_end() if one.value["type"] == "HEARTBEAT"]
    reader.close()
    return found


def test_labels_of_a_profile_outlast_hub_and_feed(
    declared: Settings, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_feed, "_HEARTBEAT_SECONDS", 0.2)
    flags = {"tier": "iron"}
    with FakeApi() as hub:
        hub.profile_versions, hub.profiles = {"v1alpha1"}, {str(PLACE): PROFILE}
        (tmp_path / "hub").write_text(hub.kubeconfig())
        access = ClusterAccess(kubeconfig=str(tmp_path / "hub"))
        first = FollowedProfile("lab", PLACE, flags)
        ProfileReader(access, [first], 300.0).look(first)
        with feeding(declared, api, tmp_path, labels=flags, profile=first) as feed:
            listed(feed)
            wait_for(lambda: feed.heartbeats >= 2)
    second = FollowedProfile("lab", PLACE, flags)
    reader = ProfileReader(access, [second], 300.0)
    reader.start()  # the hub is gone
    with feeding(declared, api, tmp_path, labels=flags, profile=second) as feed:
        wait_for(lambda: "no answer" in second.trouble)
        listed(feed)
    reader.stop()
    named = {"namespace": "fleet", "name": "lab-eu", "manager": "hubs"}
    assert len(found := told(declared)) >= 3
    assert [one["clusterProfile"] for one in found] == [named] * len(found)
    assert [one["clusterLabels"] for one in found] == [KNOWN | flags] * len(found)
