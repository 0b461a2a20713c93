"""`evictstream feed` beside a real control plane: whatever happens to it, the topics say what the cluster holds."""

from __future__ import annotations

import contextlib
import json
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
from tests.harness.reading import TopicReader

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

NAMES = ("n-0", "n-1", "n-2")

QUIET_SECONDS = 90
"""Twice as long as a proof lasts."""


def held(client: ApiClient) -> set[str]:
    return {one["metadata"]["uid"] for path in (NODES, "/api/v1/pods") for one in client.items(path)}


def listings(settings: Settings) -> int:
    """Count the complete listings of both kinds, each of which is one record here."""
    count = 0
    for topic in (settings.nodes_topic, settings.pods_topic):
        reader = TopicReader(settings, topic)
        count += sum(record.value["type"] == "LISTED" for record in reader.to_end())
        reader.close()
    return count


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


def test_a_quiet_cluster_stays_proven(tmp_path: Path, settings: Settings) -> None:
    """Without progress notifications of etcd, which come each ten minutes by default."""
    declare_topics(settings)
    with ControlPlane(tmp_path / "plane", taint_eviction=False, users=["feed"]) as plane:
        client = plane.client()
        grant(client, "feed.yaml", "feed")
        client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0"}})
        client.create(pods(), pod("quiet", "n-0"))
        with feed(settings, plane):
            wait_until(lambda: listings(settings) == 2)
            until = time.monotonic() + QUIET_SECONDS
            while time.monotonic() < until:
                client.patch("/api/v1/namespaces/default", {"metadata": {"labels": {"at": str(int(time.time()))}}})
                time.sleep(1)
            assert listings(settings) == 2
            assert KnownCluster(settings, "lab").heartbeats >= QUIET_SECONDS // 15 * 2


def test_absurd_pods_of_a_tenant_cost_no_other(tmp_path: Path, settings: Settings) -> None:
    declare_topics(settings)
    with ControlPlane(tmp_path / "plane", taint_eviction=False, users=["feed"]) as plane:
        client = plane.client()
        grant(client, "feed.yaml", "feed")
        client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0"}})
        for levels in (990, 1_500, 9_900):
            create_deep(client, f"deep-{levels}", levels)
        for number in range(12):
            large = pod(f"large-{number}", "n-0")
            large["spec"]["containers"][0]["env"] = [{"name": "A", "value": "<" * 1_100_000}]  # six times that as JSON
            client.create(pods(), large)
        with feed(settings, plane):
            wait_until(lambda: listings(settings) == 2)
            create_deep(client, "deep-later", 9_900)
            client.create(pods(), pod("usual", "n-0"))
            client.delete(f"{pods()}/large-0", grace_seconds=0)
            wait_until(lambda: len(KnownCluster(settings, "lab").objects) == 1 + 3 + 11 + 2)


def create_deep(client: ApiClient, name: str, levels: int) -> None:
    """Create a pod whose managed fields, which any writer may send, are so deep."""
    fields = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": "@"}
    found = pod(name, "n-0")
    found["metadata"]["managedFields"] = [fields | {"time": "2026-11-21T02:15:53Z"}]
    deep = b'{"f:a":' * levels + b"{}" + b"}" * levels
    with contextlib.suppress(RecursionError):  # of the client of this test, which reads the answer
        client.create(pods(), json.dumps(found).encode().replace(b'"@"', deep))
