from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Self

import pytest

from evictstream.streams.broker import container, locate
from evictstream.streams.broker.container import _container, engine_answers
from evictstream.streams.errors import ContainerUnavailableError
from evictstream.streams.settings import Settings


@contextlib.contextmanager
def fake_container() -> Iterator[str]:
    yield "127.0.0.1:1"


def broken_container() -> contextlib.AbstractContextManager[str]:
    reason = "no such image"
    raise ContainerUnavailableError(reason)


class FakeEmbedded:
    bootstrap_servers = "127.0.0.1:2"
    description = "embedded"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def test_settings_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "engine_answers", lambda: pytest.fail("looked further"))
    with locate.locate(Settings(bootstrap_servers="theirs:9092")) as broker:
        assert (broker.kind, broker.bootstrap_servers) == ("settings", "theirs:9092")


def test_a_container_comes_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "engine_answers", lambda: True)
    monkeypatch.setattr(locate, "container_broker", fake_container)
    with locate.locate(Settings()) as broker:
        assert (broker.kind, broker.bootstrap_servers) == ("container", "127.0.0.1:1")


@pytest.mark.parametrize("answers", [False, True], ids=["no-engine", "container-fails"])
def test_the_embedded_one_comes_last(answers: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 - a case
    monkeypatch.setattr(locate, "engine_answers", lambda: answers)
    monkeypatch.setattr(locate, "container_broker", broken_container)
    monkeypatch.setattr(locate, "EmbeddedBroker", FakeEmbedded)
    with locate.locate(Settings()) as broker:
        assert (broker.kind, broker.bootstrap_servers) == ("embedded", "127.0.0.1:2")


def test_without_an_engine_the_answer_comes_within_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as silent:  # accepts connections and says nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{silent.getsockname()[1]}")
        started_at = time.monotonic()
        assert engine_answers() is False
    assert time.monotonic() - started_at < 2


def test_nobody_at_the_engines_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/engine.sock")
    assert engine_answers() is False


def test_the_containers_port_is_published_on_loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("testcontainers")
    monkeypatch.setattr("testcontainers.core.container.DockerClient", lambda **_: None)
    made = _container(23_456)
    assert dict[str, object](made.ports) == {"23456/tcp": ("127.0.0.1", 23_456)}
    assert made.image == container.IMAGE
    assert made.env["KAFKA_ADVERTISED_LISTENERS"] == "PLAINTEXT://127.0.0.1:23456"
    assert made.env["KAFKA_CONTROLLER_QUORUM_VOTERS"] == "1@127.0.0.1:19093"


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.skipif(not engine_answers(), reason="no container engine answers here")
def test_a_real_container_answers() -> None:
    from evictstream.streams.broker.admin_client import probe  # noqa: PLC0415 - only here

    with container.container_broker() as servers:
        assert probe(servers) is not None
