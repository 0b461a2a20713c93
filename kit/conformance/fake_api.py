"""An API server on loopback for nodes and pods, that misbehaves on request; in threads of this process."""

from __future__ import annotations

import collections
import json
import ssl
import threading
import time
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self

from evictstream.kit.conformance.fake_cluster import FakeCluster
from evictstream.kit.conformance.fake_faults import ApiWrite, FakeAnswer, FakeRequest, Fault, Object
from evictstream.kit.conformance.fake_http import FakeHttpHandler

_LOOK_SECONDS: Final = 0.02
"""Between looks at pods whose termination is over, and at the end of the server."""

BOOKMARK_LEAD_SECONDS: Final = 2.0
"""As the API server has it."""

MOST_REMEMBERED: Final = 1_000_000
"""Requests and writes: an hour of 270 a second."""

_MOST_HEADERS: Final = 10_000
"""Of so many requests the headers are kept."""


class FakeApi(FakeCluster):
    """The cluster and its server. Use as a context manager.

    Attributes:
        requests: `list pods`, `delete pods` and the like, in order; a probe of one object is none.
        headers: of requests, by lower-case name, in order; what comes several times is in one list.
        writes: requests to change something, in order.
        trouble: what happens to requests, by `list nodes`, `delete pods` and so on, or for one object by
            `delete pods my-pod`; the first one first. A number is a status, `cut` an answer that ends in its middle,
            `error` and `garbage` lines of a watch.
        token: the only bearer token that is accepted; None accepts any, or none.
        user: the only common name of client certificates that is accepted, with `tls`; None accepts any, or none.
        tls: secures each new connection; None leaves them plain.
        silent: plurals whose lists and watches stay open and say nothing, whatever limit they were opened with.
        stuck: plurals whose watches show nothing beyond a version, as where the cache behind them stands still.
        bookmark_lead_seconds: how long before the end of a watch its last bookmark comes.
        cached_lists: lists that would take what a cache has (`resourceVersion=0`).
        watch_turn: grows when all watches that are open are to end.
        is_down: no request is answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.requests: collections.deque[str] = collections.deque(maxlen=MOST_REMEMBERED)
        self.headers: collections.deque[dict[str, list[str]]] = collections.deque(maxlen=_MOST_HEADERS)
        self.writes: collections.deque[ApiWrite] = collections.deque(maxlen=MOST_REMEMBERED)
        self.trouble: dict[str, list[int | str | Fault]] = {}
        self.token: str | None = None
        self.user: str | None = None
        self.tls: ssl.SSLContext | None = None
        self.silent: set[str] = set()
        self.stuck: dict[str, int] = {}
        self.bookmark_lead_seconds = BOOKMARK_LEAD_SECONDS
        self.cached_lists = 0
        self.watch_turn = 0
        self.is_down = False
        self._faults_lock = threading.Lock()
        self._server = _Server(self)

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self._server.server_address[1]}"

    def kubeconfig(self, token_file: Path | None = None) -> str:
        """Return a kubeconfig in JSON, which is YAML; with a file the token is what that holds at the moment."""
        user = {"token": self.token or "nobody-looks-at-it"} if token_file is None else {"tokenFile": str(token_file)}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
                "users": [{"name": "somebody", "user": user}],
                "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "somebody"}}],
                "current-context": "fake",
            }
        )

    def __enter__(self) -> Self:
        """Serve."""
        threading.Thread(target=self._server.serve_forever, args=(_LOOK_SECONDS,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop to serve; watches end within a tenth of a second."""
        self.is_down = True
        self._server.shutdown()
        self._server.server_close()

    def end_watches(self) -> None:
        """End all watches that are open, as the API server does when their time is over."""
        self.watch_turn += 1

    def watches(self, plural: str) -> int:
        """Count the watches that were opened."""
        return sum(1 for request in list(self.requests) if request == f"watch {plural}")

    def removals(self, name: str) -> list[ApiWrite]:
        """List deletes and evictions of the pod of this name, done or not."""
        return [write for write in list(self.writes) if write.name == name and write.is_removal]

    def take_fault(self, request: FakeRequest) -> Fault:
        """Return what happens to this request, and let it happen once."""
        with self._faults_lock:
            for what in (f"{request.what} {request.name}", request.what):
                if self.trouble.get(what):
                    return Fault.of(self.trouble[what].pop(0))
        return Fault()

    def remember(self, request: FakeRequest, answer: FakeAnswer, done_to: str | None) -> None:
        """Keep a request that was meant to change something."""
        body = request.body if isinstance(request.body, dict) else {}
        options: Object = (body.get("deleteOptions") or {}) if request.resource == "pods/eviction" else body
        wanted: Any = options.get("preconditions") or {}
        if request.verb == "patch":
            wanted = body.get("metadata") or {}
        self.writes.append(
            ApiWrite(
                at=time.time(),
                what=request.what,
                namespace=request.namespace,
                name=request.name,
                uid=wanted.get("uid"),
                done_to=done_to,
                status=answer.status,
                body=request.body,
                is_dry_run=bool(options.get("dryRun") or request.query.get("dryRun")),
            )
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # clients that come back together after a fault

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        super().__init__(("127.0.0.1", 0), FakeHttpHandler)

    def service_actions(self) -> None:
        self.api.end_terminated()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Shake hands in the connection's own thread."""
        if self.api.tls is not None:
            request = self.api.tls.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)
        if self.api.tls is not None:
            request.close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that hang up; they may."""
