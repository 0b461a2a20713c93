"""docs/migrate.md on a real control plane: observing beside the built-in controller, the switch, and the way back."""

from __future__ import annotations

import datetime as dt
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from evictstream.streams.settings import Settings
from tests.e2e.fleet import KEY, NAMES, Fleet, evicting
from tests.e2e.objects import pod, pods, tolerates
from tests.e2e.processes import executor, grant, wait_until
from tests.streams.cli.running import run

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

BUILTIN = "system:serviceaccount:kube-system:node-controller"
OURS = "executor"
STAY_SECONDS = 25
"""Longer than a controller manager takes to end and start."""

LATE_SECONDS = 4.0
"""On a busy machine; a window that begins anew is later by more, as the controller manager restarts after 5 s."""

RESTART_AFTER_SECONDS = 5.0


def deleted(fleet: Fleet) -> dict[str, tuple[str, float]]:
    """Who deleted each pod first, and when."""
    found: dict[str, tuple[str, float]] = {}
    for one in fleet.plane.deletes():
        if one["user"]["username"] in (BUILTIN, OURS) and one["responseStatus"]["code"] < 300:
            at = dt.datetime.fromisoformat(one["requestReceivedTimestamp"]).timestamp()
            found.setdefault(one["objectRef"]["name"], (one["user"]["username"], at))
    return found


def taint_under(fleet: Fleet, node: str, name: str, seconds: int) -> float:
    """Taint a node with a new pod on it; returns when."""
    fleet.client.create(pods(), pod(name, node, tolerations=[tolerates(KEY, seconds)]))
    fleet.taint(node, KEY)
    return time.time()


def shadow(settings: Settings) -> dict[str, Any]:
    result = run(settings, "shadow", "--since", "7d", "-o", "json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def nodes_known(settings: Settings) -> int:
    """Count the nodes that the worker has in its rows."""
    return len(run(settings, "get", "nodes", "-o", "name").stdout.splitlines())


def test_observing_the_switch_and_the_way_back(tmp_path: Path, settings: Settings) -> None:
    with evicting(settings, tmp_path, "observe", taint_eviction=True) as fleet:
        wait_until(lambda: nodes_known(settings) == len(NAMES))  # else windows begin when the feed does
        for name, tolerations in {"plain": (), "a-while": [tolerates(KEY, 4)], "for-ever": [tolerates(KEY)]}.items():
            fleet.client.create(pods(), pod(name, "n-0", tolerations=tolerations))
        fleet.taint("n-0", KEY)
        wait_until(lambda: fleet.alive() == {"for-ever"})
        assert {name: by for name, (by, _) in deleted(fleet).items()} == {"plain": BUILTIN, "a-while": BUILTIN}
        wait_until(lambda: shadow(settings)["same"] == 2)
        assert shadow(settings)["differences"] == []

        tainted_at = taint_under(fleet, "n-1", "over-the-switch", STAY_SECONDS)
        grant(fleet.client, "executor-delete.yaml", "executor")
        fleet.executor.send_signal(signal.SIGTERM)
        time.sleep(RESTART_AFTER_SECONDS)
        with executor(settings, fleet.plane, "delete"):
            fleet.plane.restart_controller_manager(taint_eviction=False)
            wait_until(lambda: "over-the-switch" in deleted(fleet))
            by, at = deleted(fleet)["over-the-switch"]
            assert by == OURS
            assert STAY_SECONDS <= at - tainted_at <= STAY_SECONDS + LATE_SECONDS

            tainted_at = taint_under(fleet, "n-2", "over-the-way-back", STAY_SECONDS)
            time.sleep(RESTART_AFTER_SECONDS)
            fleet.plane.restart_controller_manager(taint_eviction=True)
            wait_until(lambda: "over-the-way-back" in deleted(fleet))
            by, at = deleted(fleet)["over-the-way-back"]
            assert by == OURS
            assert STAY_SECONDS <= at - tainted_at <= STAY_SECONDS + LATE_SECONDS
        with executor(settings, fleet.plane, "observe"):
            taint_under(fleet, "n-3", "afterwards", 4)
            wait_until(lambda: "afterwards" in deleted(fleet))
            assert deleted(fleet)["afterwards"][0] == BUILTIN


def test_a_way_back_at_once_begins_the_windows_anew(tmp_path: Path, settings: Settings) -> None:
    with evicting(settings, tmp_path) as fleet:
        grant(fleet.client, "executor-observe.yaml", "executor")
        taint_under(fleet, "n-0", "first", 0)
        wait_until(lambda: "first" in deleted(fleet))  # so all of evictstream runs
        tainted_at = taint_under(fleet, "n-1", "p", STAY_SECONDS)
        fleet.executor.send_signal(signal.SIGTERM)
        time.sleep(RESTART_AFTER_SECONDS)
        with executor(settings, fleet.plane, "observe"):
            fleet.plane.restart_controller_manager(taint_eviction=True)
            wait_until(lambda: "p" in deleted(fleet))
            by, at = deleted(fleet)["p"]
            assert by == BUILTIN
            assert at - tainted_at >= STAY_SECONDS + RESTART_AFTER_SECONDS


def test_what_only_evictstream_would_evict_leaves_at_the_switch(tmp_path: Path, settings: Settings) -> None:
    """The built-in controller is off already, as if it had left the pod alone: it is owed, and was only observed."""
    with evicting(settings, tmp_path, "observe") as fleet:
        fleet.client.create(pods(), pod("owed", "n-0"))
        fleet.taint("n-0", KEY)
        events = "/api/v1/namespaces/default/events"
        wait_until(lambda: any(one["reason"] == "TaintEvictionObserved" for one in fleet.client.items(events)))
        wait_until(lambda: bool(shadow(settings)["differences"]))  # once the feed has been heard after it
        (found,) = shadow(settings)["differences"]
        assert (found["pod"], found["kind"]) == ("default/owed", "OnlyEvictstream")
        assert fleet.alive() == {"owed"}
        grant(fleet.client, "executor-delete.yaml", "executor")
        fleet.executor.send_signal(signal.SIGTERM)
        now = dt.datetime.now(dt.UTC).isoformat()  # from then on it reads, as if the command were older than an hour
        with executor(settings, fleet.plane, "delete", "--from", now):
            wait_until(lambda: not fleet.alive())
        assert fleet.deleted() == ["owed"]
