"""Answers received into their own buffers: the same bytes, however the network cuts them."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from pathlib import Path
from typing import Literal

import pytest
from aiokafka.errors import KafkaProtocolError
from hypothesis import given
from hypothesis import strategies as st

from evictstream.streams.engine.kafka.frames import LONGEST_BYTES, STAGED_BYTES, FrameProtocol, FrameReader
from evictstream.streams.settings import Settings
from evictstream.streams.worker.app import loop_factory
from tests.harness.certificates import OPENSSL, certificate, server_context

LONG = STAGED_BYTES * 3 + 7


class Transport(asyncio.ReadTransport):
    """Notes when it has to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: list[str] = []

    def pause_reading(self) -> None:
        self.turns.append("pause")

    def resume_reading(self) -> None:
        self.turns.append("resume")


def hand_over(reader: FrameReader, data: bytes) -> bytes:
    """Give a reader what it has space for, as a socket does; returns the rest."""
    space = reader.space()
    size = min(len(space), len(data))
    assert size, "a transport that flows has to find space"
    space[:size] = data[:size]
    reader.received(size)
    return data[size:]


@given(
    sizes=st.lists(st.sampled_from([0, 1, 4, 300, STAGED_BYTES - 1, STAGED_BYTES, STAGED_BYTES + 1, LONG]), max_size=6),
    chunks=st.lists(st.sampled_from([1, 3, 4, 7, 1_000, STAGED_BYTES - 1, STAGED_BYTES, LONG]), min_size=1, max_size=9),
)
def test_answers_are_whole_however_they_are_cut(sizes: list[int], chunks: list[int]) -> None:
    sent = [bytes([number + 1]) * size for number, size in enumerate(sizes)]

    async def run() -> list[bytes]:
        reader, transport = FrameReader(), Transport()
        reader.flow_from(transport)

        async def read() -> list[bytes]:
            return [bytes(await reader.readexactly(size)) for size in sizes]

        reading = asyncio.ensure_future(read())
        left = b"".join(sent)
        for size in itertools.cycle([*chunks, LONG]):
            chunk, left = left[:size], left[size:]
            while chunk:
                chunk = hand_over(reader, chunk)
                if size % 2 or transport.turns[-1:] == ["pause"]:
                    await asyncio.sleep(0)  # else more comes before the reader runs
                    await asyncio.sleep(0)
            if not left:
                break
        return await asyncio.wait_for(reading, 5)

    assert asyncio.run(run()) == sent


def test_the_socket_waits_while_nobody_reads() -> None:
    async def run() -> None:
        reader, transport = FrameReader(), Transport()
        reader.flow_from(transport)
        hand_over(reader, bytes(STAGED_BYTES))
        assert transport.turns == ["pause"]
        assert await reader.readexactly(STAGED_BYTES - 1) == bytes(STAGED_BYTES - 1)
        reading = asyncio.ensure_future(reader.readexactly(2))
        await asyncio.sleep(0)
        assert transport.turns == ["pause", "resume"]
        hand_over(reader, b"\0")
        assert await reading == b"\0\0"

    asyncio.run(run())


@pytest.mark.parametrize("received", [pytest.param(3, id="within"), pytest.param(0, id="before")])
def test_an_end_within_an_answer_is_told(received: int) -> None:
    async def run() -> None:
        reader = FrameReader()
        reading = asyncio.ensure_future(reader.readexactly(8))
        await asyncio.sleep(0)
        if received:
            hand_over(reader, bytes(received))
        assert not reader.at_eof()
        reader.ended()
        with pytest.raises(asyncio.IncompleteReadError) as raised:
            await reading
        assert raised.value.partial == bytes(received)
        assert reader.at_eof()

    asyncio.run(run())


@pytest.mark.parametrize("size", [LONGEST_BYTES + 1, -1], ids=["as from a port that speaks TLS", "negative"])
def test_no_memory_is_taken_for_an_answer_that_nobody_sends(size: int) -> None:
    with pytest.raises(KafkaProtocolError, match="TLS"):
        asyncio.run(FrameReader().readexactly(size))


def test_a_lost_connection_gives_its_error() -> None:
    async def run() -> None:
        reader = FrameReader()
        hand_over(reader, b"whole")
        reader.ended(ConnectionResetError("reset"))
        assert await reader.readexactly(5) == b"whole"
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)

    asyncio.run(run())


async def answers_from_a_server(server_side: ssl.SSLContext | None, client_side: ssl.SSLContext | None) -> list[bytes]:
    """Ask a server on loopback for a short answer and a long one, and wait for its end."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(b"short" + bytes(LONG))
        await writer.drain()
        writer.close()

    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_side)
    closed = loop.create_future()
    protocol = FrameProtocol(closed, asyncio.StreamReader(), loop=loop)
    async with asyncio.timeout(10), server:
        port = server.sockets[0].getsockname()[1]
        transport, _ = await loop.create_connection(lambda: protocol, "127.0.0.1", port, ssl=client_side)
        transport.write(b"ask")
        answers = [bytes(await protocol.frames.readexactly(size)) for size in (5, LONG)]
        with pytest.raises(asyncio.IncompleteReadError):
            await protocol.frames.readexactly(1)
        transport.close()
        await closed
    return answers


@pytest.mark.parametrize("with_tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("event_loop", ["asyncio", "uvloop"])
def test_answers_of_a_real_connection_arrive(
    event_loop: Literal["asyncio", "uvloop"], tmp_path: Path, *, with_tls: bool
) -> None:
    if event_loop == "uvloop":
        pytest.importorskip("uvloop", reason="the extra `uvloop` is not installed")
    contexts: tuple[ssl.SSLContext | None, ssl.SSLContext | None] = (None, None)
    if with_tls:
        if OPENSSL is None:
            pytest.skip("no program `openssl`")
        own = certificate(tmp_path, "server")
        contexts = server_context(own), ssl.create_default_context(cafile=str(own.certificate))
    with asyncio.Runner(loop_factory=loop_factory(Settings(event_loop=event_loop))) as runner:
        assert runner.run(answers_from_a_server(*contexts)) == [b"short", bytes(LONG)]
