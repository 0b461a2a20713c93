"""The first contact with Kafka: whether it can be used as the settings say, and within seconds why not.

Clients of Kafka try again in silence for as long as they may, whatever the cause. A command that cannot begin says it
instead: at once where the cause does not pass by waiting, such as a wrong login. A broker that is not there may be
starting, so it is tried again for a while, and the log names the cause meanwhile.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import structlog
from kafka.errors import IncompatibleBrokerVersion, KafkaError

from evictstream.streams.broker import obstacles
from evictstream.streams.broker.dialogue import (
    CONNECT_SECONDS,
    REPLY_SECONDS,
    Dialogue,
    LoginRefusedError,
    MechanismError,
    connect,
)
from evictstream.streams.broker.obstacles import Cause, Obstacle
from evictstream.streams.errors import BrokerUnreachableError, BrokerUnusableError

log = structlog.get_logger(__name__)

CONTACT_AGAIN_SECONDS: Final = 0.25
"""Between attempts to reach a broker: soon enough for a person, seldom enough for a broker that is starting."""

SAY_SECONDS: Final = 1.0
"""A Kafka that is there so soon is worth no line; after longer a person wonders whether anything happens."""

_MOST_ADVERTISED: Final = 3
"""Addresses of brokers that are tried: one that works is enough, and each may take `CONNECT_SECONDS`."""

_ALERT: Final = "ALERT"
"""In the reason of an error that the other side of a TLS connection has sent."""


class KafkaFacts(NamedTuple):
    """What Kafka says of itself.

    Attributes:
        cluster_id: its id; empty before Kafka 0.10.1.
        version: of the server that was asked, as `4.1`: what its requests tell, so without the third number.
        brokers: how many take part.
    """

    cluster_id: str
    version: str
    brokers: int


def first_contact(
    servers: str, security: Mapping[str, Any], *, client_id: str, wait_seconds: float, is_told: bool
) -> KafkaFacts:
    """Try each server until one can be used.

    Args:
        servers: `host:port,host:port`.
        security: arguments of kafka-python's clients, with the password.
        client_id: for Kafka's logs and quotas.
        wait_seconds: how long to try.
        is_told: whether the log says what it waits for.

    Raises:
        BrokerUnusableError: what is wrong does not pass by waiting.
        BrokerUnreachableError: time is up.
    """
    give_up_at = time.monotonic() + wait_seconds
    with _Word(servers, wait_seconds) if is_told else contextlib.nullcontext() as word:
        while True:
            found: list[Obstacle] = []
            for server in servers.split(","):
                seen = look_at(server, security, client_id=client_id)
                if isinstance(seen, KafkaFacts):
                    return seen
                found.append(seen)
            for one in found:
                if not one.may_pass:
                    raise BrokerUnusableError(one.server, problem=one.problem, next_step=one.next_step)
            if word is not None:
                word.tell(found)
            if time.monotonic() + CONTACT_AGAIN_SECONDS > give_up_at:
                problem, next_step = _in_words(found), found[0].next_step
                raise BrokerUnreachableError(servers, waited_seconds=wait_seconds, reason=problem, next_step=next_step)
            time.sleep(CONTACT_AGAIN_SECONDS)


class _Word:
    """Says in the log what is waited for: first after `SAY_SECONDS`, whatever blocks, then each new cause at once."""

    def __init__(self, servers: str, wait_seconds: float) -> None:
        self._servers = servers
        self._wait_seconds = wait_seconds
        self._latest = ("no answer yet", Cause.SILENT)  # as while DNS is asked
        self._said: set[str] | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(SAY_SECONDS, self._begin)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        """Begin to wait."""
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say nothing more."""
        self._timer.cancel()
        self._timer.join()

    def tell(self, found: Sequence[Obstacle]) -> None:
        """Take note of what stands in the way now."""
        with self._lock:
            self._latest = (_in_words(found), found[0].cause)
            self._say()

    def _begin(self) -> None:
        with self._lock:
            self._said = set()
            self._say()

    def _say(self) -> None:
        problem, cause = self._latest
        if self._said is None or problem in self._said:
            return
        self._said.add(problem)
        log.warning(
            "waiting for Kafka",
            bootstrap_servers=self._servers,
            cause=str(cause),
            problem=problem,
            wait_seconds=self._wait_seconds,
        )


def _in_words(found: Sequence[Obstacle]) -> str:
    if len(found) == 1:
        return found[0].problem
    return ", ".join(f"{one.server}: {one.problem}" for one in found)


