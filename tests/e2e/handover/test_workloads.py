"""Controllers of workloads take their moved pods as their own: none is replaced, and none written again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import pytest

from tests.e2e.api_client import Object
from tests.e2e.handover.admission import HEALTH_KEYS, Admission, entries_of, moved, spec_of, timed, wait_until
from tests.e2e.hollow_nodes import HollowNodes

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

KEY: Final = "example.com/k"
NODES: Final = 2
QUIET_SECONDS: Final = 20
"""Longer than controllers take to notice what is not as they want it."""


def template(restart: str = "Always") -> Object:
    spec = {
        "restartPolicy": restart,
        "containers": [{"name": "c", "image": "img"}],
        "tolerations": [timed(KEY, 30)],
        "automountServiceAccountToken": False,
    }
    return {"metadata": {"labels": {"app": "a"}}, "spec": spec}


SELECTOR: Final = {"matchLabels": {"app": "a"}}
WORKLOADS: Final[dict[str, tuple[str, int, Object]]] = {
    "deployments": ("apps/v1", 4, {"replicas": 4, "selector": SELECTOR}),
    "statefulsets": (
        "apps/v1",
        2,
        {"replicas": 2, "selector": SELECTOR, "serviceName": "s", "podManagementPolicy": "Parallel"},
    ),
    "daemonsets": ("apps/v1", NODES, {"selector": SELECTOR}),
    "jobs": ("batch/v1", 3, {"parallelism": 3, "completions": 3}),
    "replicationcontrollers": ("v1", 3, {"replicas": 3, "selector": {"app": "a"}}),
}


def test_no_controller_fights_the_policy(admission: Admission, more: int | None) -> None:
    client = admission.client
    with HollowNodes(client) as nodes:
        names = [f"w-{more or 0}-{number}" for number in range(NODES)]
        nodes.add(names)
        nodes.wait_ready(names)
        namespaces = {}
        for plural, (version, _, spec) in WORKLOADS.items():
            name = namespaces[plural] = f"{plural}-{more or 0}"
            client.create("/api/v1/namespaces", {"metadata": {"name": name}})
            wait_until(_exists(admission, f"/api/v1/namespaces/{name}/serviceaccounts/default"))
            group = f"/apis/{version}" if "/" in version else f"/api/{version}"
            of_pods = template("Never" if plural == "jobs" else "Always")
            workload = {"metadata": {"name": "w"}, "spec": {**spec, "template": of_pods}}
            client.create(f"{group}/namespaces/{name}/{plural}", workload)

        def found() -> dict[str, list[Object]]:
            return {plural: client.items(f"/api/v1/namespaces/{name}/pods") for plural, name in namespaces.items()}

        wait_until(lambda: {plural: len(pods) for plural, pods in found().items()} == _counts())
        first = found()
        time.sleep(QUIET_SECONDS)  # in which nothing may happen
        last = found()
    for name in names:
        client.delete(f"/api/v1/nodes/{name}")
    for plural, pods in last.items():
        for pod in pods:
            assert entries_of(pod)[0] == moved(timed(KEY, 30), 30, more)[1]
            health = [each for each in spec_of(pod) if each.get("key") in HEALTH_KEYS]
            # Those of daemons are without end: their controller adds them.
            written = {None if plural == "daemonsets" or more is None else 300 + more}
            assert {each.get("tolerationSeconds") for each in health} == written
    assert _identities(last) == _identities(first)


def _exists(admission: Admission, path: str) -> Callable[[], bool]:
    return lambda: admission.exists(path)


def _counts() -> dict[str, int]:
    return {plural: count for plural, (_, count, _) in WORKLOADS.items()}


def _identities(found: dict[str, list[Object]]) -> dict[str, set[tuple[str, int]]]:
    """Return UID and generation of each pod: a write of its spec would raise the generation."""
    return {
        plural: {(pod["metadata"]["uid"], pod["metadata"]["generation"]) for pod in pods}
        for plural, pods in found.items()
    }
