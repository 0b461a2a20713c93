"""One request over HTTP and what comes of it, within its time."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError
from urllib3.util import wait_for_read

from evictstream.streams.errors import ApiUnreachableError
from evictstream.streams.kubernetes.access import ClusterClient
from evictstream.streams.kubernetes.answers import ApiAnswer, retry_after_seconds
from evictstream.streams.kubernetes.time_limits import TimeLimit, at_any_time

_CONNECT_SECONDS: Final = 10.0
"""To reach the API server, TLS included: it is near, or a load balancer is."""

_REQUEST_SECONDS: Final = 60.0
"""For a request with its whole answer, new credentials included. The API server itself ends requests after 60 s."""

LARGEST_ANSWER_BYTES: Final = 268_435_456
"""256 MiB: a page of 500 objects of etcd's largest size would be three times that, and no real one is a tenth of it."""

LONGEST_LINE_BYTES: Final = 16_777_216
"""16 MiB: etcd takes 1.5 MiB for an object, and JSON is at most some times longer than protobuf."""

PIECE_BYTES: Final = 262_144
"""Read at once from a watch: some hundred events."""


_CONNECTION: Final = re.compile(r"^\w+\(host=.*?, port=\d+\): ")
"""What urllib3 says before what has happened."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall:
    """One request, as it may be sent more than once.

    Attributes:
        method: of HTTP.
        path: after the server's address.
        query: parameters.
        data: the body.
        content_type: of the body.
        end_at: when the whole answer has to be there, on the monotonic clock; of a watch its headers.
        send_until: when it may be sent at the latest; asked directly before.
        quiet_seconds: of a watch, longest time without a byte.
        gather_seconds: of a watch, how long further lines gather once all that has come is read.
    """

    method: str
    path: str
    query: Mapping[str, str] | None = None
    data: bytes | None = None
    content_type: str = "application/json"
    end_at: float = dataclasses.field(default_factory=lambda: time.monotonic() + _REQUEST_SECONDS)
    send_until: Callable[[], float] = at_any_time
    quiet_seconds: float | None = None
    gather_seconds: float = 0.0


class Exchange:
    """A request that was sent, with its answer that is not read yet. To be closed.

    Attributes:
        client: that sent it.
        status: of HTTP.
    """

    def __init__(self, client: ClusterClient, call: ApiCall) -> None:
        """Send it.

        Raises:
            ApiUnreachableError: no answer.
            NotSentError: its time to be sent was over before.
        """
        self.client = client
        self._call = call
        self._limit = TimeLimit(client.target.host, end_at=call.end_at, send_until=call.send_until)
        headers = urllib3.HTTPHeaderDict({"Accept": "application/json", "User-Agent": "evictstream"})
        if call.data is not None:
            headers["Content-Type"] = call.content_type
        for name, value in client.credentials.headers:
            headers.add(name, value)
        url = f"{client.base}{call.path}" + (f"?{urlencode(call.query)}" if call.query else "")
        try:
            with self._limit.applied():
                self._response = client.pool.urlopen(
                    call.method,
                    url,
                    body=call.data,
                    headers=headers,
                    timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=call.quiet_seconds or _REQUEST_SECONDS),
                    preload_content=False,
                    redirect=False,
                    assert_same_host=False,
                )
        except (HTTPError, OSError) as error:
            raise self._broken(error) from self._cause(error)
        if self._limit.is_over:  # headers that are cut count as whole
            self.close()
            raise self._broken(TimeoutError())
        self.status: int = self._response.status

    def answer(self) -> ApiAnswer:
        """Read the whole answer.

        Raises:
            ApiUnreachableError: half of it came, it is too large, or its time is over.
        """
        try:
            body = self._response.read(LARGEST_ANSWER_BYTES + 1)
        except (HTTPError, OSError) as error:
            raise self._broken(error) from self._cause(error)
        if self._limit.is_over:
            raise self._broken(TimeoutError())
        if len(body) > LARGEST_ANSWER_BYTES:
            raise self._unreachable(f"{self._call.path}: more than {LARGEST_ANSWER_BYTES} bytes")
        wait = retry_after_seconds(self._response.headers.get("Retry-After"), dt.datetime.now(dt.UTC))
        return ApiAnswer(status=self.status, body=body, retry_after_seconds=wait)

    def pieces(self) -> Iterator[bytes]:
        """Read the answer while it arrives.

        Raises:
            ApiUnreachableError: half of it came, or its time is over.
        """
        while True:
            try:
                piece = self._response.read1(PIECE_BYTES)
            except (HTTPError, OSError) as error:
                raise self._broken(error) from self._cause(error)
            if self._limit.is_over:
                raise self._broken(TimeoutError())
            if not piece:
                return
            yield piece

    def lines(self) -> Iterator[bytes]:
        """Read the lines of a watch as they come, however long they take; a last one without an end is dropped.

        After a line all that comes within `gather_seconds` is read together: a line by itself costs its reader, and
        whoever it is passed on to, as much as many. The first line after a quiet time is not delayed.

        Of a line of more than `LONGEST_LINE_BYTES` the beginning is given.

        Raises:
            ApiUnreachableError: the stream broke, or a line has no end.
        """
        self._limit.cancel()
        return self._lines()

    def _lines(self) -> Iterator[bytes]:
        rest: list[bytes] = []
        waiting = 0
        for piece in self.pieces():
            *whole, last = piece.split(b"\n")
            if whole:
                if waiting <= LONGEST_LINE_BYTES:  # else its beginning was given
                    yield b"".join((*rest, whole[0]))
                yield from whole[1:]
                rest, waiting = [], 0
                if not last:
                    self._gather()
            before, waiting = waiting, waiting + len(last)
            if waiting <= LONGEST_LINE_BYTES:
                rest.append(last)
            elif before <= LONGEST_LINE_BYTES:
                yield b"".join(rest)
                rest = []
            elif waiting > LARGEST_ANSWER_BYTES:
                raise self._unreachable(f"{self._call.path}: a line of over {LARGEST_ANSWER_BYTES} bytes")

    def _gather(self) -> None:
        """Wait for `gather_seconds`, unless more has come already."""
        connection = self._response.connection
        sock = None if connection is None else connection.sock
        if sock is None or self._call.gather_seconds <= 0:
            return
        # What TLS has decrypted already does not show here, and gathers too.
        if not wait_for_read(sock, timeout=0):
            time.sleep(self._call.gather_seconds)

    def close(self) -> None:
        """Give the connection back if all was read, else close it."""
        self._limit.cancel()
        if self._response.isclosed():
            self._response.release_conn()
        else:
            self._response.close()

    def _broken(self, error: Exception) -> ApiUnreachableError:
        if self._limit.is_over:
            return self._unreachable(f"no complete answer within {_REQUEST_SECONDS:g} s")
        return self._unreachable(_reason(error))

    def _cause(self, error: Exception) -> Exception | None:
        """Return what it came of, which says whether TLS has failed; an end that came from here says nothing of it."""
        return None if self._limit.is_over else error

    def _unreachable(self, reason: str) -> ApiUnreachableError:
        return ApiUnreachableError(host=self.client.target.host, reason=reason)


def _reason(error: Exception) -> str:
    """Say what happened without the address, which the error has as a field."""
    cause: BaseException = error
    while (below := getattr(cause, "reason", None)) is not None and isinstance(below, BaseException):
        cause = below
    return _CONNECTION.sub("", str(cause)) or type(cause).__name__
