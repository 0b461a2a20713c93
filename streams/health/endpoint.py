"""Health and metrics over HTTP, from a thread of its own, which answers while the event loop is stuck.

The thread has an event loop for its sockets alone, so a slow client costs a socket and no thread. A web framework on
the process's loop would be silent exactly when a probe asks whether that loop is stuck. Without password and TLS, the
default address is loopback. A stranger who reaches it can make it cost little: a connection has one request and a few
seconds, and an answer is worked out once for all that wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
import structlog
from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import choose_encoder

from evictstream.streams.errors import AddressTakenError
from evictstream.streams.printing import printable_json

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

log = structlog.get_logger(__name__)

_REQUEST_SECONDS: Final = 5.0
"""In which a request has to be here as a whole, and again in which its answer has to be fetched; then it is closed."""

OPEN_AT_ONCE: Final = 64
"""Connections. The oldest unfinished one makes room: probes send their request at once, and slow clients do not."""

WAITING_AT_ONCE: Final = 1024
"""Connections that the operating system holds for us, so that a burst of slow clients does not turn a probe away."""

LARGEST_REQUEST_BYTES: Final = 8192
"""A path and headers; probes and scrapers send some hundred."""

REST: Final = 4.0
"""For so many times as long as an answer took, the next one for its path is not begun: a fifth of a core at most."""

LONGEST_REST_SECONDS: Final = 0.2
"""An answer that took longer because the machine is busy keeps no probe waiting."""

_ANY: Final = "::"
"""Every address of the machine, whichever family the network of its pods has."""

OK = 200
UNAVAILABLE = 503
METRICS = "/metrics"
OPEN_METRICS = "application/openmetrics-text"


class Report(msgspec.Struct, frozen=True):
    """An answer to a probe: its HTTP status, and its JSON body."""

    status: int
    body: dict[str, object]


class Probes(Protocol):
    """The answers to `/livez` and `/readyz`, from any thread; `now` is monotonic seconds."""

    def live(self, now: float) -> Report:
        """Report whether the process has to be started again."""

    def ready(self, now: float) -> Report:
        """Report whether the process does its work."""


_Answer = tuple[int, str, bytes]
"""Status, content type, body."""

NOT_FOUND: _Answer = (404, "text/plain", b"/livez, /readyz or /metrics\n")
NOT_READ: _Answer = (400, "text/plain", b"GET or HEAD, and a path\n")
FAILED: _Answer = (500, "text/plain", b"see the log\n")


class _Request(NamedTuple):
    """What a client asks for: a path, perhaps its head alone, and perhaps metrics in the format OpenMetrics."""

    path: str
    is_head: bool
    takes_open_metrics: bool


class Endpoint:
    """Serves `/livez`, `/readyz` and `/metrics` until the process ends."""

    def __init__(self, host: str, port: int, health: Probes, metrics: Collector) -> None:
        """Listen; with port 0 at any free port.

        Raises:
            AddressTakenError: the address cannot be listened on.
        """
        registry = CollectorRegistry()
        PlatformCollector(registry)
        ProcessCollector(registry=registry)
        GCCollector(registry)
        registry.register(metrics)
        self._answers = {
            "/livez": _Shared(lambda: _as_json(health.live(time.monotonic()))),
            "/readyz": _Shared(lambda: _as_json(health.ready(time.monotonic()))),
            METRICS: _Shared(lambda: (OK, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry))),
        }
        encode, content_type = choose_encoder(f"{OPEN_METRICS}; version=1.0.0")
        self._open_metrics = _Shared(lambda: (OK, content_type, encode(registry)))
        # Both in the order in which they came.
        self._unfinished: dict[asyncio.Task[None], None] = {}
        self._open: dict[asyncio.Task[None], None] = {}
        try:
            self._listener = _listen(host, port)
        except OSError as error:
            raise AddressTakenError(host=host, port=port, reason=error.strerror or str(error)) from error
        self._listener.setblocking(False)  # noqa: FBT003 - as the standard library has it
        self.port = int(self._listener.getsockname()[1])

    def start(self) -> None:
        """Serve in a thread that does not keep the process alive."""
        # A loop of the standard library, whichever kind the process runs its own work on.
        runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
        threading.Thread(target=lambda: runner.run(self._serve()), name="health", daemon=True).start()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except ConnectionError:  # gone already
                continue
            except OSError:  # no file or memory is left for it, so that another one has to go
                self._make_room()
                await asyncio.sleep(LONGEST_REST_SECONDS)
                continue
            if len(self._open) >= OPEN_AT_ONCE:
                self._make_room()
            task = loop.create_task(self._talk(connection))
            self._open[task] = self._unfinished[task] = None
            # What has come on older connections is read first: a burst of new ones pushes no probe out.
            await asyncio.sleep(0)

    def _make_room(self) -> None:
        """Close the oldest connection, best one that has not sent its request."""
        for oldest in [*self._unfinished, *self._open][:1]:
            oldest.cancel()
            self._forget(oldest)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._unfinished.pop(task, None)
        self._open.pop(task, None)

    async def _talk(self, connection: socket.socket) -> None:
        """Answer one request, and close. Clients may close, fall silent or send nonsense: that is not logged."""
        loop, this = asyncio.get_running_loop(), asyncio.current_task()
        assert this is not None  # noqa: S101 - it runs in one
        try:
            with contextlib.suppress(OSError, TimeoutError), connection:
                connection.setblocking(False)  # noqa: FBT003 - as above
                async with asyncio.timeout(_REQUEST_SECONDS):
                    request = await _request(loop, connection)
                self._unfinished.pop(this, None)
                head, body = _as_http(await self._answer(request))
                async with asyncio.timeout(_REQUEST_SECONDS):
                    await loop.sock_sendall(connection, head if request and request.is_head else head + body)
                connection.shutdown(socket.SHUT_WR)
        finally:
            self._forget(this)

    async def _answer(self, request: _Request | None) -> _Answer:
        if request is None:
            return NOT_READ
        path = request.path.partition("?")[0]
        shared = self._answers.get(path)
        if path == METRICS and request.takes_open_metrics:
            shared = self._open_metrics
        try:
            return await shared.get() if shared else NOT_FOUND
        except Exception:
            log.exception("health request failed", path=request.path)
            return FAILED


class _Shared:
    """The answer for one path: worked out in a thread, by one at a time, for all that wait for it."""

    def __init__(self, work: Callable[[], _Answer]) -> None:
        self._work = work
        self._underway: asyncio.Task[_Answer] | None = None
        self._rest_until = 0.0

    async def get(self) -> _Answer:
        """Return the answer that is being worked out, or a new one."""
        if self._underway is None or self._underway.done():
            self._underway = asyncio.get_running_loop().create_task(self._get())
        return await asyncio.shield(self._underway)  # it is also that of others

    async def _get(self) -> _Answer:
        await asyncio.sleep(self._rest_until - time.monotonic())
        began = time.monotonic()
        try:
            return await self._in_a_thread()
        finally:
            now = time.monotonic()
            self._rest_until = now + min(REST * (now - began), LONGEST_REST_SECONDS)

    async def _in_a_thread(self) -> _Answer:
        """Work it out where a lock that somebody holds stops no other path, and ends with the process."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[_Answer] = loop.create_future()

        def work() -> None:
            try:
                answer = self._work()
            except Exception as error:  # noqa: BLE001 - logged by the connection that waits
                loop.call_soon_threadsafe(answered.set_exception, error)
            else:
                loop.call_soon_threadsafe(answered.set_result, answer)

        threading.Thread(target=work, name="health-answer", daemon=True).start()
        return await answered


