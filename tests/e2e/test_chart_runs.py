"""The chart, installed by Helm on a real control plane: its pods run as processes, and evict.

Kafka wants TLS and a password, and the namespace refuses pods that are not `restricted`.
"""

from __future__ import annotations

import base64
import contextlib
import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.api_client import Object
from tests.e2e.chart import CHART, NAMESPACE, RELEASE, helm
from tests.e2e.control_plane import ControlPlane
from tests.e2e.hollow_nodes import HollowNodes
from tests.e2e.objects import NODES, pod, pods, taint
from tests.e2e.pod_processes import PodProcesses, why_not
from tests.e2e.processes import BINDINGS, ROLES, wait_until
from tests.harness.secured import PASSWORD, secured_broker

pytestmark = [pytest.mark.e2e, pytest.mark.kafka, pytest.mark.usefixtures("built_binaries", "built_helm")]

OURS: Final = ["n-0", "n-1"]
TAINTED: Final = "n-2"
EXECUTOR: Final = f"system:serviceaccount:{NAMESPACE}:{RELEASE}-executor"
PROGRAMS: Final = {"worker", "feed", "executor"}


class Installation:
    """The release, and the pods that it has made."""

    def __init__(self, plane: ControlPlane, running: PodProcesses) -> None:
        self.client = plane.client()
        self.running = running
        self._plane = plane

    def helm(self, *arguments: str, values: dict[str, Any] | None = None) -> None:
        done = helm(*arguments, "--kubeconfig", str(self._plane.kubeconfig), values=values)
        assert done.returncode == 0, done.stderr

    def wait_until(self, condition: Callable[[], bool]) -> None:
        def looked() -> bool:
            self.running.look()
            return condition()

        wait_until(looked)

    def wait_ready(self) -> None:
        """Wait until all pods are of the newest revision, run, and call themselves ready."""
        self.wait_until(lambda: self._is_rolled_out() and len(self.running.names()) == 2 * len(PROGRAMS))
        self.wait_until(lambda: all(self._is_ready(name) for name in self.running.names()))

    def answers(self, outcome: str) -> float:
        """Count the answers of the executors that run."""
        samples = [
            sample
            for name in self.running.names()
            if "-executor-" in name
            for family in text_string_to_metric_families(self._ask(name, "/metrics"))
            for sample in family.samples
        ]
        name = "evictstream_executor_results_total"
        return sum(each.value for each in samples if each.name == name and each.labels["outcome"] == outcome)

    def victim(self, name: str) -> None:
        """Create a pod on the node that is tainted."""
        self.client.create(pods(), pod(name, TAINTED))

    def is_gone(self, name: str) -> bool:
        return name not in {each["metadata"]["name"] for each in self.client.items(pods())}

    def calls(self) -> dict[str, tuple[str, str]]:
        """Who has deleted or evicted which pod of the namespace `default`, and how."""
        return {
            each["objectRef"]["name"]: (each["user"]["username"], each["objectRef"].get("subresource", "delete"))
            for each in self._plane.deletes()
            if each["objectRef"]["namespace"] == "default" and each["user"]["username"] != "admin"
        }

    def _is_ready(self, name: str) -> bool:
        with contextlib.suppress(OSError):  # not yet, or HTTP's word for it
            return bool(self._ask(name, "/livez") and self._ask(name, "/readyz"))
        return False

    def _ask(self, name: str, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.running.port(name)}{path}", timeout=5) as answer:
            return str(answer.read().decode())

    def _is_rolled_out(self) -> bool:
        sets = self.client.items(f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets")
        return all(
            each["status"].get("observedGeneration") == each["metadata"]["generation"]
            and each["status"].get("currentRevision") == each["status"].get("updateRevision")
            and each["status"].get("readyReplicas") == each["spec"]["replicas"]
            for each in sets
        )


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    with (
        secured_broker(tmp_path) as settings,
        ControlPlane(tmp_path / "plane", taint_eviction=False) as plane,
        HollowNodes(plane.client()) as nodes,
    ):
        nodes.add([*OURS, TAINTED])
        nodes.wait_ready([*OURS, TAINTED])
        client = plane.client()
        client.patch(f"{NODES}/{TAINTED}", {"spec": {"taints": [taint("maintenance")]}})
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        client.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
        assert settings.ssl_cafile is not None
        secret(plane, "kafka-ca", {"ca.crt": Path(settings.ssl_cafile).read_text(encoding="utf-8")})
        secret(plane, "kafka-user", {"username": "alice", "password": PASSWORD})
        with PodProcesses(plane, NAMESPACE, OURS, tmp_path) as running:
            found = Installation(plane, running)
            values = {
                "image": {"repository": "registry.example/evictstream"},
                "kafka": {
                    "bootstrapServers": settings.bootstrap_servers,
                    "tls": {"enabled": True, "caSecretName": "kafka-ca"},
                    "sasl": {"mechanism": "PLAIN"},
                    "user": {"secretName": "kafka-user"},
                },
                "clusters": [{"name": "lab"}],
                "settings": {"partitions": 2, "replication_factor": 1, "min_insync_replicas": 1},
            }
            found.helm("install", RELEASE, str(CHART), values=values)
            yield found


def secret(plane: ControlPlane, name: str, texts: dict[str, str]) -> None:
    data = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    plane.client().create(f"/api/v1/namespaces/{NAMESPACE}/secrets", {"metadata": {"name": name}, "data": data})


def test_the_chart_observes_deletes_evicts_and_goes_back(installation: Installation) -> None:
    installation.wait_ready()
    names = identities(installation)
    installation.victim("observed")
    installation.wait_until(lambda: installation.answers("Observed") > 0)
    assert installation.calls() == {}
    worker = f"{RELEASE}-worker-0"
    assert "observed" in installation.running.execute(worker, "get", "evictions")
    shown = installation.running.execute(worker, "commands", "--from", "beginning", "--idle-seconds", "2")
    assert {json.loads(line)["pod"] for line in shown.splitlines()} == {"observed"}

    for mode, how in (("delete", "delete"), ("evict", "eviction")):
        installation.helm("upgrade", RELEASE, str(CHART), "--reset-then-reuse-values", "--set", f"executor.mode={mode}")
        installation.wait_ready()
        installation.victim(mode)
        installation.wait_until(lambda mode=mode: installation.is_gone(mode))  # type: ignore[misc]
        assert installation.calls()[mode] == (EXECUTOR, how)

    installation.helm("rollback", RELEASE, "1")
    installation.wait_ready()
    before = installation.answers("Observed")
    installation.victim("kept")
    installation.wait_until(lambda: installation.answers("Observed") > before)
    assert not installation.is_gone("kept")
    assert identities(installation) == names

    installation.helm("uninstall", RELEASE)
    installation.wait_until(lambda: not installation.running.names())
    for path in (ROLES, BINDINGS):
        assert not [each for each in installation.client.items(path) if RELEASE in each["metadata"]["name"]]


def identities(installation: Installation) -> dict[str, Object]:
    """Names and selectors, which upgrades may not change."""
    found = {}
    for kind in ("deployments", "statefulsets"):
        for each in installation.client.items(f"/apis/apps/v1/namespaces/{NAMESPACE}/{kind}"):
            found[each["metadata"]["name"]] = each["spec"]["selector"] | {"uid": each["metadata"]["uid"]}
    return found
