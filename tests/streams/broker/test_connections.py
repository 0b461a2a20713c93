"""What kafka-python's clients, as the product makes them, leave behind where no connection comes about."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator
from types import coroutine
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError
from kafka.net.inet import KafkaNetSocket
from kafka.net.selector import NetworkSelector

from evictstream.streams.broker.connections import use_reported_connections
from evictstream.streams.broker.ports import free_ports


@pytest.fixture(autouse=True)
def _as_the_product() -> None:
    use_reported_connections()


class NeverReady:
    """A loop on which no socket becomes ready."""

    @coroutine
    def wait_write(self, _: socket.socket, timeout_at: float | None) -> Generator[None, None, None]:
        """Wait for ever."""
        del timeout_at
        while True:
            yield


def trying(sock: socket.socket, net: Any, port: int) -> Any:
    sock.settimeout(0)
    return KafkaNetSocket().sock_connect(net, sock, ("127.0.0.1", port))


def test_a_refused_socket_is_closed() -> None:
    (port,) = free_ports(1)
    sock = socket.socket()
    net = NetworkSelector()
    with contextlib.closing(net), pytest.raises(KafkaConnectionError):
        net.run(lambda: trying(sock, net, port))
    assert sock.fileno() == -1


def test_a_socket_whose_client_ends_first_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        sock = socket.socket()
        attempt = trying(sock, NeverReady(), port)
        attempt.send(None)
        attempt.close()
    assert sock.fileno() == -1
