"""Requests to one API server, and watches read line by line. Used by several threads.

Every request has a limit on its whole time; a watch has one on its headers. Credentials are read again where they may
be out of date: when they have expired, after 401, as tokens rotate, plugins give new ones and certificates are
replaced, and where TLS fails, as authorities are replaced too. The request is sent once more then, if the server cannot
have taken it; no other one is repeated here.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from evictstream.streams.errors import ApiRefusedError, ApiUnreachableError
from evictstream.streams.kubernetes.access import ClusterAccess, ClusterClient
from evictstream.streams.kubernetes.answers import ApiAnswer, Status
from evictstream.streams.kubernetes.exchange import ApiCall, Exchange
from evictstream.streams.kubernetes.expected_cluster import ExpectedCluster
from evictstream.streams.kubernetes.renewed_client import RenewedClient
from evictstream.streams.kubernetes.time_limits import at_any_time

__all__ = ["ApiAnswer", "Connection", "Status"]

_OK: Final = 200
UNAUTHORIZED: Final = 401

IDENTITY: Final = "/api/v1/namespaces/kube-system"
"""Every cluster has it, and its UID stays for the cluster's life."""


class _Namespace(msgspec.Struct, tag_field="kind", tag="Namespace"):
    class Metadata(msgspec.Struct):
        uid: str

    metadata: Metadata


_namespaces: Final = msgspec.json.Decoder(_Namespace)


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
        with self._opened(ApiCall(method="GET", path=IDENTITY), is_any_cluster=True) as exchange:
            uid = self._uid(exchange.answer())
        self._identity.learn(exchange.client, uid)
        return uid

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: object = None,
        content_type: str = "application/json",
        send_until: Callable[[], float] = at_any_time,
    ) -> ApiAnswer:
        """Send a request and read the whole answer, which may be a refusal.

        Args:
            method: of HTTP.
            path: of the object.
            query: parameters.
            body: is sent as JSON.
            content_type: of the body.
            send_until: returns the monotonic time after which it is not sent. It is asked directly before, however long
                credentials or a connection have taken.

        Raises:
            NotSentError: `send_until` was over before.
            ApiUnreachableError: no answer, or half of one. The server may have done what it was asked for.
            CredentialsError: they are refused, and what would replace them cannot be read.
            ClusterMovedError: what would replace them belongs to another address.
            ClusterChangedError: another cluster answers than the expected one.
        """
        data = None if body is None else msgspec.json.encode(body)
        call = ApiCall(
            method=method, path=path, query=query, data=data, content_type=content_type, send_until=send_until
        )
        with self._opened(call) as exchange:
            return exchange.answer()

    @contextlib.contextmanager
    def arriving(self, path: str, query: Mapping[str, str]) -> Iterator[Iterator[bytes]]:
        """Read an answer while it arrives; gives its pieces, so that no caller has to keep all of it.

        Raises: as `get`; while reading, too.
        """
        with self._opened(ApiCall(method="GET", path=path, query=query)) as exchange:
            if exchange.status != _OK:
                raise self.refusal(path, exchange.answer())
            yield exchange.pieces()

    @contextlib.contextmanager
    def watch(
        self, path: str, query: Mapping[str, str], *, quiet_seconds: float, gather_seconds: float = 0.0
    ) -> Iterator[Iterator[bytes]]:
        """Open a watch; gives its lines as they come, until the server ends it.

        A last line without an end is dropped: it was cut, and the same event comes again with the next watch. Of a line
        that is too long only the beginning is given, which is not the JSON of anything.

        Args:
            path: of the resource.
            query: with `watch`.
            quiet_seconds: without a byte for so long the connection counts as dead.
            gather_seconds: once all that has come is read, further lines gather for so long.

        Raises:
            ApiUnreachableError: no answer, or the stream broke; while reading, too.
            ApiRefusedError: the server opens no watch.
            KubernetesError: others as for `send`.
        """
        call = ApiCall(method="GET", path=path, query=query, quiet_seconds=quiet_seconds, gather_seconds=gather_seconds)
        with self._opened(call) as exchange:
            if exchange.status != _OK:
                raise self.refusal(path, exchange.answer())
            yield exchange.lines()

    def close(self) -> None:
        """Close idle connections, and send no further request; running ones go on."""
        self._clients.close()

    def refusal(self, path: str, answer: ApiAnswer) -> ApiRefusedError:
        """Make an error of an answer."""
        status = answer.said()
        return ApiRefusedError(
            host=self.host,
            path=path,
            status=answer.status,
            reason=status.message or status.reason,
            retry_after_seconds=answer.retry_after_seconds,
        )

    @contextlib.contextmanager
    def _opened(self, call: ApiCall, *, is_any_cluster: bool = False) -> Iterator[Exchange]:
        client = self._clients.current(call.end_at)
        try:
            exchange = self._sent(client, call, is_any_cluster=is_any_cluster)
        except ApiUnreachableError as error:
            tls_error = _tls_error(error)
            if tls_error is None:
                raise
            renewed = self._clients.renewed(client, call.end_at)
            if not isinstance(tls_error, ssl.SSLCertVerificationError):  # it was sent, perhaps
                raise
            exchange = self._sent(renewed, call, is_any_cluster=is_any_cluster)
        if exchange.status == UNAUTHORIZED:
            exchange.close()
            exchange = self._sent(
                self._clients.renewed(exchange.client, call.end_at), call, is_any_cluster=is_any_cluster
            )
        try:
            yield exchange
        except ApiUnreachableError:
            self._identity.forget()
            raise
        finally:
            exchange.close()

    def _sent(self, client: ClusterClient, call: ApiCall, *, is_any_cluster: bool) -> Exchange:
        """Send it, to the expected cluster; refused credentials end with an answer 401, of whichever request."""
        try:
            if not is_any_cluster and not self._identity.is_known(client):
                with self._identity.one_asks(call.end_at):
                    if not self._identity.is_known(client):  # else another thread has asked meanwhile
                        refused = self._ask(client, call.end_at)
                        if refused is not None:
                            return refused
            return Exchange(client, call)
        except ApiUnreachableError:
            self._identity.forget()  # the next connection may lead to another cluster
            raise

    def _ask(self, client: ClusterClient, end_at: float) -> Exchange | None:
        """Ask who answers; returns the answer 401, if it is one.

        Raises:
            ClusterChangedError: another cluster does.
        """
        exchange = Exchange(client, ApiCall(method="GET", path=IDENTITY, end_at=end_at))
        if exchange.status == UNAUTHORIZED:
            return exchange
        try:
            self._identity.check(client, self._uid(exchange.answer()))
        except ApiRefusedError as error:  # is about the cluster, not about what was to be sent
            reason = f"{error.status} to {IDENTITY}, which says who it is: {error.reason or 'no reason given'}"
            raise ApiUnreachableError(host=self.host, reason=reason, is_answered=True) from error
        finally:
            exchange.close()
        return None

    def _uid(self, answer: ApiAnswer) -> str:
        if not answer.is_done:
            raise self.refusal(IDENTITY, answer)
        try:
            return _namespaces.decode(answer.body).metadata.uid
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reason = "the UID of its namespace kube-system cannot be read"
            raise ApiUnreachableError(host=self.host, reason=reason, is_answered=True) from error


def _tls_error(error: BaseException) -> BaseException | None:
    """Find what TLS has to say below an error."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        below = cause.args[0] if cause.args and isinstance(cause.args[0], BaseException) else None
        cause = below or cause.__cause__
    return cause
