"""Requests of the commands of a handover: paced, tried again where that helps, and ended by a signal."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from evictstream.streams.errors import ApiUnreachableError
from evictstream.streams.handover.pod_states import ClusterPod
from evictstream.streams.kubernetes.access import ClusterAccess
from evictstream.streams.kubernetes.answers import ApiAnswer
from evictstream.streams.kubernetes.backoff import Backoff
from evictstream.streams.kubernetes.connection import Connection

PODS_OF_A_PAGE: Final = 500
MOST_TRIES_OF_REQUEST: Final = 8
"""Of one request: an API server that restarts is back in a minute."""

DRY_RUN: Final = {"dryRun": "All"}
"""Of a query: the API server does all but write."""

TOO_MANY_REQUESTS: Final = 429
_EXPIRED: Final = 410
_FIRST_OF_SERVER: Final = 500
_STEP_SECONDS: Final = 0.1
_LONGEST_WAIT_SECONDS: Final = 30.0

_T = TypeVar("_T")


class StoppedError(Exception):
    """A signal has come; what was sent is answered."""


class _ListMetadata(msgspec.Struct, rename="camel"):
    continue_: str = msgspec.field(default="", name="continue")


class _PodPage(msgspec.Struct):
    items: list[ClusterPod] | None = None
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


_pages: Final = msgspec.json.Decoder(_PodPage)


@dataclasses.dataclass(kw_only=True)
class ApiRequests:
    """Requests to one cluster, one after the other.

    Attributes:
        connection: to its API server, and to no other cluster from `open_cluster` on.
        is_stopped: whether a signal has come; asked before each request and while one waits.
        rate: most changes a second.
    """

    connection: Connection
    is_stopped: Callable[[], bool] = lambda: False
    rate: float = math.inf
    _next_at: float = dataclasses.field(default=0.0, init=False)

    def ask(
        self, method: str, path: str, query: Mapping[str, str] | None = None, *, body: Any = None, kind: str = "json"
    ) -> ApiAnswer:
        """Send one request; 429, an overloaded server and a silent one are tried again.

        Args:
            method: of HTTP.
            path: of the object.
            query: parameters.
            body: sent as JSON.
            kind: of the body: json, or of a patch: merge-patch+json or json-patch+json.

        Raises:
            StoppedError: a signal has come before the answer.
            ApiUnreachableError: the server has not answered any of the tries.
            KubernetesError: others, as of `Connection.send`.
        """
        backoff = Backoff()
        for left in range(MOST_TRIES_OF_REQUEST - 1, -1, -1):
            self.check_signal()
            try:
                answer = self.connection.send(method, path, query, body=body, content_type=f"application/{kind}")
            except ApiUnreachableError:
                if not left:
                    raise
                self.pause(backoff.next_seconds())
                continue
            if not left or (answer.status != TOO_MANY_REQUESTS and answer.status < _FIRST_OF_SERVER):
                return answer
            self.pause(backoff.next_seconds() if answer.retry_after_seconds is None else answer.retry_after_seconds)
        raise AssertionError("the last try returns or raises")

    def get(self, path: str, shape: type[_T], query: Mapping[str, str] | None = None) -> _T | None:
        """Read an object; None if there is none.

        Raises:
            ApiRefusedError: it may not be read.
            KubernetesError, StoppedError: as `ask`.
        """
        answer = self.ask("GET", path, query)
        if answer.status == 404:  # noqa: PLR2004 - HTTP's word for it
            return None
        if not answer.is_done:
            raise self.connection.refusal(path, answer)
        return self._decoded(path, answer, shape)

    def pods(self, namespace: str | None, node: str | None) -> Iterator[ClusterPod]:
        """List pods page by page; those of a list that has expired go on where it was.

        Raises:
            KubernetesError, StoppedError: as `get`.
        """
        path = "/api/v1/pods" if namespace is None else f"/api/v1/namespaces/{namespace}/pods"
        query = {"limit": str(PODS_OF_A_PAGE)}
        if node is not None:
            query["fieldSelector"] = f"spec.nodeName={node}"
        more = ""
        while True:
            answer = self.ask("GET", path, query | ({"continue": more} if more else {}))
            if answer.status == _EXPIRED and more:
                # What the server offers goes on behind the last pod, in the state of now; without it all begins again,
                # which repeats nothing: what is done shows it.
                more = self._offered(answer)
                continue
            if not answer.is_done:
                raise self.connection.refusal(path, answer)
            page = self._decoded(path, answer, _PodPage)
            yield from page.items or ()
            more = page.metadata.continue_
            if not more:
                return

    def pace(self) -> None:
        """Wait until the rate allows the next change.

        Raises:
            StoppedError: a signal has come.
        """
        now = time.monotonic()
        self._next_at = max(now, self._next_at) + 1 / self.rate
        self.pause(self._next_at - 1 / self.rate - now)
        self.check_signal()

    def check_signal(self) -> None:
        """Raise `StoppedError` if a signal has come."""
        if self.is_stopped():
            raise StoppedError

    def pause(self, seconds: float) -> None:
        """Wait, for `_LONGEST_WAIT_SECONDS` at most.

        Raises:
            StoppedError: a signal has come.
        """
        until = time.monotonic() + min(seconds, _LONGEST_WAIT_SECONDS)
        while (left := until - time.monotonic()) > 0:
            self.check_signal()
            time.sleep(min(left, _STEP_SECONDS))

    def _decoded(self, path: str, answer: ApiAnswer, shape: type[_T]) -> _T:
        try:
            return msgspec.json.decode(answer.body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            reason = f"the answer to {path} cannot be read"
            raise ApiUnreachableError(host=self.connection.host, reason=reason, is_answered=True) from error

    @staticmethod
    def _offered(answer: ApiAnswer) -> str:
        try:
            return _pages.decode(answer.body).metadata.continue_
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ""


@contextlib.contextmanager
def open_cluster(
    access: ClusterAccess, *, is_stopped: Callable[[], bool], rate: float = math.inf
) -> Iterator[ApiRequests]:
    """Connect; from now on nothing goes to another cluster, wherever the address leads.

    Raises:
        KubernetesError: there are no credentials, or the API server does not answer.
    """
    with contextlib.closing(Connection(access)) as connection:
        connection.expect_cluster(connection.cluster_uid())
        yield ApiRequests(connection=connection, is_stopped=is_stopped, rate=rate)
