"""Each right of `deploy/kubernetes` is needed: without one of them the program does not serve its cluster.

One process serves the same control plane under many names, each with a user of its own that lacks one right; what
keeps one cluster from being served keeps no other.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from evictstream.streams.broker.admin import declare_topics
from evictstream.streams.settings import Settings
from tests.e2e.control_plane import ControlPlane
from tests.e2e.eviction_requests import GATE_FLAGS, knows_requests
from tests.e2e.processes import BINDINGS, DEPLOYED, ROLES, wait_until
from tests.harness.free_port import free_port
from tests.harness.product_process import ProductProcess

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("built_binaries")]

Rules = list[dict[str, Any]]

LATER_SECONDS: Final = 60
"""So long after all rights are found, no other name is served: a listing without a watch proves nothing after 45 s."""


def rules(file: str) -> Rules:
    objects = yaml.safe_load_all((DEPLOYED / f"{file}.yaml").read_text(encoding="utf-8"))
    return next(each["rules"] for each in objects if each["kind"] == "ClusterRole")


def users(file: str) -> dict[str, Rules]:
    """Return a user with all rights of a file, called like it, and one for each right that is missing."""
    whole = rules(file)
    found = {file: whole}
    for rule in whole:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                rest = [
                    rule | {"resources": [each for each in rule["resources"] if each != resource]},
                    rule | {"resources": [resource], "verbs": [each for each in rule["verbs"] if each != verb]},
                ]
                kept = [each for each in rest if each["resources"] and each["verbs"]]
                name = f"{file}-without-{verb}-{resource.replace('/', '.')}"
                found[name] = [each for each in whole if each is not rule] + kept
    return found


FILES: Final = (
    *("feed", "executor-observe", "executor-delete", "executor-evict"),
    *(("executor-request",) if knows_requests() else ()),
)
USERS: Final = {name: kept for file in FILES for name, kept in users(file).items()}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    flags = GATE_FLAGS if knows_requests() else ()
    folder = tmp_path_factory.mktemp("rights")
    with ControlPlane(folder, taint_eviction=False, users=list(USERS), apiserver_flags=flags) as found:
        client = found.client()
        for name, kept in USERS.items():
            client.create(ROLES, {"metadata": {"name": name}, "rules": kept})
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
            subject = {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
            client.create(BINDINGS, {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})
        yield found


def served(port: int, metric: str) -> set[str]:
    """Return the clusters of which a process says 1."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            text = answer.read().decode()
    except OSError:
        return set()
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return {each.labels["cluster"] for each in samples if each.name == metric and each.value == 1}


def check(settings: Settings, plane: ControlPlane, metric: str, whole: set[str], *command: str) -> None:
    """Run a program until it serves all names in `whole`, and a while longer: it serves no other."""
    declare_topics(settings)
    port = free_port()
    own = settings.model_copy(update={"health_port": port})
    with ProductProcess(own, *command, "--kubeconfig", str(plane.kubeconfig)):
        wait_until(lambda: served(port, metric) >= whole)
        time.sleep(LATER_SECONDS)
        assert served(port, metric) == whole


def clusters(names: list[str]) -> list[str]:
    return [f"--cluster={name}={name}" for name in names]


def test_a_feed_needs_each_of_its_rights(plane: ControlPlane, settings: Settings) -> None:
    check(settings, plane, "evictstream_feed_proven", {"feed"}, "feed", *clusters(list(users("feed"))))


def test_an_executor_needs_each_right_of_its_mode(plane: ControlPlane, settings: Settings) -> None:
    own = {file.removeprefix("executor-"): list(users(file)) for file in FILES if file != "feed"}
    # Only `--delete-after` needs both ways: see below.
    own["delete"].remove("executor-delete-without-create-pods.eviction")
    modes = [f"--mode={name}={mode}" for mode, names in own.items() for name in names]
    named = clusters([name for names in own.values() for name in names])
    check(
        settings, plane, "evictstream_executor_served", {names[0] for names in own.values()}, "execute", *named, *modes
    )


def test_delete_after_needs_each_right_of_both_modes(plane: ControlPlane, settings: Settings) -> None:
    named = clusters(list(users("executor-delete")))
    late = ("--mode", "evict", "--delete-after", "60")
    check(settings, plane, "evictstream_executor_served", {"executor-delete"}, "execute", *named, *late)
