"""A tenant who may only create pods makes absurd ones: no pod of others is evicted late, on a real control plane."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from evictstream.streams.settings import Settings
from tests.e2e.fleet import KEY, NAMES, Fleet, evicting
from tests.e2e.objects import pod, pods, tolerates
from tests.e2e.processes import wait_until
from tests.e2e.tenant import HARM, LEVELS, TENANT, admit, attack
from tests.harness.known_cluster import KnownCluster

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

TAINTED: Final = NAMES[:3]
TOLERATED_SECONDS: Final = 6
LATE_SECONDS: Final = 5.0
"""From deadline to delete. API server, Kafka and the product's three processes share two cores."""

LEAVE_TOO: Final = ("an object too deep", "a page too large", "an affinity larger than a record")
"""Harm whose own pods tolerate nothing, and so are evicted like all others."""


@pytest.fixture(autouse=True)
def _reads_what_is_deep() -> Iterator[None]:
    """The tests' own clients read whatever the API server answers."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(5 * LEVELS)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize("how", HARM)
def test_a_tenants_pods_make_nothing_of_others_late(how: str, tmp_path: Path, settings: Settings) -> None:
    with evicting(settings, tmp_path, users=[TENANT]) as fleet:
        admit(fleet.client)
        tenant = fleet.plane.client(TENANT)
        due_after: dict[str, int] = {}
        fed(fleet, settings, victims(fleet, "before", due_after))
        attack(tenant, how, TAINTED[0], "seen")  # by the watches of a feed that runs
        fed(fleet, settings, victims(fleet, "behind", due_after))
        fleet.feed.kill_and_start()  # the next one lists what the tenant has made
        fed(fleet, settings, victims(fleet, "listed", due_after))

        tainted_at = {}
        for node in TAINTED:
            fleet.taint(node, KEY)
            tainted_at[node] = dt.datetime.now(dt.UTC)
        wait_until(lambda: fleet.alive().isdisjoint(due_after))

        late: dict[str, float] = {}
        for deleted in fleet.plane.deletes():
            name = deleted["objectRef"]["name"]
            if name in due_after and deleted["user"]["username"] == "executor":
                due_at = tainted_at[name[:3]] + dt.timedelta(seconds=due_after[name])
                late.setdefault(
                    name, (dt.datetime.fromisoformat(deleted["requestReceivedTimestamp"]) - due_at).total_seconds()
                )
        assert late.keys() == due_after.keys()
        assert max(late.values()) < LATE_SECONDS, late
        if how in LEAVE_TOO:
            wait_until(lambda: not any("deletionTimestamp" not in one["metadata"] for one in of_the_tenant(fleet)))


def victims(fleet: Fleet, when: str, due_after: dict[str, int]) -> set[str]:
    """Create pods of others on the nodes that will be tainted; returns their UIDs, and notes when they are due."""
    uids = set()
    for node in TAINTED:
        for kind, tolerations, seconds in (("now", (), 0), ("soon", [tolerates(KEY, TOLERATED_SECONDS)], 6)):
            name = f"{node}-{when}-{kind}"
            uids.add(fleet.client.create(pods(), pod(name, node, tolerations=tolerations))["metadata"]["uid"])
            due_after[name] = seconds
    return uids


def fed(fleet: Fleet, settings: Settings, uids: set[str]) -> None:
    """Wait until the topics tell of pods."""
    wait_until(lambda: uids <= KnownCluster(settings, "lab").objects.keys())
    assert fleet.feed.exit_code is None


def of_the_tenant(fleet: Fleet) -> list[dict[str, dict[str, str]]]:
    """List the tenant's pods on the nodes that were tainted."""
    return [one for one in fleet.client.items(pods(TENANT)) if one["spec"]["nodeName"] in TAINTED]
