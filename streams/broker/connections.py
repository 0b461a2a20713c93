"""kafka-python's connections, which say whether brokers answer, and wait together for one that does not.

The library makes them by the names of classes in its own modules, and takes no other class as an argument. So each
function that makes a client calls `use_reported_connections`, which holds for all kafka-python of the process.
"""

from __future__ import annotations

import socket
import time
from typing import Any

import kafka.net.compat
import kafka.net.manager
from kafka.errors import KafkaConnectionError
from kafka.net.connection import KafkaConnection
from kafka.net.inet import KafkaNetSocket
from kafka.net.manager import KafkaConnectionManager
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest

from evictstream.streams.kafka_reach import REACH

_PATIENT = (JoinGroupRequest, SyncGroupRequest)
"""A coordinator answers them when all members have come."""


class ReportedConnection(KafkaConnection):  # type: ignore[misc] # the library has no types
    """A connection that tells `REACH` what it asks and what is answered.

    Attributes:
        address: of its broker, `host:port`; set before it connects.
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.address = ""
        self._tried_at = time.monotonic()
        self._is_answered = False
        if REACH.is_watched:
            REACH.asked()

    def _send_request(self, request: Any, *arguments: Any, **more: Any) -> Any:
        if REACH.is_watched and not isinstance(request, _PATIENT):
            REACH.asked()
        return super()._send_request(request, *arguments, **more)

    def data_received(self, data: bytes) -> None:
        """Take what a broker has sent."""
        if REACH.is_watched:
            if self.initializing:
                self._is_answered = True
                REACH.opened(self.address, self)
            else:
                REACH.answered()
        super().data_received(data)

    async def initialize(self, timeout_at: float | None = None) -> None:
        """Make the connection ready, or raise.

        The library raises nothing when a broker hangs up meanwhile, takes that for success, and so tries again without
        a pause: ten times a second for each client.
        """
        await super().initialize(timeout_at)
        error = self._init_future.exception
        if isinstance(error, KafkaConnectionError):
            raise error

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        was_made = not self.initializing
        super().connection_lost(exc)
        if REACH.is_watched:
            REACH.closed(self)
            if exc is not None and not was_made:
                REACH.failed(self.address, self._tried_at, is_silent=not self._is_answered)


class ConnectionsTogether(KafkaConnectionManager):  # type: ignore[misc] # the library has no types
    """Makes the connections of one client. In a process that is watched it waits as `REACH` says."""

    def connection_delay(self, node_id: Any) -> float:
        """Return for how many seconds no connection to a broker may be tried.

        The library waits for each client on its own: a process with a dozen clients would try a dozen times as often.
        """
        seconds = float(super().connection_delay(node_id))
        if not REACH.is_watched or node_id in self._conns:
            return seconds
        node = self.cluster.broker_metadata(node_id)
        return seconds if node is None else max(seconds, REACH.pause_seconds(f"{node.host}:{node.port}"))

    async def _connect(self, node: Any, conn: ReportedConnection, **more: Any) -> None:
        conn.address = f"{node.host}:{node.port}"
        if REACH.is_watched:
            REACH.trying(conn.address)
        await super()._connect(node, conn, **more)


_library_connect = KafkaNetSocket.sock_connect


async def _connect_or_close(self: KafkaNetSocket, net: Any, sock: socket.socket, *arguments: Any, **more: Any) -> Any:
    """Connect a socket. The library does not close one that is refused, or whose client ends first."""
    try:
        return await _library_connect(self, net, sock, *arguments, **more)
    except BaseException:
        sock.close()
        raise


def use_reported_connections() -> None:
    """Let the clients that kafka-python makes in this process from now on connect by the classes of this module."""
    kafka.net.manager.KafkaConnection = ReportedConnection
    kafka.net.compat.KafkaConnectionManager = ConnectionsTogether
    KafkaNetSocket.sock_connect = _connect_or_close
