"""A connection of a worker's clients to a broker that stops answering."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import RequestTimedOutError
from aiokafka.protocol.metadata import MetadataRequest

from evictstream.streams.engine.kafka.connection import BrokerConnection, use_broker_connections

BROKER = (1, ConnectionGroup.DEFAULT)


class SilentClient(AIOKafkaClient):  # type: ignore[misc]  # aiokafka has no types
    """A client with one connection, on which no answer comes."""

    def __init__(self) -> None:
        super().__init__(bootstrap_servers="nowhere:1")
        self._conns[BROKER] = BrokerConnection("nowhere", 1)

    async def ready(self, *_: Any, **__: Any) -> bool:
        return True


def test_requests_that_time_out_at_once_end_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client has dropped their connection meanwhile, so it finds none to close."""

    async def test() -> None:
        over = asyncio.Event()

        async def late() -> None:
            await over.wait()
            raise TimeoutError

        monkeypatch.setattr(AIOKafkaConnection, "send", lambda *_: late())
        client = SilentClient()
        asked = [asyncio.create_task(client.send(1, MetadataRequest([]))) for _ in range(2)]
        await asyncio.sleep(0)
        del client._conns[BROKER]
        over.set()
        ends = await asyncio.gather(*asked, return_exceptions=True)
        await client.close()
        assert [type(end) for end in ends] == [RequestTimedOutError] * 2

    asyncio.run(asyncio.wait_for(test(), 10))


def test_what_the_client_drops_at_its_end_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async def asked(_: object) -> None: ...

        monkeypatch.setattr(AIOKafkaConnection, "_do_version_lookup", asked)
        use_broker_connections()
        server = await asyncio.start_server(lambda _, to_worker: to_worker.close(), "127.0.0.1", 0)
        async with server:
            connection = BrokerConnection(*server.sockets[0].getsockname())
            await connection.connect()
            transport = connection._writer.transport
            connection._protocol.eof_received()  # as the transport calls it
            assert not transport.is_closing()
            del connection
            assert transport.is_closing()

    asyncio.run(asyncio.wait_for(test(), 10))
