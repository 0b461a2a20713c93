"""`evictstream feed` beside a real control plane: whatever happens to it, the topics say what the cluster holds."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.e2e.api_client import ApiClient
from tests.e2e.control_plane import ControlPlane
from tests.e2e.hollow_nodes import HollowNodes
from tests.e2e.objects import NODES, pod, pods, taint
from tests.harness.known_cluster import KnownCluster

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

RIGHTS = Path(__file__).parents[2] / "deploy" / "kubernetes" / "feed.yaml"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
NAMES = ("n-0", "n-1", "n-2")
PATIENCE_SECONDS = 90.0


@contextlib.contextmanager
def feeding(settings: Settings, plane: ControlPlane) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {
        "EVICTSTREAM_BOOTSTRAP_SERVERS": str(settings.bootstrap_servers),
        "EVICTSTREAM_TOPIC_PREFIX": settings.topic_prefix,
        "EVICTSTREAM_APPLICATION_ID": settings.application_id,
        "EVICTSTREAM_PARTITIONS": str(settings.partitions),
    }
    command = [sys.executable, "-m", "evictstream.streams.cli.main", "feed"]
    process = subprocess.Popen(
        [*command, "--cluster", "lab=feed", "--kubeconfig", str(plane.kubeconfig)], env=environment
    )
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def grant(client: ApiClient) -> None:
    """Give the user `feed` what deploy/kubernetes/feed.yaml grants, and no more."""
    role, binding = (
        next(one for one in yaml.safe_load_all(RIGHTS.read_text()) if one["kind"] == kind)
        for kind in ("ClusterRole", "ClusterRoleBinding")
    )
    client.create(ROLES, role)
    user = {"kind": "User", "name": "feed", "apiGroup": "rbac.authorization.k8s.io"}
    client.create(BINDINGS, binding | {"subjects": [user]})


def held(client: ApiClient) -> set[str]:
    return {one["metadata"]["uid"] for path in (NODES, "/api/v1/pods") for one in client.items(path)}


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.5)


def test_topics_say_what_the_cluster_holds(tmp_path: Path, settings: Settings) -> None:
    declare_topics(settings)

    def is_told() -> bool:
        return set(KnownCluster(settings, "lab").objects) == held(client)

    with ControlPlane(tmp_path / "plane", taint_eviction=False, users=["feed"]) as plane:
        client = plane.client()
        grant(client)
        with HollowNodes(client) as nodes:
            nodes.add(NAMES)
            nodes.wait_ready(NAMES)
            for name in NAMES:
                for number in range(3):
                    client.create(pods(), pod(f"{name}-{number}", name))
            with feeding(settings, plane):
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
            with feeding(settings, plane):
                wait_until(is_told)
        assert KnownCluster(settings, "lab").epochs == {0}


def test_a_restored_etcd_begins_an_epoch(tmp_path: Path, settings: Settings) -> None:
    declare_topics(settings)
    with ControlPlane(tmp_path / "plane", taint_eviction=False, users=["feed"]) as plane:
        client = plane.client()
        grant(client)
        client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n-0"}})
        client.create(pods(), pod("before", "n-0"))
        plane.stop()
        shutil.copytree(plane.data, tmp_path / "backup")
        plane.start()
        with feeding(settings, plane):
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
