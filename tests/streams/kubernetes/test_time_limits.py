"""Nothing that an API server, a proxy or a plugin does holds a request for longer than its time."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evictstream.kit.conformance.fake_api import FakeApi
from evictstream.streams.errors import ApiUnreachableError, CredentialsError, NotSentError
from evictstream.streams.kubernetes import exchange, exec_plugin
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.connection import Connection

PODS = "/api/v1/pods"
LIMIT_SECONDS = 0.6
PAUSE_SECONDS = 0.1
"""Between bytes: no limit on the next bytes would end such an answer."""

MOST_PIECES = 80
"""After these it hangs up: a request without a limit on its whole time takes eight seconds, and then fails."""

PARTS = {
    "the status line": (b"", b"HTTP/1.1 200 OK"),
    "the headers": (b"HTTP/1.1 200 OK\r\n", b"X: 1\r\n"),
    "a body of known length": (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x"),
    "a body in chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "a body to the end": (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", b"x"),
}


class DripServer:
    """Answers each connection with a beginning, and then with some bytes again and again."""

    def __init__(self, begin: bytes, more: bytes) -> None:
        self.begin, self.more = begin, more
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.ended = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while not self.ended.is_set():
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(one,), daemon=True).start()

    def serve(self, one: socket.socket) -> None:
        with one:
            try:
                one.recv(65_536)
                one.sendall(self.begin)
                for _ in range(MOST_PIECES):
                    if not self.ended.wait(PAUSE_SECONDS):
                        one.sendall(self.more)
            except OSError:
                pass

    def close(self) -> None:
        self.ended.set()
        self.listener.close()


@pytest.fixture
def serve() -> Iterator[Callable[[bytes, bytes], DripServer]]:
    servers: list[DripServer] = []

    def begin(*parts: bytes) -> DripServer:
        servers.append(DripServer(*parts))
        return servers[-1]

    yield begin
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_REQUEST_SECONDS", LIMIT_SECONDS)


def connect(folder: Path, server: str, user: dict[str, Any] | None = None) -> Connection:
    config = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "it", "user": user or {"token": "t"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    }
    file = folder / "config"
    file.write_text(json.dumps(config))
    return Connection(ClusterAccess(kubeconfig=str(file)))


def seconds_of(run: Callable[[], object], error: type[Exception]) -> float:
    began = time.monotonic()
    with pytest.raises(error):
        run()
    return time.monotonic() - began


@pytest.mark.parametrize("part", PARTS)
def test_an_answer_byte_by_byte_ends_with_its_time(part: str, serve: Callable[..., DripServer], tmp_path: Path) -> None:
    port = serve(*PARTS[part]).listener.getsockname()[1]
    connection = connect(tmp_path, f"http://127.0.0.1:{port}")
    assert seconds_of(lambda: connection.get(PODS), ApiUnreachableError) < 5


def test_a_hand_shake_without_an_end_ends_with_its_time(serve: Callable[..., DripServer], tmp_path: Path) -> None:
    record = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc"  # the begin of a long ServerHello
    port = serve(record, b"\x03").listener.getsockname()[1]
    connection = connect(tmp_path, f"https://127.0.0.1:{port}")
    assert seconds_of(lambda: connection.get(PODS), ApiUnreachableError) < 5


def test_a_watch_has_its_headers_in_time(serve: Callable[..., DripServer], tmp_path: Path) -> None:
    port = serve(*PARTS["the headers"]).listener.getsockname()[1]
    connection = connect(tmp_path, f"http://127.0.0.1:{port}")

    def watch() -> None:
        with connection.watch(PODS, {"watch": "true"}, quiet_seconds=30):
            pass

    assert seconds_of(watch, ApiUnreachableError) < 5


def test_a_watch_may_take_longer_than_a_request(tmp_path: Path) -> None:
    with FakeApi() as api:
        connection = connect(tmp_path, api.url)
        query = {"watch": "true", "resourceVersion": str(api.version)}
        with connection.watch(PODS, query, quiet_seconds=30) as lines:
            time.sleep(2 * LIMIT_SECONDS)  # the time that a request would have had
            api.put("Pod", "late", spec={"nodeName": "n"})
            assert b"late" in next(lines)


def hanging(folder: Path) -> dict[str, Any]:
    plugin = folder / "plugin.sh"
    plugin.write_text("#!/bin/sh\nsleep 1000 &\nwait\n")  # what it starts holds its output open
    plugin.chmod(0o755)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}


def test_a_plugin_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exec_plugin, "PLUGIN_SECONDS", 0.3)
    monkeypatch.setattr(exchange, "_REQUEST_SECONDS", 30.0)
    with FakeApi() as api:
        connection = connect(tmp_path, api.url, hanging(tmp_path))
        assert seconds_of(lambda: connection.get(PODS), CredentialsError) < 5
        assert not api.requests


def test_nobody_waits_longer_for_a_plugin_than_a_request_may(tmp_path: Path) -> None:
    with FakeApi() as api:
        connection = connect(tmp_path, api.url, hanging(tmp_path))
        took: list[float] = []
        threads = [
            threading.Thread(target=lambda: took.append(seconds_of(lambda: connection.get(PODS), CredentialsError)))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(took) == 8
        assert max(took) < 5


def test_a_write_is_not_sent_again_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer 401 comes in time, the plugin's new token after it."""
    monkeypatch.setattr(exchange, "_REQUEST_SECONDS", 30.0)
    plugin = tmp_path / "plugin.sh"
    shown = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}
    plugin.write_text(f"#!/bin/sh\nsleep $(cat {tmp_path}/pause)\necho '{json.dumps(shown)}'\n")
    plugin.chmod(0o755)
    (tmp_path / "pause").write_text("0")
    with FakeApi() as api:
        user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin)}}
        connection = connect(tmp_path, api.url, user)
        connection.get(PODS)
        (tmp_path / "pause").write_text("1.5")
        api.trouble["delete pods"] = [401]
        until = time.monotonic() + 1
        with pytest.raises(NotSentError):
            connection.send("DELETE", f"{PODS}/a", send_until=lambda: until)
        assert [write.status for write in api.writes] == [401]


def test_a_write_over_a_slow_connection_is_not_sent(serve: Callable[..., DripServer], tmp_path: Path) -> None:
    server = serve(b"", b"")
    connection = connect(tmp_path, f"https://127.0.0.1:{server.listener.getsockname()[1]}")
    began = time.monotonic()
    with pytest.raises((NotSentError, ApiUnreachableError)):
        connection.send("DELETE", f"{PODS}/a", send_until=lambda: began + 0.2)
    assert time.monotonic() - began < 5
