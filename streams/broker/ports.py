"""Free ports on loopback that stay free while their broker is down."""

from __future__ import annotations

import random
import socket
import sys
from collections.abc import Iterable

LOOPBACK = "127.0.0.1"

# Below the range from which systems take the ports of outgoing connections (32768 on Linux, 49152 elsewhere). A client
# that keeps connecting to a broker that is down would otherwise, sooner or later, get that very port as its own and
# keep the broker from coming back.
FIRST_PORT = 20_000
LAST_PORT = 29_999
_ATTEMPTS = 200


def free_ports(count: int) -> list[int]:
    """Return that many different ports on which no process listens now.

    Another process may take one before it is used, or while its broker is down: `reserve` keeps them.

    Raises:
        OSError: none was found in 200 attempts.
    """
    ports: list[int] = []
    for _ in range(_ATTEMPTS):
        port = random.randint(FIRST_PORT, LAST_PORT)  # noqa: S311 - nothing secret about a port
        if port not in ports and _is_free(port):
            ports.append(port)
            if len(ports) == count:
                return ports
    message = f"no {count} free ports between {FIRST_PORT} and {LAST_PORT} on {LOOPBACK}"
    raise OSError(message)


def reserve(ports: Iterable[int]) -> list[socket.socket]:
    """Keep `free_ports` from giving these ports to anybody else, until the sockets that this returns are closed.

    A server that sets SO_REUSEADDR, as Kafka does, listens there all the same, since these sockets never listen. So it
    is on Linux; elsewhere the port would be taken for that server too, and the list is empty. A port that somebody has
    taken already is left out: the server that wants it says so.
    """
    kept: list[socket.socket] = []
    for port in ports if sys.platform == "linux" else ():
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((LOOPBACK, port))
        except OSError:
            holder.close()
        else:
            kept.append(holder)
    return kept


def is_listened_on(port: int) -> bool:
    """Whether a server has this port on loopback. A socket that only reserves it does not count."""
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((LOOPBACK, port))
            attempt.listen(1)
        except OSError:
            return True
        return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
