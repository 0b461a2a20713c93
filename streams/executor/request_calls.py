"""The requests about EvictionRequests to one API server."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote

import msgspec

from evictstream.models.execution.api_answers import Meaning
from evictstream.models.execution.eviction_requests import (
    CLUSTER_MARK,
    REQUESTS_GATE,
    REQUESTS_PLURAL,
    REQUESTS_VERSION,
    RequestKey,
    RequestState,
    cluster_label,
    read_eviction_request,
    request_body,
    withdrawal_body,
)
from evictstream.models.messages.command import EvictionCommand
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.streams.errors import ApiNotServedError, ApiUnreachableError
from evictstream.streams.executor.pod_requests import ApiReply, read_reply
from evictstream.streams.kubernetes.connection import Connection
from evictstream.streams.kubernetes.time_limits import at_any_time

_GROUP: Final = f"/apis/{REQUESTS_VERSION}"
REQUESTS_PATH: Final = f"{_GROUP}/{REQUESTS_PLURAL}"

_PAGE: Final = "500"
"""Objects of a page of a list, as client-go asks for."""

_WATCH_SECONDS: Final = 240
"""How long a watch lasts; then the next one begins."""

_QUIET_SECONDS: Final = 260.0
_NOT_FOUND: Final = 404


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw]


class RequestLine(msgspec.Struct):
    """A line of a watch: a change, a bookmark or an error."""

    type: str
    object: msgspec.Raw


_pages: Final = msgspec.json.Decoder(_Page)
_lines: Final = msgspec.json.Decoder(RequestLine)


def check_requests_served(cluster: str, connection: Connection) -> None:
    """Check that the API server knows EvictionRequests.

    Raises:
        ApiNotServedError: it does not.
        KubernetesError: no answer, or a refusal.
    """
    answer = connection.send("GET", _GROUP)
    if answer.status == _NOT_FOUND or (answer.is_done and f'"{REQUESTS_PLURAL}"'.encode() not in answer.body):
        raise ApiNotServedError(cluster=cluster, version=REQUESTS_VERSION, gate=REQUESTS_GATE)
    if not answer.is_done:
        raise connection.refusal(_GROUP, answer)


class RequestCalls:
    """Creates, withdraws, deletes, lists and watches the EvictionRequests of one cluster. Used by several threads."""

    def __init__(self, connection: Connection, cluster: str) -> None:
        self._connection = connection
        self._query = {"labelSelector": f"{CLUSTER_MARK}={cluster_label(cluster)}"}

    @property
    def host(self) -> str:
        """The API server's address, for people."""
        return self._connection.host

    def create(self, command: EvictionCommand, *, send_until: Callable[[], float]) -> RequestState | ApiReply:
        """Ask for the eviction of the command's pod.

        Returns:
            The new request, or any other answer; `CHANGED` if there is an object of that name.

        Raises:
            NotSentError: it was not sent before the monotonic second that `send_until` returns directly before.
            KubernetesError: no answer.
        """
        path, body = _namespace_path(command.namespace), request_body(command)
        return self._object("POST", path, command.eviction_id, body=body, send_until=send_until)

    def get(self, command: EvictionCommand) -> RequestState | ApiReply:
        """Read the request with the name of the command's eviction. Raises what `create` raises."""
        return self._object("GET", _path(command.namespace, command.eviction_id), command.eviction_id)

    def withdraw(
        self, state: RequestState, *, send_until: Callable[[], float] = at_any_time
    ) -> RequestState | ApiReply:
        """Change the intent of a request that is still in this version. Raises what `create` raises."""
        return self._object(
            "PATCH",
            _path(state.namespace, state.name),
            state.name,
            body=withdrawal_body(state),
            content_type="application/merge-patch+json",
            send_until=send_until,
        )

    def delete(self, state: RequestState, *, send_until: Callable[[], float] = at_any_time) -> ApiReply:
        """Delete a request that is still in this version. Raises what `create` raises."""
        preconditions = {"uid": state.uid, "resourceVersion": str(state.version)}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        path = _path(state.namespace, state.name)
        answer = self._connection.send("DELETE", path, body=body, send_until=send_until)
        return read_reply(answer, plural=REQUESTS_PLURAL, name=state.name)

    def list(self, most: int, is_own: Callable[[RequestKey], bool]) -> tuple[str, list[RequestState]]:
        """List the requests of the cluster; returns the version of the list, and at most so many and all own ones.

        Raises:
            KubernetesError: no answer, or a refusal.
        """
        states: list[RequestState] = []
        query = self._query | {"limit": _PAGE}
        while True:
            try:
                page = _pages.decode(self._connection.get(REQUESTS_PATH, query))
            except DECODE_ERRORS as error:
                reason = f"its list of {REQUESTS_PLURAL} cannot be read"
                raise ApiUnreachableError(host=self.host, reason=reason, is_answered=True) from error
            for item in page.items:
                with contextlib.suppress(*DECODE_ERRORS):  # what an executor has made can be read
                    state = read_eviction_request(bytes(item))
                    if len(states) < most or is_own(state.key):
                        states.append(state)
            if not page.metadata.continue_:
                return page.metadata.resource_version, states
            query["continue"] = page.metadata.continue_

    def watch(self, version: str) -> Iterator[RequestLine]:
        """Follow the requests of the cluster from a version on, until the API server ends the watch.

        Raises:
            KubernetesError: no answer, or a refusal; also while reading.
        """
        query = self._query | {
            "watch": "true",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        with self._connection.watch(REQUESTS_PATH, query, quiet_seconds=_QUIET_SECONDS) as lines:
            for line in lines:
                try:
                    yield _lines.decode(line)
                except DECODE_ERRORS as error:
                    raise ApiUnreachableError(host=self.host, reason="a line of its watch is not JSON") from error

    def _object(self, method: str, path: str, name: str, **more: Any) -> RequestState | ApiReply:
        reply = read_reply(self._connection.send(method, path, **more), plural=REQUESTS_PLURAL, name=name)
        if reply.meaning is not Meaning.DONE:
            return reply
        try:
            return read_eviction_request(reply.body)
        except DECODE_ERRORS as error:
            return ApiReply(meaning=Meaning.OBJECT_WAITS, text=f"the EvictionRequest cannot be read: {error}")


def _namespace_path(namespace: str) -> str:
    return f"{_GROUP}/namespaces/{quote(namespace, safe='')}/{REQUESTS_PLURAL}"


def _path(namespace: str, name: str) -> str:
    return f"{_namespace_path(namespace)}/{quote(name, safe='')}"
