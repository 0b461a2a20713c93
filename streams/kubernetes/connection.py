"""Requests to one API server, and watches read line by line. Used by several threads.

Every request has a time limit. The configuration is read anew where it may be out of date: after 401, as tokens rotate,
plugins give new ones and certificates are replaced, and where TLS fails, as authorities are replaced too. The request
is sent once more then, if the server cannot have taken it; no other one is repeated here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ssl
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
import urllib3
from urllib3.exceptions import HTTPError

from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError
from evictstream.streams.kubernetes.access import ClusterAccess

CONNECT_SECONDS: Final = 10.0
"""To reach the API server, TLS included: it is near, or a load balancer is."""

REQUEST_SECONDS: Final = 60.0
"""For the next bytes of an answer. The API server itself ends requests after 60 s."""

LARGEST_ANSWER_BYTES: Final = 268_435_456
"""256 MiB: a page of 500 objects of etcd's largest size would be three times that, and no real one is a tenth of it."""

LONGEST_LINE_BYTES: Final = 16_777_216
"""16 MiB: etcd takes 1.5 MiB for an object, and JSON is at most some times longer than protobuf."""

PIECE_BYTES: Final = 262_144
"""Read at once from a watch: some hundred events."""

LONGEST_MESSAGE: Final = 1_000
"""Characters that are kept of what the API server says of a refusal: a webhook may answer with a page."""

LONGEST_RETRY_AFTER_SECONDS: Final = 600.0
"""What is asked for beyond it is a mistake, of a proxy perhaps: the API server asks for seconds."""

UNAUTHORIZED: Final = 401

IDENTITY: Final = "/api/v1/namespaces/kube-system"
"""Every cluster has it, and its UID stays for the cluster's life."""


class Status(msgspec.Struct):
    """What the API server says of a request that it refuses (v1 Status)."""

    message: str = ""
    reason: str = ""
    code: int = 0


class _Namespace(msgspec.Struct):
    class Metadata(msgspec.Struct):
        uid: str

    metadata: Metadata


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ApiAnswer:
    """An answer, whatever its status.

    Attributes:
        status: of HTTP.
        body: JSON.
        retry_after_seconds: what the server asks for; None if it does not.
    """

    status: int
    body: bytes
    retry_after_seconds: float | None = None

    @property
    def is_done(self) -> bool:
        """Whether the server did what it was asked for."""
        return 200 <= self.status < 300  # noqa: PLR2004 - what HTTP calls success

    def said(self) -> Status:
        """Read what the server says of its refusal; empty if it is not the API server's."""
        try:
            found = msgspec.json.decode(self.body, type=Status)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return Status()
        return msgspec.structs.replace(found, message=found.message[:LONGEST_MESSAGE])


