"""Requests to one API server, and watches read line by line. Used by several threads.

Every request has a time limit. Credentials are read again where they may be out of date: when they have expired, after
401, as tokens rotate, plugins give new ones and certificates are replaced, and where TLS fails, as authorities are
replaced too. The request is sent once more then, if the server cannot have taken it; no other one is repeated here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
import urllib3
from urllib3.exceptions import HTTPError

from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError
from evictstream.streams.kubernetes.access import ClusterAccess, ClusterClient
from evictstream.streams.kubernetes.answers import ApiAnswer, Status, retry_after_seconds
from evictstream.streams.kubernetes.expected_cluster import ExpectedCluster
from evictstream.streams.kubernetes.renewed_client import RenewedClient

__all__ = ["ApiAnswer", "Connection", "Status"]

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

OK: Final = 200
UNAUTHORIZED: Final = 401

IDENTITY: Final = "/api/v1/namespaces/kube-system"
"""Every cluster has it, and its UID stays for the cluster's life."""


class _Namespace(msgspec.Struct):
    class Metadata(msgspec.Struct):
        uid: str

    metadata: Metadata


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One request, as it may be sent more than once."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    read_seconds: float = REQUEST_SECONDS
    data: bytes | None = None
    content_type: str = "application/json"


class Connection:
    """A pool of connections to one API server.

    After `expect_cluster` nothing is sent to another cluster, whatever the address leads to: the UID of `kube-system`
    is asked for first with each new client, after each connection that failed, and else every `IDENTITY_SECONDS`.
    """

    def __init__(self, access: ClusterAccess) -> None:
        """Find where the cluster is; credentials are read, and plugins run, with the first request.

        Raises:
            CredentialsError: the configuration cannot be read.
        """
        self._target = access.target()
        self._clients = RenewedClient(access)
        self._identity = ExpectedCluster(self._target.host)

    @property
    def host(self) -> str:
        """The API server's address, for people."""
        return self._target.host

    def expect_cluster(self, uid: str) -> None:
        """From now on send nothing but to the cluster with this UID; call it again where another one takes its place.

        Every other request raises `ClusterChangedError` while another UID answers; only `cluster_uid` is still sent.
        """
        self._identity.expect(uid)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """Read.

        Raises:
            ApiUnreachableError: no answer, or half of one.
            ApiRefusedError: another status than 200.
            CredentialsError: they are refused, and what would replace them cannot be read.
            ClusterMovedError: what would replace them belongs to another address.
            ClusterChangedError: another cluster answers than the expected one.
        """
        answer = self.send("GET", path, query)
        if not answer.is_done:
            raise self.refusal(path, answer)
        return answer.body

    def cluster_uid(self) -> str:
        """Ask for the cluster's identity: the UID of its namespace `kube-system`. Any cluster may answer.

        Raises: as `get`, and `ApiUnreachableError` if the answer is no namespace.
        """
        with self._opened(_Call(method="GET", path=IDENTITY), is_any_cluster=True) as (client, response):
            uid = self._uid(response)
        self._identity.learn(client, uid)
        return uid

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
            ClusterMovedError: what would replace them belongs to another address.
            ClusterChangedError: another cluster answers than the expected one.
        """
        data = None if body is None else msgspec.json.encode(body)
        call = _Call(method=method, path=path, query=query, data=data, content_type=content_type)
        with self._opened(call) as (_, response):
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
            KubernetesError: others as for `send`.
        """
        with self._opened(_Call(method="GET", path=path, query=query, read_seconds=quiet_seconds)) as (_, response):
            if response.status != OK:
                raise self.refusal(path, self._answer(response, path))
            yield self._lines(response, path)

    def close(self) -> None:
        """Close idle connections; running requests go on."""
        self._clients.close()

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
    def _opened(self, call: _Call, *, is_any_cluster: bool = False) -> Iterator[tuple[ClusterClient, Any]]:
        client = self._clients.current()
        try:
            response = self._sent(client, call, is_any_cluster=is_any_cluster)
        except ApiUnreachableError as error:
            found = _tls_error(error)
            if found is None:
                raise
            renewed = self._clients.renewed(client)
            if not isinstance(found, ssl.SSLCertVerificationError):  # it was sent, perhaps
                raise
            response = self._sent(renewed, call, is_any_cluster=is_any_cluster)
        if response.status == UNAUTHORIZED:
            self._discard(response)
            client = self._clients.renewed(client)
            response = self._sent(client, call, is_any_cluster=is_any_cluster)
        try:
            yield client, response
        finally:
            self._discard(response)

    def _sent(self, client: ClusterClient, call: _Call, *, is_any_cluster: bool) -> Any:
        """Send it, to the expected cluster; refused credentials end with an answer 401, of whichever request."""
        if is_any_cluster or self._identity.is_known(client):
            return self._request(client, call)
        with self._identity.one_asks():
            if not self._identity.is_known(client):  # else another thread has asked meanwhile
                response = self._request(client, _Call(method="GET", path=IDENTITY))
                if response.status == UNAUTHORIZED:
                    return response
                try:
                    self._identity.check(client, self._uid(response))
                except ApiRefusedError as error:  # is about the cluster, not about what was to be sent
                    raise ApiUnreachableError(host=self.host, reason=f"it does not say who it is: {error}") from error
                finally:
                    self._discard(response)
        return self._request(client, call)

    def _uid(self, response: Any) -> str:
        answer = self._answer(response, IDENTITY)
        if not answer.is_done:
            raise self.refusal(IDENTITY, answer)
        try:
            return msgspec.json.decode(answer.body, type=_Namespace).metadata.uid
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ApiUnreachableError(host=self.host, reason="it does not say who it is") from error

    def _request(self, client: ClusterClient, call: _Call) -> Any:
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json", "User-Agent": "evictstream"})
        if call.data is not None:
            headers["Content-Type"] = call.content_type
        for name, value in client.credentials.headers:
            headers.add(name, value)
        url = f"{client.target.server}{call.path}" + (f"?{urlencode(call.query)}" if call.query else "")
        try:
            return client.pool.request(
                call.method,
                url,
                body=call.data,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=call.read_seconds),
                preload_content=False,
                redirect=False,
            )
        except (HTTPError, OSError) as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> ApiUnreachableError:
        """Make an error of a connection that has failed; the next one may lead to another cluster."""
        self._identity.forget()
        return ApiUnreachableError(host=self.host, reason=_reason(error))

    def _answer(self, response: Any, path: str) -> ApiAnswer:
        try:
            body = response.read(LARGEST_ANSWER_BYTES + 1)
        except (HTTPError, OSError) as error:
            raise self._broken(error) from error
        if len(body) > LARGEST_ANSWER_BYTES:
            raise ApiUnreachableError(host=self.host, reason=f"{path}: more than {LARGEST_ANSWER_BYTES} bytes")
        wait = retry_after_seconds(response.headers.get("Retry-After"), dt.datetime.now(dt.UTC))
        return ApiAnswer(status=response.status, body=body, retry_after_seconds=wait)

    def _lines(self, response: Any, path: str) -> Iterator[bytes]:
        rest: list[bytes] = []
        waiting = 0
        while True:
            try:
                piece = response.read1(PIECE_BYTES)
            except (HTTPError, OSError) as error:
                raise self._broken(error) from error
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
