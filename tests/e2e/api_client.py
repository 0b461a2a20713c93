"""A client of the API server for tests, with the standard library only: it shares nothing with what is tested."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

Object = dict[str, Any]

PAGE = 500
TIMEOUT_SECONDS = 30.0

_PATCH = "application/merge-patch+json"
_STALE_CONNECTION = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError)


class RefusedError(Exception):
    """The API server has refused: `status` is HTTP's, `reason` is a word such as NotFound."""

    def __init__(self, status: int, answer: Object) -> None:
        self.status = status
        self.answer = answer
        self.reason = str(answer.get("reason", ""))
        super().__init__(f"{status} {self.reason}: {answer.get('message', '')}")


class ApiClient:
    """Calls with a user's client certificate. Threads may share it: each has a connection of its own."""

    def __init__(self, port: int, *, authority: Path, certificate: Path, key: Path) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(authority))
        self._context.load_cert_chain(certificate, key)
        self._of_thread = threading.local()
        self._opened: list[http.client.HTTPSConnection] = []

    def call(
        self, method: str, path: str, body: Object | bytes | None = None, kind: str = "application/json"
    ) -> Object:
        """Call once; a connection that the server has closed meanwhile is opened again. Bytes are sent as they are.

        Raises:
            RefusedError: the status is not of the kind 2xx.
            OSError: the server does not answer.
        """
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        for attempt in range(2):
            connection = self._connection()
            try:
                connection.request(method, path, content, {"Content-Type": kind, "Accept": "application/json"})
                with connection.getresponse() as answer:
                    text = answer.read()
                    status = answer.status
                break
            except _STALE_CONNECTION:
                connection.close()
                if attempt:
                    raise
            except OSError:
                connection.close()
                raise
        else:
            raise AssertionError("unreachable")
        try:
            found: Object = json.loads(text)
        except ValueError:
            found = {"message": text.decode(errors="replace")}
        if not http.client.OK <= status < http.client.MULTIPLE_CHOICES:
            raise RefusedError(status, found)
        return found

    def get(self, path: str) -> Object:
        """Read one object."""
        return self.call("GET", path)

    def create(self, collection: str, what: Object | bytes) -> Object:
        """Create an object in a collection, such as `/api/v1/nodes`."""
        return self.call("POST", collection, what)

    def patch(self, path: str, change: Object) -> Object:
        """Merge a change into an object (RFC 7386): lists are replaced, `None` removes."""
        return self.call("PATCH", path, change, _PATCH)

    def delete(self, path: str, *, uid: str | None = None, grace_seconds: int | None = None) -> Object:
        """Delete an object, only the one with this UID if it is given."""
        options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return self.call("DELETE", path, options)

    def items(self, collection: str, **query: str) -> list[Object]:
        """List all objects of a collection, in pages."""
        found, _ = self.listing(collection, **query)
        return found

    def listing(self, collection: str, **query: str) -> tuple[list[Object], str]:
        """List all objects of a collection, and the resource version of that listing."""
        items: list[Object] = []
        more: dict[str, str] = {}
        while True:
            page = self.get(f"{collection}?{urlencode({'limit': PAGE, **query, **more})}")
            items += page["items"]
            if not page["metadata"].get("continue"):
                return items, page["metadata"]["resourceVersion"]
            more = {"continue": page["metadata"]["continue"]}

    def watch(self, collection: str, resource_version: str, *, seconds: int = 3600) -> Iterator[Object]:
        """Give the watch's events until the server ends it, on a connection of its own."""
        query = {"watch": "true", "resourceVersion": resource_version, "timeoutSeconds": seconds}
        connection = self._open()
        with contextlib.closing(connection):
            connection.request("GET", f"{collection}?{urlencode(query)}")
            with connection.getresponse() as answer:
                if answer.status != http.client.OK:
                    raise RefusedError(answer.status, json.loads(answer.read()))
                for line in answer:
                    yield json.loads(line)

    def close(self) -> None:
        """Close all threads' connections; one that is used again is opened again."""
        for connection in self._opened:
            connection.close()

    def _connection(self) -> http.client.HTTPSConnection:
        if not hasattr(self._of_thread, "connection"):
            self._of_thread.connection = self._open()
            self._opened.append(self._of_thread.connection)
        connection: http.client.HTTPSConnection = self._of_thread.connection
        return connection

    def _open(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self._port, timeout=TIMEOUT_SECONDS, context=self._context)
