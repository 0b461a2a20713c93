"""The client of a connection: made with the first request, and made again when its credentials are out of date."""

from __future__ import annotations

import threading
import time

from evictstream.streams.errors import CredentialsError
from evictstream.streams.kubernetes.access import ClusterAccess, ClusterClient


class RenewedClient:
    """Hands out the client to several threads. Credentials are read in a further one, once for all who wait."""

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access
        self._lock = threading.Lock()
        self._client: ClusterClient | None = None
        self._renewal: _Renewal | None = None

    def current(self, end_at: float) -> ClusterClient:
        """Return the client, a new one if its credentials have expired. As `renewed`."""
        client = self._client
        return self.renewed(client, end_at) if client is None or client.has_expired() else client

    def renewed(self, client: ClusterClient | None, end_at: float) -> ClusterClient:
        """Return another client than this one: read the credentials again, unless another thread has done it, or does.

        Args:
            client: that is out of date; None before the first one.
            end_at: how long to wait for them, on the monotonic clock.

        Raises:
            CredentialsError: they cannot be read, or not in time.
            ClusterMovedError: they belong to another address.
        """
        with self._lock:
            if self._client is not None and self._client is not client:
                return self._client
            if self._renewal is None or not self._renewal.serves(client):
                self._renewal = _Renewal(self._access, client)
                self._renewal.start()
            renewal = self._renewal
        found = renewal.result(end_at - time.monotonic())
        with self._lock:
            if self._client is client:
                self._client = found
            return self._client or found

    def close(self) -> None:
        """Close idle connections, and send no further request; running ones go on."""
        if self._client is not None:
            self._client.pool.close()


class _Renewal(threading.Thread):
    """Reads credentials once. Requests wait for it with a limit: a plugin, or a file, may hang."""

    def __init__(self, access: ClusterAccess, before: ClusterClient | None) -> None:
        super().__init__(name="credentials", daemon=True)
        self._access = access
        self._before = before
        self._place = access.place
        self._ended = threading.Event()
        self._client: ClusterClient | None = None
        self._failure: BaseException | None = None

    def serves(self, client: ClusterClient | None) -> bool:
        """Whether it runs, or has found what takes this client's place."""
        return not self._ended.is_set() or (self._client is not None and self._before is client)

    def run(self) -> None:
        """Read them."""
        try:
            self._client = self._read()
        except BaseException as error:  # noqa: BLE001 - raised again in the threads that wait
            self._failure = error
        finally:
            self._ended.set()

    def _read(self) -> ClusterClient:
        """Read them; what had credentials before does not become anonymous."""
        client, before = self._access.client(), self._before
        if before is not None and client.credentials.are_none and not before.credentials.are_none:
            raise CredentialsError(self._place, "the user no longer has any")
        return client

    def result(self, seconds: float) -> ClusterClient:
        """Wait for the client.

        Raises:
            CredentialsError: they cannot be read, or not in time.
            ClusterMovedError: they belong to another address.
        """
        if not self._ended.wait(max(seconds, 0.0)):
            raise CredentialsError(self._place, "they were not read in time; an exec plugin or a file is slow")
        if self._client is None:
            assert self._failure is not None  # noqa: S101 - one of both is set
            raise self._failure
        return self._client
