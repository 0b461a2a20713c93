"""`evictstream feed` beside a real control plane: whatever happens to it, the topics say what the cluster holds."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.e2e.api_client import ApiClient
from tests.e2e.control_plane import ControlPlane
from tests.e2e.hollow_nodes import HollowNodes
from tests.e2e.objects import NODES, pod, pods, taint
from tests.e2e.processes import feed, grant, wait_until
from tests.harness.known_cluster import KnownCluster

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

NAMES = ("n-0", "n-1", "n-2")


def held(client: ApiClient) -> set[str]:
    return {one["metadata"]["uid"] for path in (NODES, "/api/v1/pods") for one in client.items(path)}


def test_topics_say_what_the_cluster_holds(tmp_path: Path, settings: Settings) -> None:
    declare_topics(settings)

    def is_told() -> bool:
        return set(KnownCluster(settings, "lab").objects) == held(client)

    with ControlPlane(tmp_path / "plane", taint_eviction=False, users=["feed"]) as plane:
        client = plane.client()
        grant(client, "feed.yaml", "feed")
        with HollowNodes(client) as nodes:
            nodes.add(NAMES)
            nodes.wait_ready(NAMES)
            for name in NAMES:
                for number in range(3):
                    client.create(pods(), pod(f"{name}-{number}", name))
            with feed(settings, plane):
                wait_until(is_told)
                client.patch(f"{NODES}/n-1", {"spec": {"taints": [taint("x")]}})
                plane.apiserver.kill()
                time.sleep(3)
                plane.start_apiserver()
                client.delete(f"{pods()}/n-0-0")
                client.create(pods(), pod("later", "n-0"))
                wait_until(is_told)
            client.delete(f"{pods()}/n-0-1")
            client.delete(f"{NODES}/n-2")
            client.create(pods(), pod("while-away", "n-1"))
            wait_until(lambda: len(client.items(pods())) == 9)
            with feed(settings, plane):
                wait_until(is_told)
        assert KnownCluster(settings, "lab").epochs == {0}


def test_a_restored_etcd_begins_an_epoch(tmp_path: Path, settings: Settings) -> None:
    declare_topics(settings)
    with ControlPlane(tmp_path / "plane", taint_eviction=False, users=["feed"]) as plane:
        client = plane.client()
        grant(client, "feed.yaml", "feed")
        client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0"}})
        client.create(pods(), pod("before", "n-0"))
        plane.stop()
        shutil.copytree(plane.data, tmp_path / "backup")
        plane.start()
        with feed(settings, plane):
            for number in range(20):
                client.create(pods(), pod(f"after-{number}", "n-0"))
            wait_until(lambda: set(KnownCluster(settings, "lab").objects) == held(client))
            plane.stop()
            shutil.rmtree(plane.data)
            shutil.copytree(tmp_path / "backup", plane.data)
            plane.start()
            client.create(pods(), pod("in-the-new-time", "n-0"))
            wait_until(lambda: set(KnownCluster(settings, "lab").objects) == held(client))
        known = KnownCluster(settings, "lab")
        assert known.epochs == {0, 1}
        assert len(known.objects) == 3
