"""Which cluster has to answer, and how lately it did: no request goes out on an answer that is out of date."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator
from typing import Final

from evictstream.streams.errors import ApiUnreachableError, ClusterChangedError
from evictstream.streams.kubernetes.access import ClusterClient

IDENTITY_SECONDS: Final = 10.0
"""How long an answer about the cluster's UID serves: an address may lead elsewhere without a connection that breaks."""


class ExpectedCluster:
    """The UID of `kube-system` that is expected; with which client it was seen, and when. Used by several threads."""

    def __init__(self, host: str) -> None:
        """Expect any cluster at `host`."""
        self._host = host
        self._uid = ""
        self._seen: tuple[ClusterClient | None, float] = (None, -math.inf)
        self._lock = threading.Lock()

    def expect(self, uid: str) -> None:
        """Expect this one from now on."""
        self._uid = uid
        self.forget()

    def forget(self) -> None:
        """Have it asked for again before the next request."""
        self._seen = (None, -math.inf)

    def is_known(self, client: ClusterClient) -> bool:
        """Whether requests of this client reach the cluster that is expected, or any one may answer."""
        seen, at = self._seen
        return not self._uid or (seen is client and time.monotonic() - at < IDENTITY_SECONDS)

    def learn(self, client: ClusterClient, uid: str) -> bool:
        """Note which cluster has answered; tell whether it is the expected one."""
        if uid != self._uid:
            self.forget()
            return False
        self._seen = (client, time.monotonic())
        return True

    def check(self, client: ClusterClient, uid: str) -> None:
        """Note which cluster has answered.

        Raises:
            ClusterChangedError: another one than is expected.
        """
        if not self.learn(client, uid):
            raise ClusterChangedError(host=self._host, uid=uid, expected=self._uid)

    @contextlib.contextmanager
    def one_asks(self, end_at: float) -> Iterator[None]:
        """Let one thread ask; the others wait, until `end_at` on the monotonic clock.

        Raises:
            ApiUnreachableError: another one has been asking for too long.
        """
        if not self._lock.acquire(timeout=max(end_at - time.monotonic(), 0.0)):
            raise ApiUnreachableError(
                host=self._host, reason="the UID of its namespace kube-system was not read in time"
            )
        try:
            yield
        finally:
            self._lock.release()