def look_at(server: str, security: Mapping[str, Any], *, client_id: str) -> KafkaFacts | Obstacle:
    """Connect to one server as the settings say, log in, and ask what it is; or return what stands in the way."""
    host, _, port_text = server.rpartition(":")
    host, port = host.strip("[]"), int(port_text)
    try:
        connection = connect(host, port)
    except OSError as error:
        return _of_connecting(server, error)
    try:
        with Dialogue(connection, host, tls=security.get("ssl_context"), client_id=client_id) as dialogue:
            if security.get("sasl_mechanism"):
                dialogue.log_in(security)
            return _of_cluster(server, (host, port), dialogue)
    except (MechanismError, LoginRefusedError) as error:
        return _of_login(server, security, error)
    except (OSError, KafkaError) as error:
        return _of_talk(server, (host, port), security, error)


def _of_login(server: str, security: Mapping[str, Any], error: MechanismError | LoginRefusedError) -> Obstacle:
    if isinstance(error, LoginRefusedError):
        return obstacles.wrong_login(server, str(error))
    if error.mechanisms:
        return obstacles.other_mechanism(server, chosen=str(security["sasl_mechanism"]), mechanisms=error.mechanisms)
    chosen = str(security["security_protocol"])
    return obstacles.other_protocol(server, spoken=chosen.removeprefix("SASL_"), chosen=chosen)


def _of_connecting(server: str, error: OSError) -> Obstacle:
    if isinstance(error, socket.gaierror):
        return obstacles.unknown_host(server, str(error.strerror))
    if isinstance(error, ConnectionRefusedError):
        return obstacles.connection_refused(server)
    if isinstance(error, TimeoutError):
        return obstacles.silent(server, CONNECT_SECONDS, is_connected=False)
    return obstacles.unreachable(server, error.strerror or str(error))


def _of_cluster(server: str, address: tuple[str, int], dialogue: Dialogue) -> KafkaFacts | Obstacle:
    """Ask what the server is, and whether one of its brokers can be reached where clients are sent."""
    versions = dialogue.versions()
    answer = dialogue.metadata(versions)
    brokers = [(str(one.host), int(one.port)) for one in answer.brokers]
    if not brokers:
        return obstacles.starting(server)
    facts = KafkaFacts(str(answer.cluster_id or ""), ".".join(map(str, versions.broker_version)), len(brokers))
    if address in brokers:
        return facts
    why = ""
    for host, port in brokers[:_MOST_ADVERTISED]:
        try:
            connect(host, port).close()
        except OSError as error:
            why = _of_connecting(f"{host}:{port}", error).problem
        else:
            return facts
    return obstacles.advertised(server, [f"{host}:{port}" for host, port in brokers[:_MOST_ADVERTISED]], why)


def _of_talk(server: str, address: tuple[str, int], security: Mapping[str, Any], error: Exception) -> Obstacle:
    """Find out why a server was silent, ended the connection, or spoke of other things."""
    match error:
        case ssl.SSLCertVerificationError():
            return obstacles.certificate(server, error.verify_message)
        case ssl.SSLError(reason=str(reason)) if _ALERT in reason:
            return obstacles.tls(server, reason.lower().replace("_", " "))
        case TimeoutError():
            return obstacles.silent(server, REPLY_SECONDS, is_connected=True)
        case IncompatibleBrokerVersion():  # it takes no request for metadata
            return obstacles.controller(server)
    chosen = str(security["security_protocol"])
    spoken = spoken_protocol(*address)
    if spoken is not None and spoken[0] != chosen:
        return obstacles.other_protocol(server, spoken=spoken[0], chosen=chosen, mechanisms=spoken[1])
    if isinstance(error, KafkaError):
        return obstacles.no_kafka(server)
    return obstacles.closed(server, getattr(error, "strerror", None) or str(error))


def spoken_protocol(host: str, port: int) -> tuple[str, tuple[str, ...]] | None:
    """Find the security protocol of a listener, and the mechanisms of its logins; `None` if it is not Kafka's."""
    for name, tls in (("SSL", _trusting_anybody()), ("PLAINTEXT", None)):
        try:
            with Dialogue(connect(host, port), host, tls=tls, client_id="evictstream") as dialogue:
                mechanisms = dialogue.mechanisms("PLAIN")
        except ssl.SSLError as error:
            if _ALERT in str(error.reason):
                return name, ()  # TLS, and it wants to know who asks
        except (OSError, KafkaError):
            pass
        else:
            return (name, ()) if mechanisms is None else (f"SASL_{name}", mechanisms)
    return None


def _trusting_anybody() -> ssl.SSLContext:
    """Return a context that only finds out whether TLS is spoken; no secret is sent on its connection."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
