"""Health and metrics over HTTP, from threads of their own, which answer while the event loop is stuck.

Plain `http.server` is enough for a probe a second. A web framework on the event loop would be silent exactly when a
probe asks whether the loop is stuck. Without password and TLS, the default address is loopback.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Protocol

import msgspec
import structlog
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest

from evictstream.streams.errors import AddressTakenError

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

log = structlog.get_logger(__name__)

REQUEST_TIMEOUT_SECONDS = 5.0  # a slower client would keep one of the threads below
REQUESTS_AT_ONCE = 16  # far more than probes and scrapers make; further connections are closed

OK = 200
UNAVAILABLE = 503


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


Answer = tuple[int, str, bytes]
"""Status, content type, body."""

NOT_FOUND: Answer = (404, "text/plain", b"/livez, /readyz or /metrics\n")
FAILED: Answer = (500, "text/plain", b"see the log\n")


class Endpoint(ThreadingHTTPServer):
    """Serves `/livez`, `/readyz` and `/metrics` until the process ends."""

    daemon_threads = True
    request_queue_size = REQUESTS_AT_ONCE

    def __init__(self, host: str, port: int, health: Probes, metrics: Collector) -> None:
        """Listen; with port 0 at any free port.

        Raises:
            AddressTakenError: the address cannot be listened on.
        """
        registry = CollectorRegistry()
        registry.register(metrics)
        self.answers: dict[str, Callable[[], Answer]] = {
            "/livez": lambda: _as_json(health.live(time.monotonic())),
            "/readyz": lambda: _as_json(health.ready(time.monotonic())),
            "/metrics": lambda: (200, CONTENT_TYPE_PLAIN_0_0_4, generate_latest(registry)),
        }
        self._room = threading.BoundedSemaphore(REQUESTS_AT_ONCE)
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise AddressTakenError(host=host, port=port, reason=error.strerror or str(error)) from error

    def start(self) -> None:
        """Serve in a thread that does not keep the process alive."""
        threading.Thread(target=self.serve_forever, name="health", daemon=True).start()

    def process_request(self, request: object, client_address: object) -> None:
        """Answer in a thread; close the connection while `REQUESTS_AT_ONCE` are being answered."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)  # type: ignore[arg-type]  # as socketserver passes it
        else:
            self.shutdown_request(request)  # type: ignore[arg-type]  # as above

    def process_request_thread(self, request: object, client_address: object) -> None:
        """Answer one request."""
        try:
            super().process_request_thread(request, client_address)  # type: ignore[arg-type]  # as above
        finally:
            self._room.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing: clients may close their connections."""


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint
    timeout = REQUEST_TIMEOUT_SECONDS
    server_version = "evictstream"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer one of the paths."""
        answer = self.server.answers.get(self.path.partition("?")[0])
        try:
            status, content_type, body = answer() if answer else NOT_FOUND
        except Exception:
            log.exception("no answer", path=self.path)
            status, content_type, body = FAILED
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Log nothing: a probe a second would fill the log."""


def _as_json(report: Report) -> Answer:
    return report.status, "application/json", msgspec.json.encode(report.body) + b"\n"
