"""The chart as it is rendered into the base of Kustomize: what its pods are told and may do. It needs no Helm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from evictstream.streams.settings import Settings, load_settings
from evictstream.streams.worker.app import STOP_TIMEOUT_SECONDS
from tests.deploy.command_line import parse
from tests.deploy.pages import ROOT

KUSTOMIZE = ROOT / "deploy" / "kustomize"
Object = dict[str, Any]
OBJECTS: list[Object] = [
    each for file in sorted((KUSTOMIZE / "base").glob("*.yaml")) for each in yaml.safe_load_all(file.read_text("utf-8"))
]
PROGRAMS = ("worker", "feed", "executor")


def of_kind(*kinds: str) -> dict[str, Object]:
    return {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] in kinds}


WORKLOADS = {name.split("-")[1]: each for name, each in of_kind("Deployment", "StatefulSet", "Job").items()}
PODS: dict[str, Object] = {name: each["spec"]["template"] for name, each in WORKLOADS.items()}
(SETTINGS,) = (each["data"] for each in of_kind("ConfigMap").values())

every_pod = pytest.mark.parametrize("name", PODS)
every_program = pytest.mark.parametrize("name", PROGRAMS)


def container(name: str) -> Object:
    (found,) = PODS[name]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def selectors(name: str) -> Iterator[Object]:
    """Give all selectors that have to find the pods of a program, and those of no other where they name it."""
    yield WORKLOADS[name]["spec"]["selector"]["matchLabels"]
    yield of_kind("Service")[f"evictstream-{name}"]["spec"]["selector"]
    yield of_kind("PodDisruptionBudget")[f"evictstream-{name}"]["spec"]["selector"]["matchLabels"]
    for each in PODS[name]["spec"]["topologySpreadConstraints"]:
        yield each["labelSelector"]["matchLabels"]


def test_there_is_each_program_and_the_topics() -> None:
    assert PODS.keys() == {*PROGRAMS, "topics"}


@every_pod
def test_the_command_is_one_of_the_program(name: str) -> None:
    parse(container(name)["args"])


@every_pod
def test_settings_are_known_and_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert container(name)["envFrom"] == [{"configMapRef": {"name": "evictstream-settings"}}]
    for variable, value in SETTINGS.items():
        monkeypatch.setenv(variable, value)
    assert load_settings().settings == Settings(
        bootstrap_servers="kafka:9092",
        partitions=64,
        replication_factor=3,
        min_insync_replicas=2,
        health_host="::",
        health_port=9464,
    )


def test_members_of_groups_are_named_after_their_pods() -> None:
    own_name = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    assert container("worker")["env"] == [{"name": "EVICTSTREAM_GROUP_INSTANCE_ID", **own_name}]
    assert container("executor")["env"] == [{"name": "POD_NAME", **own_name}]
    assert " --instance $(POD_NAME) " in " ".join(container("executor")["args"])
    assert {WORKLOADS[name]["kind"] for name in ("worker", "executor")} == {"StatefulSet"}


@every_pod
def test_a_pod_can_do_nothing_but_its_work(name: str) -> None:
    spec = PODS[name]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] == 10001  # the image's
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["enableServiceLinks"] is False
    assert spec["automountServiceAccountToken"] is (name in {"feed", "executor"})
    assert [each["mountPath"] for each in container(name)["volumeMounts"]] == ["/tmp"]  # noqa: S108 - inside it


@every_pod
def test_memory_is_bounded_and_processors_are_not(name: str) -> None:
    resources = container(name)["resources"]
    assert resources["limits"] == {"memory": resources["requests"]["memory"]}


@every_pod
def test_a_pod_may_finish_what_it_does(name: str) -> None:
    spec = PODS[name]["spec"]
    assert spec["terminationGracePeriodSeconds"] >= STOP_TIMEOUT_SECONDS + 10
    assert spec["shareProcessNamespace"] is True  # signals arrive before they are asked for


@every_program
def test_probes_ask_where_health_is_served(name: str) -> None:
    its = container(name)
    assert its["ports"] == [{"name": "health", "containerPort": int(SETTINGS["EVICTSTREAM_HEALTH_PORT"])}]
    paths = {kind: its[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
    assert {each["port"] for each in paths.values()} == {"health"}
    assert {kind: each["path"] for kind, each in paths.items()} == {
        "startup": "/livez",
        "liveness": "/livez",
        "readiness": "/readyz",
    }


@every_program
def test_selectors_find_the_pods_of_one_program(name: str) -> None:
    for selector in selectors(name):
        found = {other for other in PODS if selector.items() <= PODS[other]["metadata"]["labels"].items()}
        assert found == {name}


def test_the_network_is_closed_for_every_pod() -> None:
    every, clusters = (of_kind("NetworkPolicy")[f"evictstream{end}"]["spec"] for end in ("", "-clusters"))
    for name in PODS:
        assert every["podSelector"]["matchLabels"].items() <= PODS[name]["metadata"]["labels"].items()
    (expression,) = clusters["podSelector"]["matchExpressions"]
    assert expression["values"] == ["feed", "executor"]
    assert {each["port"] for rule in every["egress"] for each in rule["ports"]} == {53, 9092}
    assert {each["port"] for rule in every["ingress"] for each in rule["ports"]} == {9464}


def test_a_drain_waits_for_no_pod_that_is_not_ready() -> None:
    for each in of_kind("PodDisruptionBudget").values():
        assert each["spec"]["maxUnavailable"] == 1
        assert each["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@pytest.mark.parametrize(("name", "file"), [("feed", "feed"), ("executor", "executor-observe")])
def test_programs_have_the_rights_of_the_files(name: str, file: str) -> None:
    files = yaml.safe_load_all((ROOT / "deploy" / "kubernetes" / f"{file}.yaml").read_text("utf-8"))
    (rules,) = (each["rules"] for each in files if each["kind"] == "ClusterRole")
    assert of_kind("ClusterRole")[f"evictstream-{name}"]["rules"] == rules
    (subject,) = of_kind("ClusterRoleBinding")[f"evictstream-{name}"]["subjects"]
    assert subject["name"] == PODS[name]["spec"]["serviceAccountName"]
