from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import SecretStr

from evictstream.streams.broker.container import IMAGE
from evictstream.streams.settings import Settings, load_settings
from evictstream.streams.settings.loading import ENVIRONMENT_PREFIX
from evictstream.streams.worker.app import STOP_TIMEOUT_SECONDS
from tests.deploy.command_line import parse
from tests.deploy.compose import FILE, compose, seconds
from tests.deploy.pages import ROOT

FOUND = compose()
SERVICES: dict[str, dict[str, Any]] = FOUND["services"]
KAFKA = SERVICES["kafka"]
OURS = {name: service for name, service in SERVICES.items() if name != "kafka"}
CLUSTER = ("feed", "executor")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

# Compose refuses others; without this list, only the first start would find a misspelt key.
SERVICE_KEYS = {
    "build",
    "cap_drop",
    "command",
    "depends_on",
    "deploy",
    "entrypoint",
    "environment",
    "healthcheck",
    "image",
    "init",
    "logging",
    "network_mode",
    "ports",
    "profiles",
    "pull_policy",
    "read_only",
    "restart",
    "security_opt",
    "stop_grace_period",
    "tmpfs",
    "user",
    "volumes",
}

every_service = pytest.mark.parametrize("name", SERVICES)
every_service_of_ours = pytest.mark.parametrize("name", OURS)


def compose_client() -> str | None:
    """Why `docker compose` cannot check the file; none if it can. It needs no engine for that."""
    docker = shutil.which("docker")
    if docker is None:
        return "no docker here"
    found = subprocess.run([docker, "compose", "version"], capture_output=True, check=False, timeout=30)
    return None if found.returncode == 0 else "docker is here, but not its compose"


def test_compose_itself_takes_the_file() -> None:
    missing = compose_client()
    if missing:
        pytest.skip(missing)
    docker = shutil.which("docker")
    assert docker is not None
    found = subprocess.run(
        [docker, "compose", "--file", str(FILE), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={name: value for name, value in os.environ.items() if not name.startswith(ENVIRONMENT_PREFIX)},
    )
    assert (found.returncode, found.stderr) == (0, "")


def test_only_known_keys() -> None:
    assert {key for key in FOUND if not key.startswith("x-")} == {"name", "services", "volumes"}
    for service in SERVICES.values():
        assert set(service) <= SERVICE_KEYS


class TestImages:
    @every_service
    def test_exact_tag(self, name: str) -> None:
        assert re.fullmatch(r"[a-z0-9/]+:\d+\.\d+\.\d+(?:-[a-z0-9.]+)?", SERVICES[name]["image"])

    def test_kafka_is_the_one_that_the_tests_run_on(self) -> None:
        assert KAFKA["image"] == IMAGE

    @every_service_of_ours
    def test_ours_is_of_this_version(self, name: str) -> None:
        assert OURS[name]["image"] == f"evictstream:{VERSION}"

    def test_ours_is_built_once_and_never_pulled(self) -> None:
        policies = {name: service["pull_policy"] for name, service in OURS.items()}
        builders = [name for name, policy in policies.items() if policy == "build"]
        assert set(policies.values()) == {"build", "never"}
        assert builders == [name for name, service in OURS.items() if "build" in service] == ["topics"]
        assert (FILE.parent / OURS["topics"]["build"]["context"] / "Dockerfile").is_file()


class TestOrder:
    def test_topics_are_declared_between_kafka_and_all_else(self) -> None:
        assert OURS["topics"]["depends_on"] == {"kafka": {"condition": "service_healthy"}}
        for name in OURS.keys() - {"topics"}:
            assert OURS[name]["depends_on"] == {"topics": {"condition": "service_completed_successfully"}}

    @every_service
    def test_what_is_waited_for_can_come_true(self, name: str) -> None:
        for other, how in SERVICES[name].get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other]
            else:
                assert SERVICES[other]["restart"] == "no"

    def test_the_health_check_uses_kafkas_tool_on_the_inner_listener(self) -> None:
        check = KAFKA["healthcheck"]
        assert check["test"][0] == "CMD"
        tool = check["test"].index("/opt/kafka/bin/kafka-broker-api-versions.sh")
        assert check["test"][tool + 1 :] == ["--bootstrap-server", "localhost:9092"]
        assert ":9092," in f"{KAFKA['environment']['KAFKA_LISTENERS']},"

    def test_kafka_is_given_time(self) -> None:
        check = KAFKA["healthcheck"]
        assert seconds(check["start_interval"]) < seconds(check["interval"])
        assert seconds(check["timeout"]) <= seconds(check["interval"])
        assert seconds(check["start_period"]) >= 30
        assert check["retries"] >= 2


