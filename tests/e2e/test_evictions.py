"""Feed, worker and executor beside a real control plane with its own evictor off: the right pods leave, in time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evictstream.streams.settings import Settings
from tests.e2e.fleet import KEY, NAMES, Fleet, evicting
from tests.e2e.objects import NODES, pod, pods, tolerates
from tests.e2e.processes import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]


def test_taint_edit_and_untaint(tmp_path: Path, settings: Settings) -> None:
    with evicting(settings, tmp_path) as fleet:
        client = fleet.client
        for name, tolerations in {
            "plain": (),
            "for-ever": [tolerates(KEY)],
            "a-while": [tolerates(KEY, 6)],
            "given-more": [tolerates(KEY, 20)],
        }.items():
            client.create(pods(), pod(name, "n-0", tolerations=tolerations))
        client.create(pods(), pod("saved", "n-1", tolerations=[tolerates(KEY, 15)]))
        client.create(pods(), pod("elsewhere", "n-2"))
        fleet.taint("n-0", KEY)
        fleet.taint("n-1", KEY)
        tainted_at = time.monotonic()
        wait_until(lambda: fleet.alive() == {"for-ever", "a-while", "given-more", "saved", "elsewhere"})
        more = client.get(f"{pods()}/given-more")["spec"]["tolerations"] + [tolerates(KEY, 3600)]
        client.patch(f"{pods()}/given-more", {"spec": {"tolerations": more}})
        fleet.taint("n-1")
        wait_until(lambda: "a-while" not in fleet.alive())
        assert time.monotonic() - tainted_at >= 6
        time.sleep(max(0.0, tainted_at + 17 - time.monotonic()))  # the time in which `saved` would have had to go
        assert {"for-ever", "saved", "elsewhere"} <= fleet.alive()
        assert {"plain", "a-while"} <= set(fleet.deleted()) <= {"plain", "a-while", "given-more"}


def test_a_dead_node_over_restarts_of_everything(tmp_path: Path, settings: Settings) -> None:
    with evicting(settings, tmp_path) as fleet:
        for name in NAMES:
            for number in range(10):
                fleet.client.create(pods(), pod(f"{name}-{number}", name))
        everything = fleet.alive()
        fleet.nodes.silence(["n-3"])
        wait_until(lambda: is_unreachable(fleet, "n-3"))
        fleet.plane.controller_manager.stop()
        fleet.feed.kill_and_start()
        fleet.worker.kill_and_start()
        fleet.executor.kill_and_start()
        fleet.plane.controller_manager.start()
        wait_until(lambda: fleet.alive() == {name for name in everything if not name.startswith("n-3")})
        assert sorted(fleet.deleted()) == sorted(name for name in everything if name.startswith("n-3"))


def test_a_zone_goes_down_and_then_everything(tmp_path: Path, settings: Settings) -> None:
    """Where no node is alive the lifecycle controller stops to taint, but not at once (docs/semantics.md, row 35)."""
    zone = ("b-0", "b-1", "b-2")
    with evicting(settings, tmp_path) as fleet:
        fleet.nodes.add(zone, "z-b")
        fleet.nodes.wait_ready(zone)
        for name in (*NAMES, *zone):
            for number in range(5):
                fleet.client.create(pods(), pod(f"{name}-{number}", name))
        everything = fleet.alive()
        fleet.nodes.silence(zone)
        wait_until(lambda: all(is_unreachable(fleet, name) for name in zone))
        fleet.nodes.revive(["b-2"])
        fleet.worker.kill_and_start()
        fleet.executor.kill_and_start()
        left = {name for name in everything if not name.startswith(("b-0", "b-1"))}
        wait_until(lambda: fleet.alive() == left)
        fleet.nodes.silence([*NAMES, "b-2"])
        wait_until(lambda: not any(is_ready(fleet, name) for name in NAMES))
        time.sleep(15)  # three times what pods are given
        untainted = [name for name in (*NAMES, *zone) if not is_unreachable(fleet, name)]
        left = {name for name in left if name[:3] in untainted}
        assert fleet.alive() == left
        assert sorted(fleet.deleted()) == sorted(everything - left)


def test_due_while_the_api_server_is_gone(tmp_path: Path, settings: Settings) -> None:
    with evicting(settings, tmp_path) as fleet:
        for number in range(30):
            fleet.client.create(pods(), pod(f"p-{number}", NAMES[number % 4], tolerations=[tolerates(KEY, 8)]))
        for name in NAMES[:3]:
            fleet.taint(name, KEY)
        time.sleep(3)
        fleet.plane.apiserver.kill()
        time.sleep(8)  # all of them become due meanwhile
        fleet.executor.kill_and_start()
        fleet.plane.start_apiserver()
        stay = {f"p-{number}" for number in range(30) if number % 4 == 3}
        wait_until(lambda: fleet.alive() == stay)
        assert set(fleet.deleted()).isdisjoint(stay)


def test_a_budget_is_kept_and_then_given_up(tmp_path: Path, settings: Settings) -> None:
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    with evicting(settings, tmp_path, "evict") as fleet:
        labels = {"app": "guarded"}
        fleet.client.create(pods(), pod("guarded", "n-0", labels=labels))
        fleet.client.create(pods(), pod("free", "n-0"))
        spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "one"}, "spec": spec}
        fleet.client.create(budgets, budget)
        wait_until(lambda: fleet.client.get(f"{budgets}/one").get("status", {}).get("expectedPods") == 1)
        fleet.taint("n-0", KEY)
        wait_until(lambda: fleet.alive() == {"guarded"})
        time.sleep(5)  # in which a budget that is not kept would have been broken
        assert fleet.alive() == {"guarded"}
        fleet.client.delete(f"{budgets}/one")
        wait_until(lambda: not fleet.alive())


def is_unreachable(fleet: Fleet, node: str) -> bool:
    taints = fleet.client.get(f"{NODES}/{node}")["spec"].get("taints", ())
    return any(one["effect"] == "NoExecute" for one in taints)


def is_ready(fleet: Fleet, node: str) -> bool:
    conditions = fleet.client.get(f"{NODES}/{node}")["status"]["conditions"]
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
