"""The EvictionRequests of one cluster as the API server has them: one list, then one watch for all of them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from evictstream.models.execution.eviction_requests import REQUESTER, RequestKey, RequestState, read_eviction_request
from evictstream.models.messages.envelope import DECODE_ERRORS
from evictstream.streams.errors import KubernetesError
from evictstream.streams.executor.request_calls import RequestCalls
from evictstream.streams.kubernetes.backoff import Backoff

log = structlog.get_logger(__name__)

MOST_KNOWN: Final = 20_000
"""Requests that are kept, some 20 MB. Further ones are kept only if they are this executor's own."""

_SHORT_SECONDS: Final = 1.0
"""The least time from a watch to the next watch or list: an API server that ends each at once must not be asked without
pause."""


class _Line(msgspec.Struct):
    class Meta(msgspec.Struct, rename="camel"):
        resource_version: str = ""

    metadata: Meta


_bookmarks: Final = msgspec.json.Decoder(_Line)


class RequestWatch(threading.Thread):
    """Follows the requests of one cluster until stopped, and tells of each that has changed.

    Attributes:
        problem: why the requests are not known now; None while they are.
        has_failed: whether that is because of a failure; else the first list is on its way.
    """

    def __init__(
        self,
        name: str,
        calls: RequestCalls,
        on_change: Callable[[RequestKey], None],
        *,
        is_own: Callable[[RequestKey], bool],
    ) -> None:
        """Begin nothing yet.

        Args:
            name: of the cluster.
            calls: to its API server.
            on_change: is called with the key of a request that has changed or is gone, by this thread.
            is_own: whether a request was made by this executor, or is withdrawn by it now. Such a one is always kept:
                whoever may create requests may create many, and one that is not kept would seem to be gone.
        """
        super().__init__(name=f"{name} EvictionRequests", daemon=True)
        self.problem: str | None = "the EvictionRequests are being listed"
        self.has_failed = False
        self._cluster = name
        self._calls = calls
        self._on_change = on_change
        self._is_own = is_own
        self._states: dict[RequestKey, RequestState] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Follow no longer; a watch that is open ends by itself."""
        self._stopped.set()

    def get(self, key: RequestKey) -> RequestState | None:
        """Return the newest known state of a request; None if there is none."""
        return self._states.get(key)

    def keys(self) -> list[RequestKey]:
        """List the keys of all requests."""
        with self._lock:
            return list(self._states)

    def __len__(self) -> int:
        """How many requests there are."""
        return len(self._states)

    def learn(self, state: RequestState) -> None:
        """Keep the state from an answer about an own request, which the watch may not have shown yet."""
        with self._lock:
            self._keep(state, is_own=True)

    def forget(self, state: RequestState) -> None:
        """Drop a request that is gone, unless a newer one has its key."""
        with self._lock:
            known = self._states.get(state.key)
            if known is not None and known.uid == state.uid:
                del self._states[state.key]

    def run(self) -> None:
        """List and watch, again and again."""
        backoff = Backoff()
        while not self._stopped.is_set():
            try:
                version: str | None = self._list()
                if self.problem is not None:
                    log.info("following EvictionRequests", cluster=self._cluster, requests=len(self))
                    self.problem, self.has_failed = None, False
                backoff.reset()
                while version is not None and not self._stopped.is_set():
                    version = self._watch(version)
            except KubernetesError as error:
                self._fail(str(error))
                self._stopped.wait(backoff.next_seconds())
            except Exception as error:  # of any kind: without this thread no request would be seen to end
                log.exception("EvictionRequests could not be followed", cluster=self._cluster)
                self._fail(f"{type(error).__name__} in the executor")
                self._stopped.wait(backoff.next_seconds())

    def _fail(self, reason: str) -> None:
        if self.problem is None and not self._stopped.is_set():
            log.warning("EvictionRequests are not followed", cluster=self._cluster, reason=reason)
        self.has_failed = True
        self.problem = f"the EvictionRequests are not known: {reason}"

    def _list(self) -> str:
        version, states = self._calls.list(MOST_KNOWN, self._is_own)
        listed_at = int(version) if version.isdecimal() else 0
        with self._lock:
            before = self._states
            # What an answer has shown since the list was made is not in it yet.
            self._states = {key: one for key, one in before.items() if one.version > listed_at}
            for state in states:
                self._keep(state)
            changed = [key for key in {*before, *self._states} if before.get(key) != self._states.get(key)]
        for key in changed:
            self._on_change(key)
        return version

    def _watch(self, version: str) -> str | None:
        """Follow one watch; returns the version at which the next one begins, None if a list is needed."""
        began_at, is_expired = time.monotonic(), False
        for line in self._calls.watch(version):
            if self._stopped.is_set():
                return None
            text = bytes(line.object)
            if line.type == "ERROR":
                is_expired = True
                break
            with contextlib.suppress(*DECODE_ERRORS):
                version = _bookmarks.decode(text).metadata.resource_version or version
            if line.type != "BOOKMARK":
                self._note(line.type, text)
        self._stopped.wait(max(0.0, began_at + _SHORT_SECONDS - time.monotonic()))
        return None if is_expired else version

    def _note(self, type_: str, text: bytes) -> None:
        with contextlib.suppress(*DECODE_ERRORS):  # what an executor has made can be read
            state = read_eviction_request(text)
            if type_ == "DELETED":
                self.forget(state)
            else:
                with self._lock:
                    self._keep(state)
            self._on_change(state.key)

    def _keep(self, state: RequestState, *, is_own: bool = False) -> None:
        known = self._states.get(state.key)
        is_newer = known is None or state.version >= known.version
        has_room = known is not None or len(self._states) < MOST_KNOWN or is_own or self._is_own(state.key)
        if is_newer and has_room and state.requester == REQUESTER:
            self._states[state.key] = state
