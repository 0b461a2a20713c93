"""Answers of brokers, received into the buffer in which they are read.

aiokafka reads from asyncio's `StreamReader`, which appends what the socket gave to one buffer, copies each answer out
of it, and stops the socket at 128 KiB again and again. For an answer of megabytes that costs more than its records do.
Here the socket fills the answer's own buffer.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from aiokafka import errors as kafka_errors
from aiokafka.conn import AIOKafkaProtocol

STAGED_BYTES: Final = 16 * 1024
"""Short answers come together, and with the beginning of the next long one. Each connection keeps as much."""

LONGEST_BYTES: Final = 256 * 1024 * 1024
"""No answer is longer: settings bound a fetch. A port that speaks TLS, asked without, seems to send more."""


class FrameReader:
    """What a connection's reading task needs of a `StreamReader`; one task reads.

    Bytes that nobody has asked for wait in a fixed buffer. When it is full, the socket waits.
    """

    def __init__(self) -> None:
        self._staged = memoryview(bytearray(STAGED_BYTES))
        self._begin = self._end = 0
        self._wanted: memoryview | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._transport: asyncio.ReadTransport | None = None
        self._is_paused = self._is_ended = False
        self._error: BaseException | None = None

    def at_eof(self) -> bool:
        """Tell whether nothing more comes."""
        return self._is_ended and self._begin == self._end

    async def readexactly(self, size: int) -> bytearray:
        """Return so many bytes.

        Raises:
            IncompleteReadError: the connection ended before. Also what it failed with.
            KafkaProtocolError: nobody sends so many.
        """
        if not 0 <= size <= LONGEST_BYTES:
            raise kafka_errors.KafkaProtocolError(f"an answer of {size:,} bytes: does this port speak TLS?")
        answer = bytearray(size)
        rest = memoryview(answer)
        rest = rest[self._take(rest) :]
        if rest and not self._is_ended:
            self._wanted, self._waiting = rest, asyncio.get_running_loop().create_future()
            self._let_flow()
            try:
                await self._waiting
            finally:
                rest, self._wanted, self._waiting = self._wanted, None, None
        if not rest:
            return answer
        if self._error is not None:
            raise self._error
        raise asyncio.IncompleteReadError(bytes(answer[: size - len(rest)]), size)

    def flow_from(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, to stop it when nobody reads."""
        self._transport = cast("asyncio.ReadTransport", transport)

    def space(self) -> memoryview:
        """Return where the next bytes belong; never empty while the transport flows."""
        if self._wanted is not None and len(self._wanted) >= STAGED_BYTES:
            return self._wanted
        if self._begin == self._end:
            self._begin = self._end = 0
        return self._staged[self._end :]

    def received(self, size: int) -> None:
        """Count bytes that have come into the space."""
        wanted = self._wanted
        if wanted is not None and len(wanted) >= STAGED_BYTES:
            self._wanted = wanted[size:]
        else:
            self._end += size
            if wanted is not None:
                self._wanted = wanted[self._take(wanted) :]
            if self._end == STAGED_BYTES:
                self._make_room()
        if self._wanted is not None and not self._wanted:
            self._wake()

    def ended(self, error: BaseException | None = None) -> None:
        """Say that nothing more comes, and why."""
        self._is_ended, self._error = True, self._error or error
        self._wake()

    def _take(self, into: memoryview) -> int:
        size = min(len(into), self._end - self._begin)
        into[:size] = self._staged[self._begin : self._begin + size]
        self._begin += size
        return size

    def _make_room(self) -> None:
        kept = bytes(self._staged[self._begin : self._end])
        self._staged[: len(kept)] = kept
        self._begin, self._end = 0, len(kept)
        if len(kept) == STAGED_BYTES and self._transport is not None:
            self._transport.pause_reading()
            self._is_paused = True

    def _let_flow(self) -> None:
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class FrameProtocol(AIOKafkaProtocol):  # type: ignore[misc]  # aiokafka has no types
    """aiokafka's protocol, which writes as before and receives into a `FrameReader`."""

    def __init__(self, *arguments: object, **more: object) -> None:
        super().__init__(*arguments, **more)
        self.frames = FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        super().connection_made(transport)
        self.frames.flow_from(transport)
        cast("asyncio.Transport", transport).set_protocol(_FrameReceiver(self))

    def eof_received(self) -> bool | None:
        """Tell the reader, and let the transport close."""
        self.frames.ended()
        return cast("bool | None", super().eof_received())

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the reader."""
        self.frames.ended(exc)
        super().connection_lost(exc)


class _FrameReceiver(asyncio.BufferedProtocol):
    """What the transport sees: uvloop asks no `asyncio.Protocol`, as aiokafka's is, for a buffer."""

    def __init__(self, protocol: FrameProtocol) -> None:
        self._protocol = protocol
        self._frames = protocol.frames

    def get_buffer(self, sizehint: int) -> memoryview:
        """Say where the socket writes to."""
        del sizehint
        return self._frames.space()

    def buffer_updated(self, nbytes: int) -> None:
        """Count what the socket has written."""
        self._frames.received(nbytes)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on."""
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self._protocol.resume_writing()
