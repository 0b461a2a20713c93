"""A wire between a worker and the brokers that can be made slow, deaf, or cut: a small TCP proxy on loopback.

No package from PyPI does this for Kafka, whose clients go where the brokers tell them; so the brokers tell clients of
such a way the proxy's port (see `streams.broker.properties.Detour`), and an ordinary TCP proxy is enough. One thread
with an event loop carries all wires.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, Self, TypeVar

from evictstream.streams.broker.ports import LOOPBACK
from evictstream.streams.broker.properties import Detour

CHUNK_BYTES = 65_536
CALL_SECONDS = 10.0

T = TypeVar("T")


class WireLoop:
    """The thread that carries wires. Use as a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wires", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the thread and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_SECONDS)


class Wire:
    """All connections of one way to a cluster: one door for each node."""

    def __init__(self, loop: WireLoop, detours: Sequence[Detour]) -> None:
        self._loop = loop
        self._detours = tuple(detours)
        self._servers: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._delay_seconds = 0.0
        self._is_cut = False
        self._flows = asyncio.Event()
        self._flows.set()

    @property
    def address(self) -> str:
        """What a client that comes this way takes as bootstrap servers."""
        return ",".join(f"{LOOPBACK}:{detour.told_port}" for detour in self._detours)

    def __enter__(self) -> Self:
        self._loop.call(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call(self._close())

    def slow(self, seconds: float) -> None:
        """Hold back whatever passes, in each direction, for so long. 0 ends it."""
        self._delay_seconds = seconds

    def cut(self) -> None:
        """Reset all connections and refuse new ones, until `mend`."""
        self._is_cut = True
        self._loop.call(self._reset())

    def deafen(self) -> None:
        """Let connections stand but nothing pass, as a lost route does, until `mend`."""
        self._loop.call(self._set_flow(on=False))

    def mend(self) -> None:
        """Make it a good wire again. What was held back goes on its way."""
        self._is_cut = False
        self._delay_seconds = 0.0
        self._loop.call(self._set_flow(on=True))

    async def _open(self) -> None:
        for detour in self._detours:
            accept = self._accepting(detour.listen_port)
            self._servers.append(await asyncio.start_server(accept, LOOPBACK, detour.told_port))

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        await self._reset()

    async def _reset(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()  # a reset, not a farewell

    async def _set_flow(self, *, on: bool) -> None:
        if on:
            self._flows.set()
        else:
            self._flows.clear()

    def _accepting(self, port: int) -> Any:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self._is_cut:
                writer.transport.abort()
                return
            try:
                far_reader, far_writer = await asyncio.open_connection(LOOPBACK, port)
            except OSError:
                writer.transport.abort()
                return
            for end in (writer, far_writer):
                self._writers.add(end)
                end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))
            self._writers -= {writer, far_writer}

        return accept

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what comes from one end until it ends, then end the other."""
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                if self._delay_seconds:
                    await asyncio.sleep(self._delay_seconds)
                await self._flows.wait()
                writer.write(chunk)
                await writer.drain()
        writer.transport.abort() if self._is_cut else writer.close()
