"""Free ports on loopback that stay free while their broker is down."""

from __future__ import annotations

import random
import socket

LOOPBACK = "127.0.0.1"

# Below the range from which systems take the ports of outgoing connections (32768 on Linux, 49152 elsewhere). A client
# that keeps connecting to a broker that is down would otherwise, sooner or later, get that very port as its own and
# keep the broker from coming back.
FIRST_PORT = 20_000
LAST_PORT = 29_999
ATTEMPTS = 200


def free_ports(count: int) -> list[int]:
    """Return that many different ports on which no process listens now.

    They are not reserved: another process may take one before it is used; with 10,000 to choose from at random that is
    rare.

    Raises:
        OSError: none was found in 200 attempts.
    """
    ports: list[int] = []
    for _ in range(ATTEMPTS):
        port = random.randint(FIRST_PORT, LAST_PORT)  # noqa: S311 - nothing secret about a port
        if port not in ports and _is_free(port):
            ports.append(port)
            if len(ports) == count:
                return ports
    message = f"no {count} free ports between {FIRST_PORT} and {LAST_PORT} on {LOOPBACK}"
    raise OSError(message)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
