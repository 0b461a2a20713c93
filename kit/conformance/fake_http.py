"""HTTP of the fake API server: reads requests, cuts and delays answers as faults say, streams watches."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from evictstream.kit.conformance.fake_cluster import EVICTION_REQUEST, LIFECYCLE_VERSION, PLURALS, head, is_selected
from evictstream.kit.conformance.fake_discovery import DISCOVERY
from evictstream.kit.conformance.fake_eviction_requests import DISCOVERED
from evictstream.kit.conformance.fake_faults import FakeAnswer, FakeRequest, Fault, Object, deep_json, refusal
from evictstream.kit.conformance.fake_requests import answer

LARGEST_BODY_BYTES: Final = 3_145_728
"""The API server's own limit."""

_LOOK_SECONDS: Final = 0.1
"""A quiet watch looks so often whether the server is down."""

LONGEST_WATCH_SECONDS: Final = 3_600.0

BOOKMARK_SECONDS: Final = 60.0
"""Between bookmarks of a watch, and one shortly before its end: as the API server sends them."""

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_OBJECTS: Final = frozenset({403, 404, 409, 422})  # where the API server names the object
_STATUS_TEXTS: Final = {200: "OK", 201: "Created"}


class FakeHttpHandler(BaseHTTPRequestHandler):
    """One connection; its requests one after the other."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer in two packets would wait 40 ms for the first one's acknowledgement
    server: Any

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Log nothing."""

    def do_GET(self) -> None:
        """Serve any method."""
        with contextlib.suppress(OSError):  # the client may hang up
            self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - http.server's names

    def _serve(self) -> None:
        api = self.server.api
        request = self._read()
        if api.is_down:
            self.close_connection = True
            return
        if request is None:
            return
        api.headers.append({name.lower(): self.headers.get_all(name) or [] for name in self.headers})
        is_known = api.token is None or self.headers.get("Authorization") == f"Bearer {api.token}"
        if not is_known or (api.user is not None and self._common_name() != api.user):
            self._send(refusal(401, "Unauthorized"))
            return
        fault = Fault()
        if request.verb != "list" or request.query.get("limit") != "1":  # a probe
            api.requests.append(request.what)
            api.cached_lists += request.verb == "list" and request.query.get("resourceVersion") == "0"
            fault = api.take_fault(request)
            if request.verb in {"list", "watch"}:
                self._be_silent(request)
        if request.verb == "watch" and not fault.status:
            self._watch(request, fault)
        else:
            self._reply(request, fault)

    def _common_name(self) -> str | None:
        parts = (self.connection.getpeercert() or {}).get("subject", ()) if self.server.api.tls is not None else ()
        return next((value for part in parts for name, value in part if name == "commonName"), None)

    def _reply(self, request: FakeRequest, fault: Fault) -> None:
        time.sleep(fault.hold_seconds)
        answer, done_to = self._answer(request, fault)
        if self.command != "GET":
            self.server.api.remember(request, answer, done_to)
        time.sleep(fault.delay_seconds)
        if fault.cut in {"before", "after"}:
            self.close_connection = True
        else:
            self._send(answer, is_cut=fault.cut == "middle")

    def _answer(self, request: FakeRequest, fault: Fault) -> tuple[FakeAnswer, str | None]:
        if fault.cut == "before":
            return FakeAnswer(0, {}), None
        if fault.status:
            message = fault.message or f"refused with {fault.status}"
            seconds = fault.retry_after_seconds
            if fault.text:
                return FakeAnswer(fault.status, {}, seconds, fault.text), None
            about = request if fault.status in _OF_OBJECTS else None
            refused = refusal(fault.status, message, cause=fault.cause, retry_after_seconds=seconds, about=about)
            return refused, None
        path = urlsplit(self.path).path.rstrip("/")
        discovered = DISCOVERY.get(path) if self.command == "GET" else None
        if path == f"/apis/{LIFECYCLE_VERSION}" and self.command == "GET":
            if not self.server.api.serves_requests:
                return FakeAnswer(404, {}, None, "404 page not found\n"), None
            discovered = DISCOVERED
        return answer(self.server.api, request) if discovered is None else (FakeAnswer(200, discovered), None)

    def _read(self) -> FakeRequest | None:
        """Read the request with its body; None after a refusal."""
        length = int(self.headers.get("Content-Length") or 0)
        if "Transfer-Encoding" in self.headers or length > LARGEST_BODY_BYTES:
            self.close_connection = True
            self._send(refusal(413, "a body in pieces, or one that is too large"))
            return None
        body = self.rfile.read(length)
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        at = parts.path.strip("/").split("/")
        group, rest = (at[1], at[2:]) if at[0] == "apis" and len(at) > 1 else ("", at[1:])
        version, rest = "".join(rest[:1]), rest[1:]
        namespace = ""
        if rest[:1] == ["namespaces"] and len(rest) > 2:  # noqa: PLR2004 - what is in the namespace
            namespace, rest = rest[1], rest[2:]
        resource, name, below = (*rest[:3], "", "", "")[:3]
        verb = _VERBS.get(self.command) or ("get" if name else "list")
        if verb == "list" and query.get("watch") in {"true", "1"}:
            verb = "watch"
        content_type = self.headers.get("Content-Type", "application/json")
        try:
            read = json.loads(body) if body else {}
        except ValueError:
            self._send(refusal(415, f"only JSON is read here, not {content_type}"))
            return None
        return FakeRequest(
            verb=verb,
            group=group,
            version=version,
            resource=f"{resource}/{below}" if below else resource,
            namespace=namespace,
            name=name,
            query=query,
            body=read,
            content_type=content_type,
        )

    def _watch(self, request: FakeRequest, fault: Fault) -> None:
        api = self.server.api
        kind, query = PLURALS.get(request.resource), request.query
        if kind is None or (kind == EVICTION_REQUEST and not api.serves_requests):
            self._send(refusal(404, "the server could not find the requested resource"))
            return
        if "sendInitialEvents" in query:
            self._send(refusal(422, "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch"))
            return
        version = int(query.get("resourceVersion") or 0)
        if version and api.changes_after(version) is None:
            self._send(refusal(410, f"too old resource version: {version}"))
            return
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for line in self._lines(request, kind, version):
            if fault.cut:
                self._chunk(line[: len(line) // 2])
                self.close_connection = True
                return
            if fault.line == "half":
                self._chunk(line[: len(line) // 2])
                break
            if fault.line == "error":
                self._chunk(_line("ERROR", refusal(410, "too old resource version").body))
                break
            self._chunk(b"nonsense\n" if fault.line == "garbage" else line)
            fault = Fault()
        self.wfile.write(b"0\r\n\r\n")

    def _lines(self, request: FakeRequest, kind: str, version: int) -> Iterator[bytes]:
        api = self.server.api
        if not version:  # a watch that begins with what is there
            page = api.page(kind, request).body
            version = int(page["metadata"]["resourceVersion"])
            yield from (_line("ADDED", head(kind) | item) for item in page["items"])
        bookmarks = _Bookmarks(request, version, api.bookmark_lead_seconds)
        turn = api.watch_turn
        while (left := bookmarks.end_at - time.monotonic()) > 0 and turn == api.watch_turn:
            self._be_silent(request)
            if api.is_down:
                self.close_connection = True
                return
            changes = api.changes_after(version)
            if changes is None:
                yield _line("ERROR", refusal(410, "too old resource version").body)
                return
            changes = [one for one in changes if one.version <= api.stuck.get(request.resource, one.version)]
            if not changes and request.resource not in api.stuck:
                version = api.quiet_version(version)  # as etcd's progress notifications have a cache catch up
            version = changes[-1].version if changes else version
            wanted = (one for one in changes if one.kind == kind and is_selected(one.object, request))
            yield from (_line(one.type, head(kind) | one.object) for one in wanted)
            if bookmarks.are_due(version):
                yield _line("BOOKMARK", _bookmark(kind, version))
            if not changes:
                api.wait_for_change(api.version if api.stuck else version, min(left, _LOOK_SECONDS))
        if turn != api.watch_turn and bookmarks.are_due(version, is_end=True):
            yield _line("BOOKMARK", _bookmark(kind, version))

    def _be_silent(self, request: FakeRequest) -> None:
        while request.resource in self.server.api.silent and not self.server.api.is_down:
            time.sleep(_LOOK_SECONDS)

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _send(self, answer: FakeAnswer, *, is_cut: bool = False) -> None:
        body = answer.text.encode() or deep_json(answer.body)
        retry = "" if answer.retry_after_seconds is None else f"Retry-After: {answer.retry_after_seconds}\r\n"
        head = (
            f"HTTP/1.1 {answer.status} {_STATUS_TEXTS.get(answer.status, 'No')}\r\n"
            f"Content-Type: {'text/plain' if answer.text else 'application/json'}\r\n"
            f"{retry}Content-Length: {len(body)}\r\n\r\n"
        ).encode()
        self.wfile.write(head + (body[: len(body) // 2] if is_cut else body))
        if is_cut:
            self.close_connection = True


def _line(type_: str, item: Object) -> bytes:
    return deep_json({"type": type_, "object": item}) + b"\n"


def _bookmark(kind: str, version: int) -> Object:
    return head(kind) | {"metadata": {"resourceVersion": str(version)}}


class _Bookmarks:
    """When one watch gets a bookmark: once a minute, shortly before its end, and only of a version that is news to it.

    Attributes:
        end_at: when the watch ends, on the monotonic clock.
    """

    def __init__(self, request: FakeRequest, version: int, lead_seconds: float) -> None:
        seconds = min(float(request.query.get("timeoutSeconds") or "inf"), LONGEST_WATCH_SECONDS)
        self.end_at = time.monotonic() + seconds
        self._is_wanted = "allowWatchBookmarks" in request.query
        self._begin = version
        self._last_at = self.end_at - lead_seconds
        self._next_at = min(time.monotonic() + BOOKMARK_SECONDS, self._last_at)
        if self._last_at < time.monotonic():  # as the API server has it: too late for one
            self._next_at = math.inf

    def are_due(self, version: int, *, is_end: bool = False) -> bool:
        """Tell whether to send one now."""
        now = time.monotonic()
        if now < self._next_at and not is_end:
            return False
        self._next_at = min(self._last_at, now + BOOKMARK_SECONDS)
        if now >= self._last_at:
            self._next_at = math.inf
        return self._is_wanted and version > self._begin
