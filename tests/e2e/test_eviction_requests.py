"""The mode `request` on a real control plane: with a controller, without one, and without the API."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path

import pytest

from evictstream.models.messages.result import RESULT_KIND
from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.e2e.api_client import Object, RefusedError
from tests.e2e.control_plane import ControlPlane
from tests.e2e.eviction_requests import GATE_FLAGS, RequestController, knows_requests, requests_of
from tests.e2e.fleet import KEY, evicting
from tests.e2e.objects import pod, pods
from tests.e2e.processes import executor, grant, wait_until
from tests.harness.free_port import free_port, ready
from tests.harness.reading import TopicReader

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.usefixtures("built_binaries"),
]

needs_requests = pytest.mark.skipif(not knows_requests(), reason="the control plane that is built has no such API")
PATIENCE_SECONDS = 65


def outcomes(results: TopicReader) -> dict[str, list[str]]:
    """Return the outcomes of each pod, in order, repetitions left out."""
    found: dict[str, list[str]] = {}
    for one in results.poll():
        if one.value["kind"] == RESULT_KIND:
            of_pod = found.setdefault(one.value["pod"], [])
            if of_pod[-1:] != [one.value["outcome"]]:
                of_pod.append(one.value["outcome"])
    return found


def metric(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


@needs_requests
def test_a_responder_evicts_and_a_removed_taint_withdraws(tmp_path: Path, settings: Settings) -> None:
    with evicting(settings, tmp_path, "request", apiserver_flags=GATE_FLAGS) as fleet:
        results = TopicReader(settings, settings.results_topic, RESULT_KIND)
        controller = RequestController(fleet.client, acts=False)
        with controller.running():
            for name in ("goes", "goes-too"):
                fleet.client.create(pods(), pod(name, "n-0"))
            fleet.client.create(pods(), pod("stays", "n-1"))
            uid = fleet.client.get(f"{pods()}/stays")["metadata"]["uid"]
            fleet.taint("n-0", KEY)
            fleet.taint("n-1", KEY)
            wait_until(lambda: set(controller.seen) == {"goes", "goes-too", "stays"})
            request = requests_of(fleet.client)["stays"]
            assert request["spec"]["target"]["pod"] == {"name": "stays", "uid": uid}
            assert request["metadata"]["ownerReferences"][0]["uid"] == uid
            fleet.executor.kill_and_start()

            fleet.taint("n-1")
            wait_until(lambda: controller.seen["stays"] == ["Eviction", "Withdrawn"])
            wait_until(lambda: "stays" not in requests_of(fleet.client))
            kept = {name: requests_of(fleet.client)[name]["metadata"]["uid"] for name in ("goes", "goes-too")}
            assert controller.seen["goes"] == ["Eviction"]

            controller.acts = True
            wait_until(lambda: fleet.alive() == {"stays"})
            wait_until(lambda: not requests_of(fleet.client))
        wait_until(lambda: all(outcomes(results).get(name, [])[-1:] == ["Succeeded"] for name in kept))
        assert outcomes(results)["goes"] == ["Accepted", "Succeeded"]
        results.close()
        assert fleet.deleted() == []


@needs_requests
def test_without_a_controller_pods_go_after_the_patience(tmp_path: Path, settings: Settings) -> None:
    port = free_port()
    more = ("--delete-after", str(PATIENCE_SECONDS))
    with evicting(
        settings, tmp_path, "request", apiserver_flags=GATE_FLAGS, executor_flags=more, executor_port=port
    ) as fleet:
        results = TopicReader(settings, settings.results_topic, RESULT_KIND)
        fleet.client.create(pods(), pod("waits", "n-0"))
        fleet.taint("n-0", KEY)
        wait_until(lambda: "waits" in requests_of(fleet.client))
        began_at = time.monotonic()
        wait_until(lambda: metric(port, "evictstream_executor_requests_ignored{") == 1)
        assert "no controller" in ready(port)["evictionRequests"]["lab"]
        assert fleet.alive() == {"waits"}
        wait_until(lambda: not fleet.alive())
        assert PATIENCE_SECONDS - 2 <= time.monotonic() - began_at <= PATIENCE_SECONDS + 10
        wait_until(lambda: not requests_of(fleet.client))
        wait_until(lambda: outcomes(results)["waits"] == ["Accepted", "Succeeded"])
        results.close()
        assert fleet.deleted() == ["waits"]


def test_a_cluster_without_the_api_is_refused(tmp_path: Path, settings: Settings) -> None:
    declare_topics(settings)
    with ControlPlane(tmp_path / "plane", taint_eviction=False, users=["executor"]) as plane:
        grant(plane.client(), "executor-request.yaml", "executor")
        log = tmp_path / "executor.log"
        process = executor(settings, plane, "request", log=log)
        with pytest.raises(AssertionError, match="exit code 1"), process:
            wait_until(lambda: process.exit_code is not None)
        text = log.read_text(encoding="utf-8")
        assert "does not serve lifecycle.k8s.io/v1alpha1" in text
        assert "--feature-gates=EvictionRequestAPI=true" in text


def test_a_budget_that_is_unusable_now_only_delays(tmp_path: Path, settings: Settings) -> None:
    """Of 1.37: before, the API server does not say that its 403 is a budget's."""
    if not knows_requests():
        pytest.skip("the API server gives no cause")
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    with evicting(settings, tmp_path, "evict") as fleet:
        results = TopicReader(settings, settings.results_topic, RESULT_KIND)
        labels = {"app": "guarded"}
        fleet.client.create(pods(), pod("guarded", "n-0", labels=labels))
        spec = {"minAvailable": 0, "selector": {"matchLabels": labels}}
        budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "one"}, "spec": spec}
        fleet.client.create(budgets, budget)
        wait_until(lambda: fleet.client.get(f"{budgets}/one").get("status", {}).get("expectedPods") == 1)
        fleet.plane.controller_manager.stop()
        disrupted = {f"pod-{number}": "2026-11-27T12:00:00Z" for number in range(2_001)}
        fleet.client.patch(f"{budgets}/one/status", {"status": {"disruptedPods": disrupted, "disruptionsAllowed": 1}})
        eviction: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "guarded"}}
        with pytest.raises(RefusedError) as refused:
            fleet.client.create(f"{pods()}/guarded/eviction", eviction)
        assert refused.value.status == 403
        assert [cause["reason"] for cause in refused.value.answer["details"]["causes"]] == ["DisruptionBudget"]

        fleet.taint("n-0", KEY)
        time.sleep(5)  # in which the executor has asked
        assert fleet.alive() == {"guarded"}
        fleet.plane.controller_manager.start()
        wait_until(lambda: not fleet.alive())
        wait_until(lambda: outcomes(results).get("guarded") == ["Succeeded"])
        results.close()
