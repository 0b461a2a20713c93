from __future__ import annotations

import socket
import sys

import pytest

from evictstream.streams.broker import ports as ports_module
from evictstream.streams.broker.embedded import EmbeddedBroker
from evictstream.streams.broker.ports import FIRST_PORT, LAST_PORT, free_ports, reserve

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a server listen at a reserved port")


def test_free_ports_differ_and_lie_below_outgoing_ones() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        assert FIRST_PORT <= port <= LAST_PORT < 32_768
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


@on_linux
def test_reserved_port_is_given_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    (port,) = free_ports(1)
    monkeypatch.setattr(ports_module, "FIRST_PORT", port)
    monkeypatch.setattr(ports_module, "LAST_PORT", port)
    (holder,) = reserve([port])
    with holder, pytest.raises(OSError, match="no 1 free ports"):
        free_ports(1)
    assert free_ports(1) == [port]


@on_linux
def test_a_server_listens_at_a_reserved_port() -> None:
    (port,) = free_ports(1)
    (holder,) = reserve([port])
    with holder, socket.create_server(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)):
        assert reserve([port]) == [], "somebody listens there"


@on_linux
@pytest.mark.kafka
def test_ports_of_a_broker_that_is_down_stay_its_own(own_broker: EmbeddedBroker) -> None:
    address = own_broker.nodes[0].address
    own_broker.kill()
    for port in (address.client_port, address.controller_port):
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    own_broker.start()
