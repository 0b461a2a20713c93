"""Why Kafka cannot be used is known within seconds, by the first connection."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping

import pytest
import structlog

from evictstream.streams.broker import dialogue, first_contact
from evictstream.streams.broker.first_contact import KafkaFacts, look_at
from evictstream.streams.broker.locate import Broker
from evictstream.streams.broker.obstacles import Cause, Obstacle
from evictstream.streams.broker.ports import free_ports
from evictstream.streams.errors import BrokerUnreachableError, BrokerUnusableError
from tests.harness.secured import CLIENT_KEY_PASSWORD, CLIENT_PEM

PLAIN: dict[str, object] = {"security_protocol": "PLAINTEXT"}
LOGIN = {"sasl_mechanism": "PLAIN", "sasl_plain_username": "alice", "sasl_plain_password": "made-up-1"}

Answer = Callable[[socket.socket], None]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialogue, "REPLY_SECONDS", 0.1)
    monkeypatch.setattr(dialogue, "CONNECT_SECONDS", 0.1)


@contextlib.contextmanager
def server(answer: Answer) -> Iterator[str]:
    """Serve each connection in turn with `answer`, and close it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def says_nothing(connection: socket.socket) -> None:
    connection.settimeout(5)
    while connection.recv(65_536):
        pass


def closes(connection: socket.socket) -> None:
    connection.recv(1)


def speaks_http(connection: socket.socket) -> None:
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def speaks_tls(connection: socket.socket) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CLIENT_PEM, password=CLIENT_KEY_PASSWORD)
    with context.wrap_socket(connection, server_side=True) as wrapped:
        request = wrapped.recv(65_536)
        # SaslHandshake: no login is possible here (34), and there are no mechanisms.
        wrapped.sendall(b"\0\0\0\x0a" + request[8:12] + b"\0\x22" + b"\0\0\0\0")


def obstacle(address: str, security: Mapping[str, object]) -> Obstacle:
    found = look_at(address, security, client_id="test")
    assert isinstance(found, Obstacle)
    return found


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (says_nothing, Cause.SILENT),
        (closes, Cause.CLOSED),
        (speaks_http, Cause.NO_KAFKA),
        (speaks_tls, Cause.PROTOCOL),
    ],
)
def test_what_listens_is_told_apart(answer: Answer, cause: Cause) -> None:
    with server(answer) as address:
        assert obstacle(address, PLAIN).cause is cause


def test_a_certificate_of_nobody_is_told() -> None:
    with server(speaks_tls) as address:
        security = {"security_protocol": "SSL", "ssl_context": ssl.create_default_context()}
        assert obstacle(address, security).cause is Cause.CERTIFICATE


def test_nobody_there_is_told_from_no_such_host() -> None:
    (port,) = free_ports(1)
    assert obstacle(f"127.0.0.1:{port}", PLAIN).cause is Cause.REFUSED
    assert obstacle("no-such-host.invalid:9092", PLAIN).cause is Cause.UNKNOWN_HOST


@pytest.mark.usefixtures("impatient")
def test_only_what_may_pass_is_waited_for() -> None:
    (port,) = free_ports(1)
    with pytest.raises(BrokerUnreachableError) as waited:
        contact(f"127.0.0.1:{port}", wait_seconds=0.3)
    assert waited.value.waited_seconds == 0.3
    with server(speaks_http) as address, pytest.raises(BrokerUnusableError):
        contact(f"127.0.0.1:{port},{address}", wait_seconds=5)


def contact(servers: str, *, wait_seconds: float) -> KafkaFacts:
    return first_contact.first_contact(servers, PLAIN, client_id="test", wait_seconds=wait_seconds, is_told=True)


def test_each_cause_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_contact, "SAY_SECONDS", 0.1)
    (port,) = free_ports(1)
    with structlog.testing.capture_logs() as told, pytest.raises(BrokerUnreachableError):
        contact(f"127.0.0.1:{port}", wait_seconds=0.6)
    # Clients of other tests may still look for their brokers in this process.
    waiting = [line for line in told if line["event"] == "waiting for Kafka"]
    assert [(line["cause"], line["log_level"]) for line in waiting] == [(Cause.REFUSED, "warning")]


def test_silence_is_logged_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_contact, "SAY_SECONDS", 0.01)
    monkeypatch.setattr(dialogue, "REPLY_SECONDS", 0.3)
    with (
        server(says_nothing) as address,
        structlog.testing.capture_logs() as told,
        pytest.raises(BrokerUnreachableError),
    ):
        contact(address, wait_seconds=0.1)
    assert [line["cause"] for line in told if line["event"] == "waiting for Kafka"] == [Cause.SILENT, Cause.SILENT]


def test_what_is_waited_for_is_said_within_three_seconds() -> None:
    assert first_contact.SAY_SECONDS <= dialogue.CONNECT_SECONDS + dialogue.REPLY_SECONDS <= 3


class TestRealBroker:
    def test_it_says_what_it_is(self, kafka: Broker) -> None:
        server = kafka.bootstrap_servers.split(",")[0]
        found = look_at(server, PLAIN, client_id="test")
        assert isinstance(found, KafkaFacts)
        assert found.brokers >= 1
        assert found.cluster_id
        assert int(found.version.split(".")[0]) >= 3

    @pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
    def test_another_protocol_is_named(self, protocol: str, kafka: Broker) -> None:
        security: dict[str, object] = {"security_protocol": protocol}
        security |= LOGIN if protocol.startswith("SASL") else {}
        security |= {"ssl_context": ssl.create_default_context()} if protocol.endswith("SSL") else {}
        found = obstacle(kafka.bootstrap_servers.split(",")[0], security)
        assert found.cause is Cause.PROTOCOL
        assert found.next_step == "set EVICTSTREAM_SECURITY_PROTOCOL=PLAINTEXT"

    def test_an_address_that_leads_nowhere_is_named(self, kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        server = kafka.bootstrap_servers.split(",")[0]
        (port,) = free_ports(1)
        asked = dialogue.Dialogue.metadata

        def elsewhere(self: dialogue.Dialogue, versions: object) -> object:
            answer = asked(self, versions)
            for broker in answer.brokers:
                broker.port = port
            return answer

        monkeypatch.setattr(dialogue.Dialogue, "metadata", elsewhere)
        assert obstacle(server, PLAIN).cause is Cause.ADVERTISED