class Connection:
    """A pool of connections to one API server.

    Attributes:
        host: its address.
    """

    def __init__(self, access: ClusterAccess) -> None:
        """Read the configuration; nothing is sent yet.

        Raises:
            CredentialsError: it cannot be read.
        """
        self._access = access
        self._lock = threading.Lock()
        self._client = access.client()

    @property
    def host(self) -> str:
        """The API server's address, for people."""
        return str(self._client.configuration.host)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Read.

        Raises:
            ApiUnreachableError: no answer, or half of one.
            ApiRefusedError: another status than 200.
            CredentialsError: they are refused, and what would replace them cannot be read.
        """
        answer = self.send("GET", path, query)
        if not answer.is_done:
            raise self.refusal(path, answer)
        return answer.body

    def cluster_uid(self) -> str:
        """Ask for the cluster's identity: the UID of its namespace `kube-system`.

        Raises: as `get`, and `ApiUnreachableError` if the answer is no namespace.
        """
        body = self.get(IDENTITY)
        try:
            return msgspec.json.decode(body, type=_Namespace).metadata.uid
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ApiUnreachableError(host=self.host, reason="it does not say who it is") from error

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: object = None,
        content_type: str = "application/json",
    ) -> ApiAnswer:
        """Send a request and read the whole answer, which may be a refusal.

        Raises:
            ApiUnreachableError: no answer, or half of one. The server may have done what it was asked for.
            CredentialsError: they are refused, and what would replace them cannot be read.
        """
        data = None if body is None else msgspec.json.encode(body)
        with self._opened(method, path, query, REQUEST_SECONDS, data=data, content_type=content_type) as response:
            return self._answer(response, path)

    @contextlib.contextmanager
    def watch(self, path: str, query: Mapping[str, str], *, quiet_seconds: float) -> Iterator[Iterator[bytes]]:
        """Open a watch; gives its lines as they come, until the server ends it.

        A last line without an end is dropped: it was cut, and the same event comes again with the next watch.

        Args:
            path: of the resource.
            query: with `watch`.
            quiet_seconds: without a byte for so long the connection counts as dead.

        Raises:
            ApiUnreachableError: no answer, or the stream broke; while reading, too.
            ApiRefusedError: the server opens no watch.
            CredentialsError: as for `send`.
        """
        with self._opened("GET", path, query, quiet_seconds) as response:
            if response.status != 200:  # noqa: PLR2004 - what HTTP calls success
                raise self.refusal(path, self._answer(response, path))
            yield self._lines(response, path)

    def close(self) -> None:
        """Close idle connections; running requests go on."""
        self._client.rest_client.close()

    def refusal(self, path: str, answer: ApiAnswer) -> ApiRefusedError:
        """Make an error of an answer."""
        said = answer.said()
        return ApiRefusedError(
            host=self.host,
            path=path,
            status=answer.status,
            reason=said.message or said.reason,
            retry_after_seconds=answer.retry_after_seconds,
        )

    @contextlib.contextmanager
    def _opened(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        read_seconds: float,
        *,
        data: bytes | None = None,
        content_type: str = "application/json",
    ) -> Iterator[Any]:
        client = self._client
        try:
            response = self._request(client, method, path, query, read_seconds, data, content_type)
        except ApiUnreachableError as error:
            found = _tls_error(error)
            if found is None:
                raise
            renewed = self._renewed(client)
            if not isinstance(found, ssl.SSLCertVerificationError):  # it was sent, perhaps
                raise
            response = self._request(renewed, method, path, query, read_seconds, data, content_type)
        if response.status == UNAUTHORIZED:
            self._discard(response)
            response = self._request(self._renewed(client), method, path, query, read_seconds, data, content_type)
        try:
            yield response
        finally:
            self._discard(response)

    def _request(
        self,
        client: Any,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        read_seconds: float,
        data: bytes | None,
        content_type: str,
    ) -> Any:
        configuration = client.configuration
        headers = {"Accept": "application/json", "User-Agent": "evictstream"}
        if data is not None:
            headers["Content-Type"] = content_type
        for found in configuration.auth_settings().values():
            if found["in"] == "header" and found["value"]:
                headers[found["key"]] = found["value"]
        url = f"{configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            return client.rest_client.pool_manager.request(
                method,
                url,
                body=data,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_seconds),
                preload_content=False,
                redirect=False,
            )
        except (HTTPError, OSError) as error:
            raise ApiUnreachableError(host=self.host, reason=_reason(error)) from error

    def _renewed(self, client: Any) -> Any:
        """Read the configuration anew, unless another thread has done it."""
        with self._lock:
            if self._client is client:
                self._client = self._access.client()
            return self._client

    def _answer(self, response: Any, path: str) -> ApiAnswer:
        try:
            body = response.read(LARGEST_ANSWER_BYTES + 1)
        except (HTTPError, OSError) as error:
            raise ApiUnreachableError(host=self.host, reason=_reason(error)) from error
        if len(body) > LARGEST_ANSWER_BYTES:
            raise ApiUnreachableError(host=self.host, reason=f"{path}: more than {LARGEST_ANSWER_BYTES} bytes")
        return ApiAnswer(
            status=response.status, body=body, retry_after_seconds=_seconds(response.headers.get("Retry-After"))
        )

    def _lines(self, response: Any, path: str) -> Iterator[bytes]:
        rest: list[bytes] = []
        waiting = 0
        while True:
            try:
                piece = response.read1(PIECE_BYTES)
            except (HTTPError, OSError) as error:
                raise ApiUnreachableError(host=self.host, reason=_reason(error)) from error
            if not piece:
                return
            *whole, last = piece.split(b"\n")
            if whole:
                whole[0] = b"".join((*rest, whole[0]))
                rest, waiting = [], 0
                yield from whole
            rest.append(last)
            waiting += len(last)
            if waiting > LONGEST_LINE_BYTES:
                raise ApiUnreachableError(host=self.host, reason=f"{path}: a line of over {LONGEST_LINE_BYTES} bytes")

    @staticmethod
    def _discard(response: Any) -> None:
        """Give the connection back if all was read, else close it."""
        if response.isclosed():
            response.release_conn()
        else:
            response.close()


def _seconds(text: str | None) -> float | None:
    """Read `Retry-After`; its other form, a date, is not used by the API server."""
    return min(float(text), LONGEST_RETRY_AFTER_SECONDS) if text is not None and text.isdecimal() else None


def _tls_error(error: BaseException) -> BaseException | None:
    """Find what TLS has to say below an error."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, ssl.SSLError):
        below = found.args[0] if found.args and isinstance(found.args[0], BaseException) else None
        found = below or found.__cause__
    return found


def _reason(error: Exception) -> str:
    """Say what happened without the address, which the error has as a field."""
    found: BaseException = error
    while (below := getattr(found, "reason", None)) is not None and isinstance(below, BaseException):
        found = below
    return str(found) or type(found).__name__
