"""A Kafka in a container, through testcontainers, where a container engine answers.

The image is pinned to the version of the embedded Kafka and configured the same. Its one port is published on loopback
only. testcontainers' own helper removes the container when this process dies.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
import urllib.parse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from evictstream.streams.broker.admin_client import probe
from evictstream.streams.broker.ports import LOOPBACK, free_ports
from evictstream.streams.broker.properties import NodeAddress, as_environment, node_properties
from evictstream.streams.errors import ContainerUnavailableError

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

IMAGE = "apache/kafka:4.3.1"

ENGINE_TIMEOUT_SECONDS = 1
"""For the engine to say that it is there. An engine on this machine answers in milliseconds; a machine without one
waits this long."""

_START_TIMEOUT_SECONDS = 60.0
"""From the container's start, after its image is there, until Kafka answers."""

_POLL_SECONDS = 0.1


def engine_answers() -> bool:
    """Whether a container engine answers within two seconds, and testcontainers is installed."""
    try:
        import docker  # noqa: PLC0415 - comes with an optional extra
        import testcontainers.core.container  # noqa: F401, PLC0415 - as above
    except ImportError:
        return False
    # A plain connection first: the engine's client leaves its socket open when no engine answers.
    if not _somebody_listens(docker.utils.parse_host(os.environ.get("DOCKER_HOST"))):
        return False
    try:
        with contextlib.closing(docker.from_env(timeout=ENGINE_TIMEOUT_SECONDS)) as client:
            return bool(client.ping())
    except (docker.errors.DockerException, OSError):  # requests' errors are OSErrors
        return False


def _somebody_listens(address: str) -> bool:
    where = urllib.parse.urlsplit(address)
    try:
        if where.scheme == "http+unix":
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(ENGINE_TIMEOUT_SECONDS)
                probe.connect(where.path)
        else:
            socket.create_connection((where.hostname or LOOPBACK, where.port or 2375), ENGINE_TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def container_broker() -> Iterator[str]:
    """Start the container, yield `host:port`, remove it.

    Raises:
        ContainerUnavailableError: the engine refused, the image could not be had, or Kafka did not answer.
    """
    from docker.errors import DockerException  # noqa: PLC0415 - comes with an optional extra

    (port,) = free_ports(1)
    servers = f"{LOOPBACK}:{port}"
    container = _container(port)
    try:
        container.start()
        _wait_until_it_answers(servers)
    except (DockerException, OSError, TimeoutError) as error:
        _remove(container)
        reason = str(error).strip() or type(error).__name__
        raise ContainerUnavailableError(f"{IMAGE}: {reason}") from error
    try:
        yield servers
    finally:
        _remove(container)


def _container(port: int) -> DockerContainer:
    from testcontainers.core.container import DockerContainer  # noqa: PLC0415 - optional extra

    # Inside, the node knows itself under the same port, so that what it advertises is true outside.
    node = NodeAddress(node_id=1, host=LOOPBACK, client_port=port, controller_port=19_093)
    properties = node_properties(node, [node], log_dirs="/tmp/kafka-logs", listen_host="0.0.0.0")  # noqa: S104, S108 - inside the container
    container = DockerContainer(IMAGE).with_envs(**as_environment(properties))
    # The engine takes an address with the port; testcontainers hands it on but does not know the type.
    container.ports = {f"{port}/tcp": (LOOPBACK, port)}  # type: ignore[dict-item]
    return container


def _wait_until_it_answers(servers: str) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_SECONDS
    while probe(servers) is None:
        if time.monotonic() > deadline:
            message = f"Kafka did not answer within {_START_TIMEOUT_SECONDS:g} s"
            raise TimeoutError(message)
        time.sleep(_POLL_SECONDS)


def _remove(container: DockerContainer) -> None:
    from docker.errors import DockerException  # noqa: PLC0415 - comes with an optional extra

    with contextlib.suppress(DockerException, OSError):  # gone already, or the engine is
        container.stop()
