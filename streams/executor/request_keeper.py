"""Withdraws and deletes the EvictionRequests that are of no use any more, in threads of their own."""

from __future__ import annotations

import threading
import time
import zlib
from typing import Final

import structlog

from evictstream.models.execution.api_answers import Meaning
from evictstream.models.execution.eviction_requests import CleanUp, RequestKey, RequestState
from evictstream.streams.errors import KubernetesError
from evictstream.streams.executor.cluster_executor import ClusterExecutor
from evictstream.streams.executor.open_requests import OpenRequests

log = structlog.get_logger(__name__)

KEEPERS: Final = 4
"""Requests to the API server at once: a taint that is removed from many nodes withdraws thousands of requests, and
each is one that a responder may still act on."""

_TURN_SECONDS: Final = 0.25
_FAILED_SECONDS: Final = 5.0
"""Between two turns, and after one in which the API server did not answer."""

_MOST_AT_A_TURN: Final = 500

_REFUSED_SECONDS: Final = 30.0
_WAITING_SECONDS: Final = 2.0
"""Between two tries of a request whose withdrawal or deletion is refused, or fails for now, where the API server names
no time. The others do not wait for it."""

_FINAL: Final = frozenset({Meaning.REFUSED, Meaning.FAILED})


class RequestKeeper(threading.Thread):
    """Cleans up its share of the requests of one cluster until stopped."""

    def __init__(self, cluster: str, requests: OpenRequests, executor: ClusterExecutor, *, number: int) -> None:
        """Begin nothing yet; without the permission of the executor nothing is written.

        `number` is its own, from 0 on, of the `KEEPERS` of the cluster.
        """
        super().__init__(name=f"{cluster} EvictionRequest keeper {number}", daemon=True)
        self._cluster = cluster
        self._number = number
        self._requests = requests
        self._executor = executor
        self._refused: dict[RequestKey, float] = {}  # until when it is not tried again
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Begin no further turn. What is left is found by the next executor."""
        self._stopped.set()

    def run(self) -> None:
        """Clean up again and again."""
        seconds = _TURN_SECONDS
        while not self._stopped.wait(seconds):
            failure = next((reason for due in self._due() if (reason := self._step(*due)) is not None), None)
            if failure is not None and seconds == _TURN_SECONDS:
                log.warning("EvictionRequests not withdrawn", cluster=self._cluster, reason=failure)
            seconds = _TURN_SECONDS if failure is None else _FAILED_SECONDS

    def _due(self) -> list[tuple[RequestState, CleanUp]]:
        now = time.monotonic()
        self._refused = {key: until for key, until in self._refused.items() if until > now}
        due = [one for one in self._requests.ending() if self._is_mine(one[0].key)]
        return due[:_MOST_AT_A_TURN]

    def _is_mine(self, key: RequestKey) -> bool:
        return zlib.crc32(key.name.encode()) % KEEPERS == self._number and key not in self._refused

    def _step(self, state: RequestState, step: CleanUp) -> str | None:
        """Do one step; returns why the API server cannot be asked now."""
        if self._stopped.is_set() or not self._executor.is_permitted:
            return None
        try:
            done = (self._requests.calls.withdraw if step is CleanUp.WITHDRAW else self._requests.calls.delete)(state)
        except KubernetesError as error:
            return str(error)
        except Exception as error:  # of any kind: it must not end the thread
            log.exception("EvictionRequest could not be withdrawn", cluster=self._cluster, eviction=state.name)
            return f"{type(error).__name__} in the executor"
        if isinstance(done, RequestState):
            self._requests.watch.learn(done)
        elif done.meaning in {Meaning.DONE, Meaning.GONE}:
            self._requests.watch.forget(state)
        elif done.meaning is not Meaning.CHANGED:  # else the watch shows what has changed
            seconds = _REFUSED_SECONDS if done.meaning in _FINAL else done.retry_after_seconds or _WAITING_SECONDS
            self._refused[state.key] = time.monotonic() + min(seconds, _REFUSED_SECONDS)
            log.warning("EvictionRequest stays", cluster=self._cluster, eviction=state.name, reason=done.text)
        return None
