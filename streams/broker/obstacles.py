"""What may stand between a client and one server of Kafka, in words, with what to do about it. No sockets here."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Final


class Cause(enum.StrEnum):
    """Why a server cannot be used, as logs name it."""

    UNKNOWN_HOST = "UnknownHost"
    REFUSED = "ConnectionRefused"
    UNREACHABLE = "Unreachable"
    SILENT = "NoAnswer"
    CLOSED = "ConnectionClosed"
    STARTING = "Starting"
    ADVERTISED = "AdvertisedAddress"
    NO_KAFKA = "NoKafka"
    CONTROLLER = "Controller"
    PROTOCOL = "SecurityProtocol"
    CERTIFICATE = "Certificate"
    TLS = "TlsRefused"
    MECHANISM = "SaslMechanism"
    LOGIN = "Login"


_LASTING: Final = frozenset({
    Cause.NO_KAFKA,
    Cause.CONTROLLER,
    Cause.PROTOCOL,
    Cause.CERTIFICATE,
    Cause.TLS,
    Cause.MECHANISM,
    Cause.LOGIN,
})  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class Obstacle:
    """Why one server cannot be used now.

    Attributes:
        server: `host:port` as in the settings.
        cause: for programs.
        problem: for people, a clause whose subject is the server.
        next_step: what to do.
    """

    server: str
    cause: Cause
    problem: str
    next_step: str

    @property
    def may_pass(self) -> bool:
        """Whether the same may succeed later, as while a broker starts. Else settings or the broker must change."""
        return self.cause not in _LASTING


def unknown_host(server: str, why: str) -> Obstacle:
    """Say that its name cannot be resolved."""
    problem = f"the host name cannot be resolved ({why})"
    return Obstacle(server, Cause.UNKNOWN_HOST, problem, "check the name in EVICTSTREAM_BOOTSTRAP_SERVERS, and DNS")


def connection_refused(server: str) -> Obstacle:
    """Say that the host answers, and nothing listens there."""
    return Obstacle(server, Cause.REFUSED, "connection refused", "check the port, and that the broker runs")


def unreachable(server: str, why: str) -> Obstacle:
    """Say that the network has no way there."""
    return Obstacle(server, Cause.UNREACHABLE, f"cannot be reached ({why})", "check the address and the network")


def silent(server: str, seconds: float, *, is_connected: bool) -> Obstacle:
    """Say that nothing came within `seconds`: to connect, or to a request."""
    if is_connected:
        problem = f"accepts connections, but has not answered for {seconds:g} s"
        return Obstacle(server, Cause.SILENT, problem, "check that the broker is not frozen or overloaded")
    problem = f"no answer within {seconds:g} s"
    return Obstacle(server, Cause.SILENT, problem, "check the address, firewalls, and that its machine runs")


def closed(server: str, why: str) -> Obstacle:
    """Say that it ends the connection without a reason."""
    problem = f"closed the connection ({why})"
    return Obstacle(server, Cause.CLOSED, problem, "check that a listener of Kafka has this port; its log says more")


def starting(server: str) -> Obstacle:
    """Say that it knows no brokers yet, not even itself."""
    return Obstacle(server, Cause.STARTING, "the broker is starting", "wait, then look at its log")


def advertised(server: str, brokers: Sequence[str], why: str) -> Obstacle:
    """Say that it answers, and sends clients to addresses that lead nowhere from here."""
    problem = f"answers, but its brokers advertise {', '.join(brokers)}, which cannot be reached from here ({why})"
    return Obstacle(server, Cause.ADVERTISED, problem, "check advertised.listeners of the brokers, and the network")


def no_kafka(server: str) -> Obstacle:
    """Say that what answers speaks some other protocol."""
    return Obstacle(server, Cause.NO_KAFKA, "something that is not Kafka answers", "check host and port")


def controller(server: str) -> Obstacle:
    """Say that it is a KRaft controller."""
    return Obstacle(server, Cause.CONTROLLER, "is a controller, not a broker", "use the port of a broker's listener")


def other_protocol(server: str, *, spoken: str, chosen: str, mechanisms: Sequence[str] = ()) -> Obstacle:
    """Say that it speaks another security protocol than the settings; `mechanisms` are those of its logins."""
    problem = f"speaks {_in_words(spoken)}, but the settings say {_in_words(chosen)}"
    next_step = f"set EVICTSTREAM_SECURITY_PROTOCOL={spoken}"
    if mechanisms:
        next_step += f", user and password, and EVICTSTREAM_SASL_MECHANISM to one of {', '.join(mechanisms)}"
    return Obstacle(server, Cause.PROTOCOL, problem, next_step)


def certificate(server: str, why: str) -> Obstacle:
    """Say that its certificate does not prove who it is."""
    problem = f"its certificate is not accepted ({why})"
    next_step = "set EVICTSTREAM_SSL_CAFILE to the authority that signed it, and use a name that it contains"
    return Obstacle(server, Cause.CERTIFICATE, problem, next_step)


def tls(server: str, why: str) -> Obstacle:
    """Say that it refuses TLS as this client speaks it, as where it wants a certificate of the client."""
    problem = f"refused the TLS connection ({why})"
    next_step = "if brokers want client certificates, set EVICTSTREAM_SSL_CERTFILE and EVICTSTREAM_SSL_KEYFILE"
    return Obstacle(server, Cause.TLS, problem, next_step)


def other_mechanism(server: str, *, chosen: str, mechanisms: Sequence[str]) -> Obstacle:
    """Say that it lets nobody in with the mechanism of the settings."""
    problem = f"does not offer SASL {chosen}, only {', '.join(mechanisms) or 'nothing'}"
    return Obstacle(server, Cause.MECHANISM, problem, "set EVICTSTREAM_SASL_MECHANISM to one that it offers")


def wrong_login(server: str, why: str) -> Obstacle:
    """Say that it knows no such user, or another password."""
    next_step = "check EVICTSTREAM_SASL_USERNAME, its password, and that Kafka knows this user"
    return Obstacle(server, Cause.LOGIN, f"refused the login ({why})", next_step)


def _in_words(protocol: str) -> str:
    tls_word = "TLS" if protocol.endswith("SSL") else "no TLS"
    return f"{protocol} ({tls_word}, {'a login' if protocol.startswith('SASL') else 'no login'})"
