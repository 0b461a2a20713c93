"""One connection to a server on which requests are answered in turn, each within a time limit.

kafka-python's own connections retry what went wrong and keep the reason to themselves. This one ends with it. Requests,
answers and logins are the library's.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from kafka.errors import IllegalSaslStateError, UnsupportedSaslMechanismError
from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.parser import KafkaProtocol
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

CONNECT_SECONDS: Final = 1.0
"""For an address to accept a connection; a round trip around the world takes a third of it."""

REPLY_SECONDS: Final = 2.0
"""For TLS, and for each answer. A broker that is well takes milliseconds, and one that throttles logins a second."""

_LARGEST_ANSWER_BYTES: Final = 1_048_576
"""Versions and brokers are some kilobytes. The first bytes of another protocol are a size of hundreds of megabytes."""

_RECEIVED_BYTES: Final = 65_536


class LoginRefusedError(Exception):
    """The server refuses the login; the text is its own."""


class MechanismError(Exception):
    """The server wants no login, or one of other `mechanisms`."""

    def __init__(self, mechanisms: tuple[str, ...]) -> None:
        self.mechanisms = mechanisms
        super().__init__(", ".join(mechanisms))


def connect(host: str, port: int) -> socket.socket:
    """Connect. Raises `OSError`."""
    try:
        return socket.create_connection((host, port), timeout=CONNECT_SECONDS)
    except UnicodeError as error:  # a part of the name is empty, or too long to ask DNS for
        raise socket.gaierror(socket.EAI_NONAME, "it is no name of a host") from error


class Dialogue:
    """A connection that asks and is answered. Use it as a context manager.

    Each method may raise `OSError`, which `ssl.SSLError` is too, and `KafkaError` for an answer that is not Kafka's.
    """

    def __init__(self, connection: socket.socket, host: str, *, tls: ssl.SSLContext | None, client_id: str) -> None:
        """Take over an open connection, and speak TLS on it if `tls` says how."""
        connection.settimeout(REPLY_SECONDS)
        try:
            self._socket = connection if tls is None else tls.wrap_socket(connection, server_hostname=host)
        except BaseException:
            connection.close()
            raise
        self._host = host
        self._protocol = KafkaProtocol(client_id=client_id, receive_message_max_bytes=_LARGEST_ANSWER_BYTES)

    def __enter__(self) -> Self:
        """Use it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self._socket.close()

    def mechanisms(self, wanted: str) -> tuple[str, ...] | None:
        """Begin a login; return the mechanisms that the server offers, none where no login is possible."""
        answer = self._ask(SaslHandshakeRequest(mechanism=wanted, version=1))
        if answer.error_code == IllegalSaslStateError.errno:
            return None
        return tuple(answer.mechanisms)

    def log_in(self, security: Mapping[str, Any]) -> None:
        """Log in as the security arguments say.

        Raises:
            MechanismError: the server wants no login, or another one.
            LoginRefusedError: it refuses this one.
        """
        name = str(security["sasl_mechanism"])
        answer = self._ask(SaslHandshakeRequest(mechanism=name, version=1))
        if answer.error_code in {IllegalSaslStateError.errno, UnsupportedSaslMechanismError.errno}:
            raise MechanismError(tuple(answer.mechanisms))
        mechanism = get_sasl_mechanism(name)(host=self._host, **security)
        while not mechanism.is_done():
            answer = self._ask(SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes(), version=0))
            if answer.error_code:
                raise LoginRefusedError(answer.error_message or "no reason given")
            try:
                mechanism.receive(answer.auth_bytes)
            except (KeyError, ValueError) as error:  # half an answer, or one that proves nothing
                raise LoginRefusedError(str(error)) from error

    def versions(self) -> BrokerVersionData:
        """Ask which requests the server takes, which tells its version."""
        answer = self._ask(ApiVersionsRequest(version=0))
        return BrokerVersionData(
            api_versions={one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        )

    def metadata(self, versions: BrokerVersionData) -> Any:
        """Ask for the cluster's id and its brokers."""
        version = versions.api_version(MetadataRequest)
        return self._ask(MetadataRequest(topics=[], allow_auto_topic_creation=False, version=version))

    def _ask(self, request: Any) -> Any:
        until = time.monotonic() + REPLY_SECONDS
        self._protocol.send_request(request)
        self._socket.sendall(self._protocol.send_bytes())
        while True:
            self._socket.settimeout(max(0.001, until - time.monotonic()))
            received = self._socket.recv(_RECEIVED_BYTES)
            if not received:
                raise ConnectionResetError("no answer before the end")
            for _, answer in self._protocol.receive_bytes(received):
                return answer
