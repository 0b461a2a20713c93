"""What upstream's node lifecycle controller does about silent nodes, version by version (docs/semantics.md 7.3)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.api_client import ApiClient
from tests.e2e.binaries import CONTROL_PLANE
from tests.e2e.control_plane import QUICK_NODE_MONITOR, ControlPlane
from tests.e2e.hollow_nodes import HollowNodes
from tests.e2e.objects import LEASES, NODES
from tests.e2e.processes import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

NAMES: Final = ("n-0", "n-1", "n-2", "n-3")
SILENT_SECONDS: Final = 5.0  # QUICK_NODE_MONITOR
ROUNDS: Final = 12.0  # seconds, and so about as many rounds


def reads_live_leases() -> bool:
    """Whether this version has the gate `NodeControllerLeaseCircuitBreaker`, which is on."""
    return not CONTROL_PLANE.version().startswith("v1.36.")


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane that notices a dead node after 5 s."""
    with ControlPlane(tmp_path / "plane", taint_eviction=False, controller_manager_flags=QUICK_NODE_MONITOR) as started:
        yield started


def is_unreachable(client: ApiClient, name: str) -> bool:
    taints = client.get(f"{NODES}/{name}")["spec"].get("taints", ())
    return any(each["key"] == "node.kubernetes.io/unreachable" for each in taints)


def test_each_round_reads_the_lease_of_a_dead_node(plane: ControlPlane) -> None:
    with HollowNodes(plane.client()) as nodes:
        nodes.add(NAMES)
        nodes.wait_ready(NAMES)
        before = len(plane.lease_reads())
        nodes.silence(["n-3"])
        wait_until(lambda: is_unreachable(plane.client(), "n-3"))
        time.sleep(ROUNDS)  # in which it is dead, and judged in each round
        reads = plane.lease_reads()[before:]
        assert set(reads) <= {"n-3"}
        if reads_live_leases():
            assert len(reads) >= ROUNDS / 2
        else:
            assert not reads


def test_lease_changed_without_renewal_hides_a_dead_node(plane: ControlPlane) -> None:
    """Since 1.37, until the controller manager restarts; a node beside it is judged as ever."""
    client = plane.client()
    with HollowNodes(client) as nodes:
        nodes.add(NAMES)
        nodes.wait_ready(NAMES)
        nodes.silence(["n-2", "n-3"])
        time.sleep(1.0)  # a beat that was under way
        client.patch(f"{LEASES}/n-3", {"metadata": {"annotations": {"example.com/touched": "yes"}}})
        wait_until(lambda: is_unreachable(client, "n-2"))
        time.sleep(ROUNDS)  # in which it would be noticed
        assert is_unreachable(client, "n-3") is not reads_live_leases()
        plane.controller_manager.stop()
        plane.controller_manager.start()
        wait_until(lambda: is_unreachable(client, "n-3"))
