"""Clusters of one executor, on a real Kafka: what is wrong with one of them costs the other nothing."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.broker.feed_states import FeedState
from evictstream.streams.broker.producers import open_producer
from evictstream.streams.executor import cluster_check, cluster_life, command_consumer
from evictstream.streams.executor.eviction import ExecutorMode
from evictstream.streams.executor.orders import ClusterOrder, ExecutionOptions
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.partitioner import partition_of
from evictstream.streams.settings import Settings
from tests.harness.executing import CommandWriter, executing
from tests.harness.free_port import free_port, ready
from tests.harness.reading import TopicReader
from tests.streams.executor.conftest import PODS, cluster, command_now

pytestmark = pytest.mark.kafka

PATIENCE_SECONDS = 30.0
MOST_WAITING = 50


Break = Callable[[FakeApi, Path, Settings], None]


@contextlib.contextmanager
def two(
    settings: Settings, folder: Path, break_first: Break | None = None
) -> Iterator[tuple[FakeApi, FakeApi, Callable[[], dict[str, object]]]]:
    """Run an executor of the clusters `a` and `b`, which share a partition; gives both, and what `/readyz` says."""
    assert len({partition_of(name, settings.partitions) for name in (b"a", b"b")}) == 1
    port = free_port()
    served = settings.model_copy(update={"health_port": port})
    with cluster("a", folder) as (a, of_a), cluster("b", folder) as (b, of_b):
        if break_first is not None:
            break_first(a, folder / "kubeconfig-of-a", settings)
        orders = [_order("a", of_a), _order("b", of_b)]
        with executing(served, orders, ExecutionOptions(group=f"{settings.application_id}-executor")):
            yield a, b, lambda: ready(port)


def _order(name: str, access: ClusterAccess) -> ClusterOrder:
    return ClusterOrder(name=name, access=access, mode=ExecutorMode.DELETE)


def write_all(writer: CommandWriter, name: str, count: int = PODS) -> None:
    """Have that many pods due."""
    for begin in range(0, count, 100):
        writer.write(
            *(
                command_now(f"p-{number}", cluster=name, node=f"m-{number % PODS}", node_uid=f"uid-m-{number % PODS}")
                for number in range(begin, min(begin + 100, count))
            )
        )


def succeeded(results: TopicReader, name: str) -> None:
    results.wait_for(
        lambda seen: (
            sum(1 for one in seen if one.value["cluster"] == name and one.value.get("outcome") == "Succeeded") >= PODS
        ),
        f"each pod of {name}",
        PATIENCE_SECONDS,
    )


def revoke(api: FakeApi, _file: Path, _settings: Settings) -> None:
    api.forbidden = {"delete pods"}


def rebuild(_api: FakeApi, _file: Path, settings: Settings) -> None:
    state = FeedState(cluster_uid="another", epoch=0, resource_version=1)
    value = {"clusterUid": state.cluster_uid, "epoch": state.epoch, "resourceVersion": state.resource_version}
    with open_producer(settings, delivery_seconds=PATIENCE_SECONDS) as producer:
        producer.send(settings.feeds_topic, key=b"a", value=json.dumps(value).encode(), partition=0)
        producer.flush()


def lose_credentials(_api: FakeApi, file: Path, _settings: Settings) -> None:
    _with_plugin(file, "false")


def hang_plugin(_api: FakeApi, file: Path, _settings: Settings) -> None:
    _with_plugin(file, "sleep", "60")


def _with_plugin(file: Path, command: str, *arguments: str) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": command}
    config = json.loads(file.read_text())
    config["users"][0]["user"] = {"exec": plugin | {"args": arguments}}
    file.write_text(json.dumps(config))


def drip(_api: FakeApi, file: Path, _settings: Settings) -> None:
    """Have an API server answer a byte a second, without end."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError), listener, listener.accept()[0] as client:
            client.recv(65_536)
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while True:
                client.sendall(b" ")
                time.sleep(1)

    threading.Thread(target=serve, daemon=True).start()
    config = json.loads(file.read_text())
    config["clusters"][0]["cluster"]["server"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
    file.write_text(json.dumps(config))


@pytest.mark.parametrize("break_first", [revoke, rebuild, lose_credentials, hang_plugin, drip])
def test_a_cluster_that_cannot_be_checked_holds_up_no_other(
    declared: Settings,
    writer: CommandWriter,
    results: TopicReader,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    break_first: Break,
) -> None:
    monkeypatch.setattr(cluster_check, "RIGHTS_SECONDS", 0.0)
    with two(declared, tmp_path, break_first) as (_, _b, ready):
        write_all(writer, "b")
        succeeded(results, "b")
        found = ready()

    assert found["status"] == "not ready"
    assert list(found["hindered"]) == ["a"]  # type: ignore[call-overload]


def test_a_right_that_is_granted_later_is_enough(
    declared: Settings, writer: CommandWriter, results: TopicReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_check, "RIGHTS_SECONDS", 0.0)
    monkeypatch.setattr(cluster_life, "REFUSED_SECONDS", 0.1)
    with two(declared, tmp_path, revoke) as (a, _, _ready):
        write_all(writer, "b")
        succeeded(results, "b")
        a.forbidden = set()
        write_all(writer, "a")
        succeeded(results, "a")


def test_sign_in_that_fails_first_is_tried_again(
    declared: Settings, writer: CommandWriter, results: TopicReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_life, "CREDENTIALS_SECONDS", 0.1)
    port, token = free_port(), tmp_path / "token"
    served = declared.model_copy(update={"health_port": port})
    with cluster("a", tmp_path) as (_, access):
        _with_plugin(tmp_path / "kubeconfig-of-a", "cat", str(token))
        with executing(served, [_order("a", access)], ExecutionOptions(group=f"{served.application_id}-executor")):
            while "no credentials" not in str(ready(port).get("hindered")):
                time.sleep(0.1)
            shown = {
                "apiVersion": "client.authentication.k8s.io/v1",
                "kind": "ExecCredential",
                "status": {"token": "t"},
            }
            token.write_text(json.dumps(shown))
            write_all(writer, "a")
            succeeded(results, "a")


def test_a_dead_cluster_with_much_due_costs_no_other(
    declared: Settings, writer: CommandWriter, results: TopicReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_consumer, "_MOST_WAITING", MOST_WAITING)
    with two(declared, tmp_path) as (a, _, ready):
        write_all(writer, "a")
        succeeded(results, "a")
        a.is_down = True
        write_all(writer, "a", 20 * MOST_WAITING)
        while "a" not in str(ready().get("hindered")):
            time.sleep(0.1)
        write_all(writer, "b")
        began = time.monotonic()
        succeeded(results, "b")

    assert time.monotonic() - began < PATIENCE_SECONDS / 3
