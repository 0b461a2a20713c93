"""The whole time of a request: when it is over the socket is shut down, whatever the request is waiting for.

A time limit of a socket is one for the next bytes: a server that sends a byte now and then holds a thread without end.
Names are looked up by the system, with limits of its own.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from evictstream.streams.errors import NotSentError

_this_thread = threading.local()


def at_any_time() -> float:
    """Return when a request may be sent at the latest that may always be sent."""
    return math.inf


class TimeLimit:
    """The time of one request.

    Attributes:
        is_over: whether it was ended.
    """

    def __init__(self, host: str, *, end_at: float, send_until: Callable[[], float] = at_any_time) -> None:
        """Begin.

        Args:
            host: where the request goes, for people.
            end_at: when the answer has to be read, on the monotonic clock.
            send_until: when it may be sent at the latest; asked directly before.
        """
        self.is_over = False
        self.end_at = end_at
        self._host = host
        self._send_until = send_until
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Let it hold for what this thread sends within; it holds on for the answer, until `cancel`."""
        _watchdog().add(self)
        _this_thread.limit = self
        try:
            yield
        except BaseException:
            self.cancel()
            raise
        finally:
            _this_thread.limit = None

    def seconds_to_connect(self) -> float:
        """Return how long a connection may take now; more than 0, which would be an error to the socket.

        Raises:
            NotSentError: it is too late to send anything.
        """
        now, send_until = time.monotonic(), self._send_until()
        if now > send_until:
            raise NotSentError(self._host)
        return max(min(self.end_at, send_until) - now, 0.001)

    def watch_over(self, sock: Any) -> None:
        """Shut this socket down when the time is over. Of a secured one too: both ends of a duplicate are the same."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            self._socket = socket.socket(fileno=os.dup(sock.fileno()))
            if self.is_over:
                self._shut_down()

    def before_sending(self, sock: Any) -> None:
        """Take over the socket of a connection that was kept.

        Raises:
            NotSentError: it is too late.
        """
        if time.monotonic() > self._send_until():
            raise NotSentError(self._host)
        if self._socket is None:
            self.watch_over(sock)

    def expire(self) -> None:
        """End the request."""
        with self._lock:
            self.is_over = True
            self._shut_down()

    def cancel(self) -> None:
        """Do no more: the answer is read, or the request has failed."""
        _watchdog().discard(self)
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    def _shut_down(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):  # the other end was quicker
                self._socket.shutdown(socket.SHUT_RDWR)


class LimitedConnection:
    """Goes before a connection class of urllib3, and tells the limit of its thread what happens."""

    def _new_conn(self) -> Any:
        limit: TimeLimit | None = getattr(_this_thread, "limit", None)
        if limit is None:
            return super()._new_conn()  # type: ignore[misc]
        self.timeout = min(self.timeout or math.inf, limit.seconds_to_connect())
        sock = super()._new_conn()  # type: ignore[misc]
        limit.watch_over(sock)
        return sock

    def send(self, data: Any) -> None:
        """Send, unless it is too late, also after a connection that took long to open."""
        layer: Any = self
        limit: TimeLimit | None = getattr(_this_thread, "limit", None)
        if limit is not None:
            if layer.sock is None:
                layer.connect()
            limit.before_sending(layer.sock)
        super().send(data)  # type: ignore[misc]

    timeout: Any


def limit_connections(pool_manager: Any) -> Any:
    """Have a pool manager of urllib3 make connections that keep to limits; returns it."""
    classes = pool_manager.pool_classes_by_scheme
    pool_manager.pool_classes_by_scheme = {scheme: _limited(pool) for scheme, pool in classes.items()}
    return pool_manager


@functools.cache
def _limited(pool: Any) -> Any:
    connection = pool.ConnectionCls
    limited = type(f"Limited{connection.__name__}", (LimitedConnection, connection), {})
    return type(f"Limited{pool.__name__}", (pool,), {"ConnectionCls": limited})


class _Watchdog(threading.Thread):
    """Ends requests whose time is over. One for the process: it waits for nothing but the clock."""

    def __init__(self) -> None:
        super().__init__(name="time limits of requests", daemon=True)
        self._limits: set[TimeLimit] = set()
        self._changed = threading.Condition()
        self._next_at = math.inf

    def add(self, limit: TimeLimit) -> None:
        with self._changed:
            self._limits.add(limit)
            if limit.end_at < self._next_at:
                self._changed.notify()

    def discard(self, limit: TimeLimit) -> None:
        with self._changed:
            self._limits.discard(limit)

    def run(self) -> None:
        while True:
            with self._changed:
                now = time.monotonic()
                over = [limit for limit in self._limits if limit.end_at <= now]
                self._limits.difference_update(over)
                self._next_at = min((limit.end_at for limit in self._limits), default=math.inf)
                if not over:
                    self._changed.wait(None if self._next_at == math.inf else self._next_at - now)
            for limit in over:
                limit.expire()


@functools.cache
def _watchdog() -> _Watchdog:
    watchdog = _Watchdog()
    watchdog.start()
    return watchdog