class TestOurContainers:
    @every_service_of_ours
    def test_command_exists(self, name: str) -> None:
        parse(OURS[name]["command"])

    def test_a_wrong_command_would_be_noticed(self) -> None:
        with pytest.raises(typer.TyperException):
            parse(["topics", "declare", "--everything"])
        with pytest.raises(typer.TyperException):
            parse(["workers"])

    @every_service_of_ours
    def test_settings_are_known_and_the_same(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        environment = OURS[name]["environment"]
        assert all(variable.startswith(ENVIRONMENT_PREFIX) for variable in environment)
        for variable, value in environment.items():
            monkeypatch.setenv(variable, str(value))
        own = {"bootstrap_servers", "health_host", "health_port"}
        assert load_settings().settings.model_dump(exclude=own) == Settings().model_dump(exclude=own)

    @every_service_of_ours
    def test_health_is_reached_from_the_machine_alone(self, name: str) -> None:
        environment = OURS[name]["environment"]
        host, port = (environment[f"EVICTSTREAM_HEALTH_{each}"] for each in ("HOST", "PORT"))
        if name in CLUSTER:
            assert OURS[name]["network_mode"] == "host"
            assert host == "127.0.0.1"
        else:
            assert host == "::"  # every address of the container
            # Whoever serves health is published, on loopback: a port for each of several workers.
            published = [each.rsplit(":", 1) for each in OURS[name].get("ports", ())]
            assert published == ([["127.0.0.1:9464-9471", str(port)]] if name == "worker" else [])

    def test_no_two_take_a_port_of_the_machine(self) -> None:
        ports = {*range(9464, 9472), *(int(OURS[name]["environment"]["EVICTSTREAM_HEALTH_PORT"]) for name in CLUSTER)}
        assert len(ports) == 8 + len(CLUSTER)

    def test_a_cluster_is_fed_and_observed_only_when_asked_for(self) -> None:
        asked = {name for name, service in SERVICES.items() if "profiles" in service}
        assert asked == set(CLUSTER)
        assert OURS["executor"]["command"][-2:] == ["--mode", "observe"]
        given = {"CLUSTER": "prod-eu-1", "MODE": "delete", "USER_ID": "501", "KUBECONFIG": "/home/u/kind"}
        services = compose(given)["services"]
        for name in CLUSTER:
            words = services[name]["command"]
            assert words[words.index("--cluster") + 1] == "prod-eu-1"
            assert services[name]["volumes"][0]["source"] == "/home/u/kind"
            assert str(services[name]["user"]) == "501"
        assert services["executor"]["command"][-1] == "delete"

    def test_settings_can_be_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given = {"EVICTSTREAM_PARTITIONS": "4", "EVICTSTREAM_LOG_LEVEL": "debug"}
        for variable, value in compose(given)["services"]["worker"]["environment"].items():
            monkeypatch.setenv(variable, str(value))
        settings = load_settings().settings
        assert (settings.partitions, settings.log_level) == (4, "debug")

    def test_they_find_kafka(self) -> None:
        advertised = KAFKA["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
        for name, service in OURS.items():
            listener = "OUTSIDE" if name in CLUSTER else "INSIDE"
            assert f"{listener}://{service['environment']['EVICTSTREAM_BOOTSTRAP_SERVERS']}" in advertised

    @every_service_of_ours
    def test_can_do_nothing_but_its_work(self, name: str) -> None:
        service = OURS[name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert [mount.split(":")[0] for mount in service["tmpfs"]] == ["/tmp"]  # noqa: S108 - inside the container
        mounts = [(each["target"], each["read_only"]) for each in service.get("volumes", ())]
        assert mounts == ([("/etc/evictstream/kubeconfig", True)] if name in CLUSTER else [])
        if mounts:
            assert mounts[0][0] in service["command"]

    @every_service_of_ours
    def test_signals_arrive(self, name: str) -> None:
        assert OURS[name]["init"] is True

    def test_two_workers_that_come_back(self) -> None:
        worker = OURS["worker"]
        assert worker["deploy"]["replicas"] == 2
        assert worker["restart"] == "unless-stopped"
        assert int(worker["environment"]["EVICTSTREAM_PARTITIONS"]) >= 2
        # One id for both would make them fence each other.
        assert "EVICTSTREAM_GROUP_INSTANCE_ID" not in worker["environment"]

    def test_each_worker_is_named_after_its_container(self, tmp_path: Path) -> None:
        shown = tmp_path / "evictstream"
        shown.write_text('#!/bin/sh\necho "$EVICTSTREAM_GROUP_INSTANCE_ID $*"\n')
        shown.chmod(0o755)
        said = subprocess.run(
            [part.replace("$$", "$") for part in (*OURS["worker"]["entrypoint"], *OURS["worker"]["command"])],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOSTNAME": "1f2e3d4c5b6a"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == "1f2e3d4c5b6a worker\n"

    @pytest.mark.parametrize("name", ["worker", *CLUSTER])
    def test_it_may_finish(self, name: str) -> None:
        assert seconds(OURS[name]["stop_grace_period"]) >= STOP_TIMEOUT_SECONDS + 10


class TestAllContainers:
    @every_service
    def test_limits(self, name: str) -> None:
        assert set(SERVICES[name]["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}

    @every_service
    def test_logs_rotate(self, name: str) -> None:
        assert SERVICES[name]["logging"]["driver"] == "local"

    @every_service
    def test_restart_is_decided(self, name: str) -> None:
        assert SERVICES[name]["restart"] in {"no", "unless-stopped"}

    @every_service
    def test_no_secrets(self, name: str) -> None:
        secret = {field for field, info in Settings.model_fields.items() if SecretStr in _kinds(info.annotation)}
        assert secret == {"ssl_password", "sasl_password"}
        for variable in SERVICES[name]["environment"]:
            assert variable.removeprefix(ENVIRONMENT_PREFIX).lower() not in secret
            assert not re.search("PASSWORD|SECRET|TOKEN|CREDENTIAL|JAAS", variable)

    @every_service
    def test_ports_on_loopback_only(self, name: str) -> None:
        for port in SERVICES[name].get("ports", []):
            assert port.startswith("127.0.0.1:")


class TestKafka:
    def test_outer_address_is_the_published_one(self) -> None:
        (port,) = KAFKA["ports"]
        address, published, target = port.rsplit(":", 2)
        # Clients come back to what is advertised, so inside and outside must be the same number.
        assert published == target
        assert f"OUTSIDE://{address}:{published}" in KAFKA["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
        assert f"OUTSIDE://0.0.0.0:{target}" in KAFKA["environment"]["KAFKA_LISTENERS"].split(",")

    def test_one_broker_is_enough_for_all_topics(self) -> None:
        environment = KAFKA["environment"]
        assert Settings().replication_factor == 1
        for kind in ("OFFSETS_TOPIC", "TRANSACTION_STATE_LOG"):
            assert environment[f"KAFKA_{kind}_REPLICATION_FACTOR"] == "1"
        assert environment["KAFKA_TRANSACTION_STATE_LOG_MIN_ISR"] == "1"

    def test_no_topic_comes_by_itself(self) -> None:
        assert KAFKA["environment"]["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"

    def test_each_listener_has_a_protocol(self) -> None:
        environment = KAFKA["environment"]
        names = [each.split("://")[0] for each in environment["KAFKA_LISTENERS"].split(",")]
        protocols = dict(pair.split(":") for pair in environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
        assert sorted(protocols) == sorted(names)
        assert environment["KAFKA_INTER_BROKER_LISTENER_NAME"] in names
        assert environment["KAFKA_CONTROLLER_LISTENER_NAMES"] in names

    def test_data_is_on_a_named_volume(self) -> None:
        (mount,) = KAFKA["volumes"]
        volume, folder = mount.split(":")
        assert set(FOUND["volumes"]) == {volume}
        assert KAFKA["environment"]["KAFKA_LOG_DIRS"] == folder

    def test_heap_leaves_room_for_the_rest(self) -> None:
        heap = re.search(r"-Xmx(\d+)m", KAFKA["environment"]["KAFKA_HEAP_OPTS"])
        assert heap is not None
        assert KAFKA["deploy"]["resources"]["limits"]["memory"] == "1g"
        assert int(heap[1]) * 2 <= 1024


def test_examples_at_the_top_are_real() -> None:
    head = FILE.read_text(encoding="utf-8").split("\nname:", 1)[0]
    lines = [line.removeprefix("#").strip() for line in head.splitlines()]
    containers = [shlex.split(line.rstrip("\\")) for line in lines if line.startswith("docker compose run ")]
    assert len(containers) == 1
    for words in containers:
        service = next(word for word in words[3:] if not word.startswith("--"))
        assert service in OURS
        parse(words[words.index(service) + 1 :])
    for line in lines:
        if line.startswith("evictstream --"):
            parse(shlex.split(line)[1:])
        if line.startswith("< "):
            assert (ROOT / line.removeprefix("< ")).is_file()


def _kinds(annotation: Any) -> tuple[Any, ...]:
    return getattr(annotation, "__args__", (annotation,))
