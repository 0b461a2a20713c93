"""aiokafka's connections to brokers, with time-outs of their own for connecting and for each kind of request.

A broker whose machine is gone sends no reset. aiokafka 0.14.0 has one time-out for everything, `request_timeout_ms`: a
minute for the partition producers, since a batch may wait that long for a leader. It waits as long for a connection,
and makes no other connection of that client meanwhile. With one of three brokers silent, a takeover fails where one of
its producers begins with that broker, and a member finds its new coordinator only after its session has timed out.

Each aiokafka client also tries a broker that is gone for itself, every 100 ms. Here all clients of a process share what
one of them has found out (see `streams.kafka_reach`).

aiokafka makes connections by the name of a class in its own module, and takes no other class as an argument. So each
client of `engine.kafka` calls `use_broker_connections` when it is made, which holds for all aiokafka of the process.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import aiokafka.conn
from aiokafka import errors as kafka_errors
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.group import JoinGroupRequest, SyncGroupRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import EndTxnRequest

from evictstream.streams.engine.kafka.fetched_batches import AnswerParts
from evictstream.streams.engine.kafka.frames import FrameProtocol
from evictstream.streams.engine.kafka.transaction_requests import TransactionalProduce
from evictstream.streams.kafka_reach import REACH

_CONNECT_SECONDS = 5.0  # with TLS and SASL some six round trips; others wait for it
_ANSWER_SECONDS = 6.0  # less than a session: a member has to find the group's new coordinator within one
BULK_SECONDS = 15.0  # for megabytes: a fetch of 8 MiB at 5 Mbit/s. A leader is replaced after nine seconds of silence

# Brokers may want a client to authenticate again after some time (`connections.max.reauth.ms`, an hour is usual), which
# aiokafka does not: they close its connection at the first request after that. So a connection must not get old.
RENEW_SECONDS = 300.0

BULK = (FetchRequest, ProduceRequest)
BULK_BYTES = 100_000  # a transaction with fewer is small, and soon asked for again
# The coordinator answers a JoinGroup when all members have come. An old EndTxn without an answer loses the partition.
_PATIENT = (JoinGroupRequest, SyncGroupRequest, EndTxnRequest)


class BrokerConnection(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka has no types
    """A connection with a time-out for each kind of request, at most its client's.

    Attributes:
        made_at: when it was made (monotonic seconds).
    """

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.made_at = time.monotonic()
        self._longest_seconds: float = self._request_timeout

    async def connect(self) -> Any:
        """Connect, authenticate, and ask for versions.

        Raises:
            KafkaConnectionError: also at once, where a client of this process has just failed to reach that broker.
        """
        address = f"{self.host}:{self.port}"
        pause_seconds = REACH.pause_seconds(address)
        if pause_seconds:
            message = f"{address} has just failed and is tried again in {pause_seconds:.2f} s"
            raise kafka_errors.KafkaConnectionError(message)
        REACH.trying(address)
        tried_at = time.monotonic()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                made = await super().connect()
        except (OSError, TimeoutError, kafka_errors.KafkaError) as error:
            silence = OSError | kafka_errors.KafkaConnectionError | kafka_errors.RequestTimedOutError
            is_silent = isinstance(error, silence)  # a TimeoutError is an OSError
            REACH.failed(address, tried_at, is_silent=is_silent)
            raise
        REACH.opened(address, self)
        return made

    def __del__(self) -> None:
        """Close what its broker has ended: aiokafka's client may drop it before the reading task closes it."""
        if self._reader is not None and self._reader.at_eof() and not self._loop.is_closed():
            self._on_close_cb = None
            self.close()
        super().__del__()

    def close(self, reason: CloseReason | None = None, exc: BaseException | None = None) -> Any:
        """Close."""
        REACH.closed(self)
        return super().close(reason, exc)

    def _create_reader_task(self) -> Any:
        """Read from the protocol's own reader; aiokafka calls this when the protocol is connected."""
        self._reader = self._protocol.frames
        return super()._create_reader_task()

    def _handle_frame(self, answer: bytearray) -> None:
        """Decode an answer. Of a fetch, records are not copied."""
        REACH.answered()
        number, request, waiting = self._requests[0]
        is_fetch = request is not None and request.API_KEY == FetchRequest.API_KEY  # none: a step of SASL
        parts = AnswerParts(answer)
        if not is_fetch or waiting.done() or request.parse_response_header(parts).correlation_id != number:
            super()._handle_frame(bytes(answer))
            return
        waiting.set_result(request.RESPONSE_TYPE.decode(parts))
        self._last_action = time.monotonic()
        self._requests.popleft()

    def send(self, request: object, expect_response: bool = True) -> Any:  # noqa: FBT001, FBT002 - as aiokafka has it
        """Send a request; the time-out of its answer begins with this call."""
        if isinstance(request, _PATIENT):
            self._request_timeout = self._longest_seconds
        else:
            REACH.asked()
            is_bulk = isinstance(request, BULK)
            if isinstance(request, TransactionalProduce):
                is_bulk = request.size_bytes > BULK_BYTES
            usual_seconds = BULK_SECONDS if is_bulk else _ANSWER_SECONDS
            self._request_timeout = min(usual_seconds, self._longest_seconds)
        return self._answered(super().send(request, expect_response))

    async def _answered(self, answer: Any) -> Any:
        """Wait for an answer, and close if none comes.

        aiokafka's client closes what it finds under the broker's number then. Of several requests that time out at once
        only the first finds this connection, and a consumer that finds none never fetches again.
        """
        try:
            return await answer
        except TimeoutError as error:
            self.close(CloseReason.CONNECTION_TIMEOUT)
            raise kafka_errors.RequestTimedOutError from error


def use_broker_connections() -> None:
    """Let the aiokafka clients of this process make a `BrokerConnection` wherever they connect from now on."""
    aiokafka.conn.AIOKafkaConnection = BrokerConnection
    aiokafka.conn.AIOKafkaProtocol = FrameProtocol


def renew_coordination(client: AIOKafkaClient, now: float) -> None:
    """Close old connections to coordinators. Call it while no request is open; the next one makes a new connection."""
    for (_, group), connection in list(client._conns.items()):  # noqa: SLF001 - there is no public way
        is_old = now - connection.made_at > RENEW_SECONDS
        if group == ConnectionGroup.COORDINATION and connection.connected() and is_old:
            connection.close(reason=CloseReason.IDLE_DROP)