def _listen(host: str, port: int) -> socket.socket:
    """Listen on an address of IPv4 or IPv6; on `::` on all of both, or of IPv4 where the system has no IPv6.

    Raises:
        OSError: the address is taken, not of this machine, or cannot be understood.
    """
    has_both = socket.has_dualstack_ipv6()
    if host == _ANY and not has_both:
        host = "0.0.0.0"  # noqa: S104 - all that `::` can mean here
    families = {found[0] for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    if socket.AF_INET in families:  # a name of both, such as localhost: most who ask for it come by IPv4
        return socket.create_server((host, port), backlog=WAITING_AT_ONCE)
    return socket.create_server(
        (host, port), family=socket.AF_INET6, backlog=WAITING_AT_ONCE, dualstack_ipv6=has_both and host == _ANY
    )


async def _request(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> _Request | None:
    """Read a whole request; none if it is neither `GET` nor `HEAD`.

    Raises:
        OSError: it ends before its end, or is too large.
    """
    head = b""
    while b"\r\n\r\n" not in head:
        piece = await loop.sock_recv(connection, LARGEST_REQUEST_BYTES)
        head += piece
        if not piece or len(head) > LARGEST_REQUEST_BYTES:
            raise ConnectionAbortedError
    first, *headers = head.decode("latin-1").split("\r\n")
    match first.split(" "):
        case ["GET" | "HEAD" as method, path, _]:
            return _Request(path, method == "HEAD", any(map(_takes_open_metrics, headers)))
    return None


def _takes_open_metrics(header: str) -> bool:
    """Whether a header names the type of OpenMetrics as one that the client accepts; whichever version, it gets 1.0."""
    name, _, value = header.partition(":")
    accepted = (part.partition(";")[0].strip() for part in value.split(","))
    return name.lower() == "accept" and OPEN_METRICS in accepted


def _as_http(answer: _Answer) -> tuple[bytes, bytes]:
    status, content_type, body = answer
    head = f"HTTP/1.0 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {content_type}\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode(), body


def _as_json(report: Report) -> _Answer:
    body = printable_json(msgspec.json.encode(report.body).decode())  # somebody may look at it on a terminal
    return report.status, "application/json", f"{body}\n".encode()
