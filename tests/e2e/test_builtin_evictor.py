"""The control plane of these tests does what clusters do: upstream's own evictor, on and off."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.api_client import ApiClient, RefusedError
from tests.e2e.control_plane import NODE_CONTROLLER, QUICK_NODE_MONITOR, SHORT_DEFAULT_TOLERATIONS, ControlPlane
from tests.e2e.hollow_nodes import HollowNodes
from tests.e2e.objects import NODES, pod, pods, taint, tolerates

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

NAMES = ("n-0", "n-1", "n-2")
MAINTENANCE = "example.com/maintenance"
PATIENCE_SECONDS = 30.0
UNREACHABLE_AND_OVER_SECONDS = 5.0 + 5.0 + 2.0  # the monitor's grace, the toleration, a pass of each controller


def alive(client: ApiClient) -> set[str]:
    return {each["metadata"]["name"] for each in client.items(pods()) if "deletionTimestamp" not in each["metadata"]}


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


def start_pods(client: ApiClient, nodes: HollowNodes) -> None:
    nodes.add(NAMES)
    nodes.wait_ready(NAMES)
    for name in NAMES:
        client.create(pods(), pod(f"{name}-plain", name))
        client.create(pods(), pod(f"{name}-tolerant", name, tolerations=[tolerates(MAINTENANCE)]))


def test_builtin_evictor_deletes_what_does_not_tolerate(tmp_path: Path) -> None:
    with ControlPlane(tmp_path / "plane", taint_eviction=True) as plane:
        client = plane.client()
        with HollowNodes(client) as nodes:
            start_pods(client, nodes)
            client.patch(f"{NODES}/n-1", {"spec": {"taints": [taint(MAINTENANCE)]}})
            wait_for(lambda: len(client.items(pods())) == 5)  # gone altogether, not only terminating
            assert alive(client) == {f"{name}-{kind}" for name in NAMES for kind in ("plain", "tolerant")} - {
                "n-1-plain"
            }
        deletes = [each for each in plane.deletes() if each["user"]["username"] == NODE_CONTROLLER]
        assert [each["objectRef"]["name"] for each in deletes] == ["n-1-plain"]


def test_dead_node_keeps_its_pods_without_an_evictor(tmp_path: Path) -> None:
    with ControlPlane(
        tmp_path / "plane",
        taint_eviction=False,
        users=["feed"],
        apiserver_flags=SHORT_DEFAULT_TOLERATIONS,
        controller_manager_flags=QUICK_NODE_MONITOR,
    ) as plane:
        client = plane.client()
        with HollowNodes(client) as nodes:
            start_pods(client, nodes)
            everything = alive(client)
            nodes.silence(["n-2"])
            unreachable = {"node.kubernetes.io/unreachable"}
            wait_for(
                lambda: (
                    {
                        each["key"]
                        for each in client.get(f"{NODES}/n-2")["spec"].get("taints", ())
                        if each["effect"] == "NoExecute"
                    }
                    == unreachable
                )
            )
            time.sleep(UNREACHABLE_AND_OVER_SECONDS)  # nothing may happen in it
            assert alive(client) == everything
        with pytest.raises(RefusedError, match="403 Forbidden"):
            plane.client("feed").items(NODES)  # nobody has bound a role to this user
        assert plane.deletes() == []
