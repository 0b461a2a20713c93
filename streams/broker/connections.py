"""kafka-python's connections, which say whether brokers answer.

The library makes them by the name of a class in its own module, and takes no other class as an argument. So each
function that makes a client calls `use_reported_connections`, which holds for all kafka-python of the process.
"""

from __future__ import annotations

import time
from typing import Any

import kafka.net.manager
from kafka.errors import KafkaConnectionError
from kafka.net.connection import KafkaConnection
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest

from evictstream.streams.kafka_reach import REACH

_PATIENT = (JoinGroupRequest, SyncGroupRequest)
"""A coordinator answers them when all members have come."""


class ReportedConnection(KafkaConnection):  # type: ignore[misc] # the library has no types
    """A connection that tells `REACH` what it asks and what is answered."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._tried_at = time.monotonic()
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
                REACH.opened(None, self)
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
                REACH.missed(self._tried_at)


def use_reported_connections() -> None:
    """Let the kafka-python clients of this process make a `ReportedConnection` wherever they connect from now on."""
    kafka.net.manager.KafkaConnection = ReportedConnection
