"""An API server for nodes and pods, in threads of the test's process, that misbehaves when it is told to.

It keeps what counts of a real one: one resource version for all kinds, lists in pages of one version, watches that
begin at a version and end by themselves, 410 for versions that are forgotten, deletes with preconditions.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

Object = dict[str, Any]
KINDS = {"/api/v1/nodes": "Node", "/api/v1/pods": "Pod"}
LOOK_SECONDS = 0.02


class FakeApi:
    """The cluster and its server. Use as a context manager.

    Attributes:
        uid: of the namespace `kube-system`.
        version: the newest resource version.
        requests: `GET /api/v1/pods?watch` and the like, in order.
        trouble: answers to give instead, by `list nodes`, `watch pods` and so on, the first one first: a status, or
            `cut` (in the middle of an object), `error` (an `ERROR` event with 410), `garbage` (a line that is none).
        is_down: nobody answers.
    """

    def __init__(self) -> None:
        self.uid = str(uuid.uuid4())
        self.version = 100
        self.requests: list[str] = []
        self.trouble: dict[str, list[int | str]] = {}
        self.is_down = False
        self.objects: dict[tuple[str, str], Object] = {}
        self._events: list[tuple[int, str, str, Object]] = []  # version, kind, type, object
        self._oldest = 0
        self._lock = threading.RLock()
        self._snapshots: dict[str, list[Object]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.api = self  # type: ignore[attr-defined] # how http.server's handlers find it

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def kubeconfig(self) -> str:
        """Return a kubeconfig in JSON, which is YAML."""
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
                "users": [{"name": "feed", "user": {"token": "nobody-looks-at-it"}}],
                "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "feed"}}],
                "current-context": "fake",
            }
        )

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(LOOK_SECONDS,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_down = True
        self._server.shutdown()
        self._server.server_close()

    def put(self, kind: str, name: str, *, uid: str | None = None, **parts: Any) -> Object:
        """Add an object, or change the one of this name; returns it."""
        with self._lock:
            known = self.objects.get((kind, name))
            meta = {"name": name, "uid": uid or (known["metadata"]["uid"] if known else str(uuid.uuid4()))}
            if kind == "Pod":
                meta["namespace"] = "shop"
            found = {"metadata": meta | parts.pop("metadata", {}), **(known or {} if uid is None else {}), **parts}
            found["metadata"] = meta | {"resourceVersion": str(self._next())}
            self.objects[kind, name] = found
            self._events.append((self.version, kind, "MODIFIED" if known else "ADDED", found))
            return found

    def remove(self, kind: str, name: str) -> None:
        with self._lock:
            found = self.objects.pop((kind, name))
            gone = {**found, "metadata": found["metadata"] | {"resourceVersion": str(self._next())}}
            self._events.append((self.version, kind, "DELETED", gone))

    def forget_history(self) -> None:
        """Compact: watches can begin only at the newest version."""
        with self._lock:
            self._events.clear()
            self._oldest = self.version

    def rebuild(self, *, uid: str | None = None, version: int = 1) -> None:
        """Go back: another cluster answers, or with the same UID etcd was restored; its objects are to be put anew."""
        with self._lock:
            self.uid = uid or self.uid
            self.version = self._oldest = version
            self.objects.clear()
            self._events.clear()

    def watches(self, plural: str) -> int:
        """Count the watches that were opened."""
        return sum(1 for one in self.requests if one == f"watch {plural}")

    def _next(self) -> int:
        self.version += 1
        return self.version

    def page(self, kind: str, query: dict[str, str]) -> Object:
        with self._lock:
            at, _, place = query.get("continue", "").partition("/")
            if not at:
                at = f"{self.version}:{len(self._snapshots)}"
                self._snapshots[at] = [one for (of, _), one in sorted(self.objects.items()) if of == kind]
            begin, limit = int(place or 0), int(query.get("limit", "0") or 0) or 10**9
            items = self._snapshots[at][begin : begin + limit]
            more = begin + limit < len(self._snapshots[at])
            meta = {"resourceVersion": at.partition(":")[0]} | ({"continue": f"{at}/{begin + limit}"} if more else {})
            return {"kind": f"{kind}List", "apiVersion": "v1", "metadata": meta, "items": items}

    def events_after(self, kind: str, version: int) -> list[tuple[int, str, Object]] | None:
        """List events; None if some of them are forgotten, or lie ahead."""
        with self._lock:
            if version < self._oldest or version > self.version:
                return None
            return [(at, type_, found) for at, of, type_, found in self._events if of == kind and at > version]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Log nothing."""

    def do_GET(self) -> None:
        api: FakeApi = self.server.api
        if api.is_down:
            self.close_connection = True
            return
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/api/v1/namespaces/kube-system":
            self._answer(200, {"metadata": {"uid": api.uid, "name": "kube-system"}})
            return
        kind = KINDS.get(parts.path)
        if kind is None:
            self._refuse(404)
            return
        what = f"{'watch' if 'watch' in query else 'list'} {parts.path.rpartition('/')[2]}"
        if query.get("limit") != "1":  # a probe
            api.requests.append(what)
            trouble = api.trouble.get(what, [])
            wrong = trouble.pop(0) if trouble else None
            if isinstance(wrong, int):
                self._refuse(wrong)
                return
        else:
            wrong = None
        if "watch" in query:
            with contextlib.suppress(OSError):
                self._watch(api, kind, query, wrong)
        else:
            self._answer(200, api.page(kind, query), cut=wrong == "cut")

    def _watch(self, api: FakeApi, kind: str, query: dict[str, str], wrong: str | None) -> None:
        version = int(query["resourceVersion"])
        if api.events_after(kind, version) is None:
            self._refuse(410)
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        end_at = time.monotonic() + float(query.get("timeoutSeconds", "3600"))
        for line in self._lines(api, kind, version, end_at):
            if wrong == "cut":
                self._chunk(line[: len(line) // 2])
                self.close_connection = True
                return
            if wrong == "error":
                self._chunk(_line("ERROR", {"kind": "Status", "code": 410, "message": "too old"}))
                break
            self._chunk(b"nonsense\n" if wrong == "garbage" else line)
            wrong = None
        self.wfile.write(b"0\r\n\r\n")

    def _lines(self, api: FakeApi, kind: str, version: int, end_at: float) -> Iterator[bytes]:
        while time.monotonic() < end_at:
            if api.is_down:
                self.close_connection = True
                return
            found = api.events_after(kind, version)
            if found is None:
                yield _line("ERROR", {"kind": "Status", "code": 410, "message": "too old"})
                return
            for at, type_, one in found:
                version = at
                yield _line(type_, {"kind": kind, "apiVersion": "v1", **one})
            time.sleep(LOOK_SECONDS)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _answer(self, status: int, found: Object, *, cut: bool = False) -> None:
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = cut

    def _refuse(self, status: int) -> None:
        self._answer(status, {"kind": "Status", "code": status, "message": f"refused with {status}"})


def _line(type_: str, found: Object) -> bytes:
    return json.dumps({"type": type_, "object": found}).encode() + b"\n"
