"""A feed of a real Kafka tells what a ClusterProfile says, and what the feed before has read while its hub is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.feed import cluster_feed
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.settings import Settings
from tests.harness.reading import TopicReader
from tests.streams.feed.feeding import wait_for
from tests.streams.feed.test_cluster_profile import KNOWN, PLACE, PROFILE
from tests.streams.feed.test_fleet import access, fleet

pytestmark = pytest.mark.usefixtures("_short_watches")


def told(settings: Settings) -> list[dict[str, Any]]:
    """The heartbeats on nodes, in order."""
    reader = TopicReader(settings, settings.nodes_topic)
    found = [one.value for one in reader.to_end() if one.value["type"] == "HEARTBEAT"]
    reader.close()
    return found


@pytest.mark.kit
def test_labels_of_a_profile_outlast_hub_and_feed(
    declared: Settings, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_feed, "_HEARTBEAT_SECONDS", 0.2)
    flags = {"tier": "iron"}
    of_hub = ClusterAccess(kubeconfig=str(tmp_path / "hub"))
    options = {"labels": flags, "profiles": {"lab": PLACE}, "hub": of_hub}
    lab = access(api, tmp_path, "lab")
    with FakeApi() as hub:
        hub.profile_versions, hub.profiles = {"v1alpha1"}, {str(PLACE): PROFILE}
        (tmp_path / "hub").write_text(hub.kubeconfig())
        with fleet(declared, options, lab=lab):
            # Between two heartbeats the feed keeps what it has read.
            wait_for(lambda: sum("clusterProfile" in one for one in told(declared)) > 1)
    before = told(declared)
    with fleet(declared, options, lab=lab):
        wait_for(lambda: len(told(declared)) > len(before))
    found = told(declared)
    first = next(number for number, one in enumerate(found) if "clusterProfile" in one)
    assert [one["clusterLabels"] for one in found[:first]] == [flags] * first
    named = {"namespace": "fleet", "name": "lab-eu", "manager": "hubs"}
    assert [one.get("clusterProfile") for one in found[first:]] == [named] * (len(found) - first)
    assert [one["clusterLabels"] for one in found[first:]] == [KNOWN | flags] * (len(found) - first)
